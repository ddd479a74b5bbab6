//! Messages that a person types for the run under way. Pure. One that the run was not shown before it ended is the next turn at the
//! gateway; it is then followed like any other message, under the ids that it was sent with.

use gsv_link::LinkError;
use gsv_protocol::types::{ChatEvent, ChatSendParams, ChatSendResult, MessageId, RunId, WhileBusy};

use super::{Effect, Ids, Turn};
use crate::chat::assembler::Assembler;
use crate::clean::one_line;
use crate::client::link_failure;

/// Columns of a message in a note about it.
const SHOWN: usize = 60;

#[derive(Debug)]
pub struct Steering {
    pub text: String,
    pub ids: Ids,
    /// The gateway has it.
    pub accepted: bool,
}

impl Turn<'_> {
    pub(super) fn steer(&mut self, text: String, ids: Ids) {
        let params = ChatSendParams {
            session_key: self.followed.key(),
            message: text.clone(),
            run_id: Some(ids.run.clone()),
            message_id: Some(ids.message.clone()),
            attachments: None,
            while_busy: Some(WhileBusy::Steer),
            mode: None,
            thinking: self.followed.asks_for_thoughts(),
        };
        self.effects.push(Effect::Steer(ids.message.clone(), params));
        self.steering.push(Steering {
            text,
            ids,
            accepted: false,
        });
    }

    pub(super) fn steered(&mut self, id: &MessageId, result: Result<ChatSendResult, LinkError>) {
        let Some(at) = self.steering.iter().position(|line| line.ids.message == *id) else {
            return;
        };
        let text = one_line(&self.steering[at].text, SHOWN);
        match result {
            Ok(ChatSendResult::Started { steers, .. }) => {
                self.steering[at].accepted = true;
                if steers.is_none() {
                    self.note(&format!("waits for its turn: {text}"));
                }
            }
            // Directives without a text are no message.
            Ok(ChatSendResult::DirectiveOnly { response, .. }) => {
                self.steering.remove(at);
                self.note(&response.unwrap_or_default());
            }
            Ok(ChatSendResult::Command { response, error, .. }) => {
                self.steering.remove(at);
                self.note(&error.or(response).unwrap_or_default());
            }
            Ok(ChatSendResult::Paused { response, .. }) => self.note(&response),
            Err(error) => {
                let why = link_failure(&error).message;
                self.note(&format!(
                    "not sent yet, and sent again after this answer: {text} ({why})"
                ));
            }
        }
    }

    /// The message of this turn is accepted: its answer is that of `run`, or of the run that it steers.
    pub(super) fn follow(&mut self, run: RunId, steers: Option<RunId>) {
        let Some(steered) = steers else {
            self.run = run;
            return;
        };
        self.own = Some(run);
        self.run = steered;
        self.note("the run under way gets it at its next step");
    }

    /// The run has ended without the message, which is the next turn now.
    pub(super) fn has_own_run(&mut self) {
        if let Some(run) = self.own.take() {
            self.run = run;
            self.assembler = Assembler::default();
            self.note("the run had ended before; the message is answered now");
        }
    }

    /// Ctrl-C before the run has had the message: the message is taken back, and the run goes on.
    pub(super) fn withdraws(&mut self) {
        if let Some(run) = self.own.take() {
            self.run = run;
            self.assembler = Assembler::default();
            self.beside.behind = true;
        }
    }

    /// The model has the message from here on.
    pub(super) fn note_steered(&mut self, event: &ChatEvent) {
        if let ChatEvent::Status {
            steered: Some(shown), ..
        } = event
        {
            self.steering.retain(|line| line.ids.message != shown.message_id);
            if self.own.as_ref() == Some(&shown.run_id) {
                self.own = None;
            }
        }
    }

    /// Those that the run has not been shown, in their order.
    pub fn take_steering(&mut self) -> Vec<Steering> {
        std::mem::take(&mut self.steering)
    }
}
