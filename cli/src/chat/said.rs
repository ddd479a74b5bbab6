//! What a line that was typed at the prompt means, and the messages that wait for the end of an answer. Pure.

use std::collections::VecDeque;

use gsv_protocol::types::ApprovalAnswerKind;

use super::attach::Chosen;
use super::complete::{acts_at_once, message, unknown_command};

/// Messages that may wait.
pub const MOST_QUEUED: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Nothing,
    Leave,
    /// A file for the next message, or what to do with those that are chosen.
    Attach(String),
    /// A question to the person: the line looks like a command and is none.
    Unknown(String),
    /// The person does not want to send it.
    NotSent,
    /// A word about the call that waits.
    Answer(ApprovalAnswerKind),
    /// A command, which acts at once.
    Command(String),
    Message(String),
}

#[derive(Debug, Default)]
pub struct Reader {
    /// The line that a question was asked about.
    unknown: Option<String>,
}

impl Reader {
    /// Reads a line. `asks`: a call waits for a word.
    pub fn read(&mut self, line: &str, asks: bool) -> Said {
        let text = message(line);
        let asked = self.unknown.take();
        match (asked, text.to_lowercase().as_str()) {
            (Some(asked), "y" | "yes") => return Said::Message(asked),
            (Some(_), "" | "n" | "no") => return Said::NotSent,
            (None, "y" | "yes") if asks => return Said::Answer(ApprovalAnswerKind::Allow),
            (None, "n" | "no") if asks => return Said::Answer(ApprovalAnswerKind::Deny),
            (_, "") => return Said::Nothing,
            (_, "/quit" | "/exit") => return Said::Leave,
            // Any other line is a message of its own.
            _ => {}
        }
        if let Some(question) = unknown_command(&text) {
            self.unknown = Some(text);
            return Said::Unknown(question);
        }
        if let Some(path) = text
            .strip_prefix("/attach")
            .filter(|rest| !rest.starts_with(|c: char| c != ' '))
        {
            return Said::Attach(path.trim().to_owned());
        }
        if acts_at_once(&text) {
            Said::Command(text)
        } else {
            Said::Message(text)
        }
    }
}

/// A message with the files that were chosen for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    pub text: String,
    pub files: Vec<Chosen>,
}

/// Messages in the order in which they were typed.
#[derive(Debug, Default)]
pub struct Queue(VecDeque<Outgoing>);

impl Queue {
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST_QUEUED
    }

    pub fn push(&mut self, message: Outgoing) {
        self.0.push_back(message);
    }

    /// Puts back a message that was not sent.
    pub fn put_back(&mut self, message: Outgoing) {
        self.0.push_front(message);
    }

    pub fn pop(&mut self) -> Option<Outgoing> {
        self.0.pop_front()
    }

    /// The texts that were never sent.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|message| message.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f43_a_line_means_the_same_at_any_time() {
        let read = |line: &str| Reader::default().read(line, false);
        let said = |text: &str| text.to_owned();
        assert_eq!(read("  "), Said::Nothing);
        assert_eq!(read("hello "), Said::Message(said("hello")));
        assert_eq!(read("one\\\ntwo"), Said::Message(said("one\ntwo")));
        assert_eq!(read("/quit"), Said::Leave);
        assert_eq!(read("/stop all"), Said::Command(said("/stop all")));
        assert_eq!(read("/STOP"), Said::Command(said("/STOP")));
        assert_eq!(
            read("/status of the house?"),
            Said::Message(said("/status of the house?"))
        );
        assert_eq!(read("/attach"), Said::Attach(said("")));
        assert_eq!(read("/attach a b.txt"), Said::Attach(said("a b.txt")));
        assert_eq!(read("/etc/hosts is wrong"), Said::Message(said("/etc/hosts is wrong")));
        assert_eq!(read("y"), Said::Message(said("y")));
    }

    #[test]
    fn ap12_yes_and_no_answer_the_call_that_waits() {
        let mut reader = Reader::default();
        assert_eq!(reader.read("Y", true), Said::Answer(ApprovalAnswerKind::Allow));
        assert_eq!(reader.read("no", true), Said::Answer(ApprovalAnswerKind::Deny));
        assert_eq!(reader.read("yes please", true), Said::Message("yes please".to_owned()));
    }

    #[test]
    fn f44_an_unknown_command_needs_a_yes() {
        let mut reader = Reader::default();
        for (answer, said) in [
            ("", Said::NotSent),
            ("n", Said::NotSent),
            ("y", Said::Message("/stauts now".to_owned())),
            ("else", Said::Message("else".to_owned())),
            ("/quit", Said::Leave),
        ] {
            assert!(matches!(reader.read("/stauts now", true), Said::Unknown(_)));
            assert_eq!(reader.read(answer, true), said);
        }
    }

    #[test]
    fn f43_the_queue_keeps_its_order_and_has_a_bound() {
        let mut queue = Queue::default();
        for number in 0..MOST_QUEUED {
            assert!(!queue.is_full());
            let text = number.to_string();
            queue.push(Outgoing {
                text,
                files: Vec::new(),
            });
        }
        assert!(queue.is_full());
        assert_eq!(queue.pop().map(|message| message.text).as_deref(), Some("0"));
        assert_eq!(queue.texts().next(), Some("1"));
        assert!(!queue.is_full());
    }
}
