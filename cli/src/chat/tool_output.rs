//! `/tool`: the calls that the chat has shown, and all output of one of them, which the gateway is asked for when the chat does not
//! have all of it.

use gsv_link::LinkError;
use gsv_protocol::errors;
use gsv_protocol::methods::SessionResult;
use gsv_protocol::types::{SessionResultParams, SessionResultResult};

use super::Talk;
use crate::chat::calls::{Call, Calls, ToolAsk};
use crate::chat::output_lines::whole;
use crate::clean::one_line;
use crate::client::link_failure;
use crate::output::Style;

/// The answer about a call.
pub(super) struct Found {
    call: Call,
    answer: Result<SessionResultResult, LinkError>,
}

impl Talk<'_> {
    pub(super) fn show_tool(&mut self, ask: ToolAsk) {
        let calls = self.view.calls();
        match ask {
            ToolAsk::Unclear => self
                .out
                .note("Write `/tool` for a list, or `/tool N` for all output of call N."),
            ToolAsk::List => {
                let columns = self.out.size().0;
                let lines: Vec<String> = calls
                    .into_iter()
                    .flat_map(Calls::listed)
                    .map(|call| one_line(&format!("{:>3}. {}", call.number, call.words), columns))
                    .collect();
                if lines.is_empty() {
                    self.out.aside("No tool was called in this chat.");
                }
                for line in lines {
                    self.out.aside(&line);
                }
            }
            ToolAsk::Show(number) => match calls.and_then(|calls| calls.find(number)).cloned() {
                None => self
                    .out
                    .note(&format!("This chat has shown no call {number}. `/tool` lists them.")),
                Some(call) => match call.text() {
                    Some(text) => self.show_text(&call, text),
                    None => self.look_up(call),
                },
            },
        }
    }

    fn look_up(&mut self, call: Call) {
        let params = SessionResultParams {
            session_key: self.key.clone(),
            call_id: call.id.clone(),
        };
        let link = self.link.clone();
        self.found = Some(Box::pin(async move {
            let answer = link.call::<SessionResult>(params).await;
            Found { call, answer }
        }));
    }

    pub(super) fn show_found(&self, Found { call, answer }: Found) {
        match answer {
            Ok(found) => {
                self.show_text(&call, &found.text);
                if let Some(path) = found.path {
                    let path = one_line(&path, self.out.size().0);
                    self.out.aside(&format!(
                        "The middle is left out here. All of it: `gsv workspace cat {path}`"
                    ));
                }
            }
            Err(error) if error.reason() == errors::RUN_NOT_FOUND.reason => {
                self.out
                    .note(&format!("Call {} has no output yet, or it is archived.", call.number));
            }
            Err(error) => self.out.failure(&link_failure(&error)),
        }
    }

    fn show_text(&self, call: &Call, text: &str) {
        let name = self.out.paint_note(Style::Bold, &call.words);
        self.out.note(&format!("{}. {name}", call.number));
        let lines = whole(text, self.out.size().0.saturating_sub(1));
        if lines.is_empty() {
            self.out.aside("  (no output)");
        }
        for line in lines {
            self.out.note(&line);
        }
    }
}
