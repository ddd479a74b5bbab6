//! `/queue`: the messages that wait, as a list that can be changed.

use super::Talk;
use crate::chat::said::QueueAsk;
use crate::clean::one_line;

/// Before each message of the list.
const NUMBER_COLUMNS: usize = 5;
/// The least columns of a waiting message, in a narrow terminal.
const LEAST_COLUMNS: usize = 20;

impl Talk<'_> {
    pub(super) fn change_queue(&mut self, ask: &QueueAsk) {
        match ask {
            QueueAsk::List => self.list_queue(),
            QueueAsk::Drop(number) => {
                if let Some(message) = self.queue.take(*number) {
                    self.out
                        .aside(&format!("removed: {}", one_line(&message.text, self.columns())));
                } else {
                    self.no_such_message(*number);
                }
            }
            QueueAsk::Edit(number) => {
                if let Some(message) = self.queue.take(*number) {
                    self.given.files.splice(..0, message.files);
                    self.prompt.begin_with(message.text);
                } else {
                    self.no_such_message(*number);
                }
            }
            QueueAsk::Unclear | QueueAsk::Add(_) => {
                self.out
                    .note("Write `/queue`, `/queue edit 1`, `/queue drop 1` or `/queue add TEXT`.");
            }
        }
    }

    fn list_queue(&self) {
        let columns = self.columns();
        let mut is_empty = true;
        if let Some(text) = &self.behind {
            let then = "sent, and waits at the gateway for the run before it; Ctrl-C takes it back: ";
            let left = columns.saturating_sub(then.len()).max(LEAST_COLUMNS);
            self.out.aside(&format!("{then}{}", one_line(text, left)));
        }
        for (index, message) in self.queue.all().enumerate() {
            is_empty = false;
            self.out
                .aside(&format!("{:>3}. {}", index + 1, one_line(&message.text, columns)));
        }
        if !is_empty {
            self.out
                .aside("`/queue edit N` puts one back into the line, `/queue drop N` removes it.");
        } else if self.behind.is_none() {
            self.out.aside("No message waits.");
        }
    }

    fn no_such_message(&self, number: usize) {
        self.out
            .note(&format!("No message {number} waits. `/queue` lists them."));
    }

    fn columns(&self) -> usize {
        self.out.size().0.saturating_sub(NUMBER_COLUMNS)
    }
}
