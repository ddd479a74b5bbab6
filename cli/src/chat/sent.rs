//! The gateway's answer to the message of a turn: which run answers it, or what became of a command. Pure.

use gsv_protocol::errors;
use gsv_protocol::types::{ChatAbortParams, ChatSendResult, RunId, WhileBusy};

use super::catch_up::CatchUp;
use super::{Draw, Effect, Goes, Turn};
use crate::exit::{Failure, Outcome};

impl Turn<'_> {
    pub(super) fn sent(&mut self, result: ChatSendResult) -> Outcome<Goes> {
        self.draw(Draw::Sent(result.clone()));
        match result {
            ChatSendResult::Started {
                run_id,
                queued,
                duplicate,
                seq,
                stopped,
                steers,
                directives,
                ..
            } => {
                if self.mode.is_some() && directives.and_then(|directives| directives.mode) != self.mode {
                    return Ok(self.without_its_mode(run_id));
                }
                if stopped == Some(true) {
                    let message = "GSV is stopped. The message is accepted and waits.";
                    let next = self.followed.after_resume("Go on with `gsv resume`.");
                    let reason = Some(errors::GATEWAY_STOPPED.reason.to_owned());
                    return Err(Failure {
                        reason,
                        ..Failure::later(message, next)
                    });
                }
                self.show_early("");
                self.accepted = true;
                // Sent a second time without the wish, it has its own run.
                self.follow(run_id, steers.filter(|_| self.while_busy == Some(WhileBusy::Steer)));
                self.followed.note_seq(seq);
                let is_duplicate = duplicate == Some(true);
                self.gap |= is_duplicate;
                // Without a position in the log there is nothing to catch up from when the connection breaks later.
                if is_duplicate || self.followed.last_seq.is_none() {
                    self.catch_up = match self.catch_up {
                        CatchUp::Done | CatchUp::Due => CatchUp::Due,
                        CatchUp::Asked | CatchUp::AskedAndDue => CatchUp::AskedAndDue,
                    };
                }
                if queued == Some(true) {
                    self.beside.behind = true;
                    if !is_duplicate && self.own.is_none() {
                        self.note("queued behind another message…");
                    }
                    self.effects.push(Effect::Look(None));
                } else {
                    // A run that waited has given way to this one.
                    self.beside.waiting.clear();
                }
                Ok(Goes::On)
            }
            ChatSendResult::Command { error: Some(error), .. } => Err(Failure::failed(error, "")),
            ChatSendResult::Command { response, .. } | ChatSendResult::DirectiveOnly { response, .. } => {
                match response.filter(|response| !response.is_empty()) {
                    Some(response) => {
                        if !self.show_early(&response) {
                            self.followed.confirmed = Some(response.clone());
                        }
                        self.draw(Draw::Answer(response));
                    }
                    None => self.note("done"),
                }
                Ok(Goes::Done)
            }
            ChatSendResult::Paused { response, .. } => Err(Failure::later(
                response,
                "Stop the run that waits with `gsv chat /stop`, then send the message again.",
            )),
        }
    }

    /// An older gateway does not know modes of messages, and would run the message in the conversation's mode.
    fn without_its_mode(&mut self, run: RunId) -> Goes {
        self.run = run;
        self.note("This gateway is too old for the mode of one message, so the message is stopped. Update the gateway, or set the mode with `gsv session set --mode`.");
        self.effects.push(Effect::Abort(ChatAbortParams {
            session_key: self.followed.key(),
            run_id: Some(self.run.clone()),
        }));
        Goes::On
    }
}
