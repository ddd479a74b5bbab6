//! What a line that was typed at the prompt means, and the messages that wait for the end of an answer. Pure.

use std::collections::VecDeque;

use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry};

use super::attach::Chosen;
use super::calls::ToolAsk;
use super::complete::{acts_at_once, message, unknown_command};
use super::decision::Decision;
use super::misread;
use super::thoughts::ThoughtsAsk;
use super::turn::Ids;

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
    /// A word about the call with a code.
    Decide(Decision),
    /// It begins as an answer and is none: what was wrong.
    NoAnswer(String),
    /// A command, which acts at once.
    Command(String),
    /// What to do with the messages that wait.
    Queue(QueueAsk),
    /// A call whose output is wanted.
    Tool(ToolAsk),
    /// Whether, and which, thoughts of the model are wanted.
    Thoughts(ThoughtsAsk),
    /// A message for the run under way, which gets it at its next step.
    Steer(String),
    Message(String),
}

/// `/queue`. Numbers count from 1, in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueAsk {
    List,
    Drop(usize),
    /// Put it back into the line.
    Edit(usize),
    /// A message that waits, also where Enter steers.
    Add(String),
    Unclear,
}

fn queue_ask(words: &str) -> QueueAsk {
    let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let rest = rest.trim();
    match (verb.to_lowercase().as_str(), rest.parse()) {
        ("", _) => QueueAsk::List,
        ("drop", Ok(number)) => QueueAsk::Drop(number),
        ("edit", Ok(number)) => QueueAsk::Edit(number),
        ("add", _) if !rest.is_empty() => QueueAsk::Add(rest.to_owned()),
        _ => QueueAsk::Unclear,
    }
}
/// What comes after this word of the prompt.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.get(word.len()..)?;
    let is_word = text[..word.len()].eq_ignore_ascii_case(word) && !rest.starts_with(|c: char| !c.is_whitespace());
    is_word.then(|| rest.trim())
}

#[derive(Debug, Default)]
pub struct Reader {
    /// The line that a question was asked about.
    unknown: Option<String>,
}

impl Reader {
    /// The text is not what it looks like: asks whether it is a message.
    pub fn doubt(&mut self, text: String, problem: &str) -> String {
        self.unknown = Some(text);
        format!("{problem} Send it as a message? [y = yes]")
    }

    /// Reads a line. `waiting`: the questions of this conversation, in the order in which they were shown.
    pub fn read(&mut self, line: &str, waiting: &[ApprovalEntry]) -> Said {
        let text = message(line);
        let asked = self.unknown.take();
        match (asked, text.to_lowercase().as_str()) {
            (Some(asked), "y" | "yes") => return Said::Message(asked),
            (Some(_), "" | "n" | "no") => return Said::NotSent,
            (None, "y" | "yes") if !waiting.is_empty() => return Said::Answer(ApprovalAnswerKind::Allow),
            (None, "s" | "session") if misread::takes(waiting, ApprovalAnswerKind::AllowSession) => {
                return Said::Answer(ApprovalAnswerKind::AllowSession);
            }
            (None, "n" | "no") if !waiting.is_empty() => return Said::Answer(ApprovalAnswerKind::Deny),
            (_, "") => return Said::Nothing,
            (_, "/quit" | "/exit") => return Said::Leave,
            // Any other line is a message of its own.
            _ => {}
        }
        if let Some(problem) = unknown_command(&text) {
            // A second question would take the word that is meant for the first.
            if !waiting.is_empty() {
                return Said::NoAnswer(format!("Not sent. {problem}"));
            }
            return Said::Unknown(self.doubt(text, &problem));
        }
        if let Some(decision) = Decision::read(&text) {
            return Said::Decide(decision);
        }
        if let Some(problem) = misread::problem(&text, waiting) {
            return Said::NoAnswer(problem);
        }
        if let Some(path) = text
            .strip_prefix("/attach")
            .filter(|rest| !rest.starts_with(|c: char| c != ' '))
        {
            return Said::Attach(path.trim().to_owned());
        }
        if let Some(words) = after(&text, "/queue") {
            return Said::Queue(queue_ask(words));
        }
        if let Some(words) = after(&text, "/tool") {
            return Said::Tool(ToolAsk::read(words));
        }
        if let Some(words) = after(&text, "/thoughts") {
            return Said::Thoughts(ThoughtsAsk::read(words));
        }
        if let Some(words) = after(&text, "/steer").filter(|words| !words.is_empty()) {
            return Said::Steer(words.to_owned());
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
    /// It was sent already, under these ids: sent again it is the same message.
    pub ids: Option<Ids>,
}

impl Outgoing {
    pub const fn new(text: String, files: Vec<Chosen>) -> Self {
        Self { text, files, ids: None }
    }
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
        let unsent = self.0.iter().filter(|message| message.ids.is_none());
        unsent.map(|message| message.text.as_str())
    }

    /// All of them, in their order.
    pub fn all(&self) -> impl Iterator<Item = &Outgoing> {
        self.0.iter()
    }

    /// Takes out the message with this number of the list.
    pub fn take(&mut self, number: usize) -> Option<Outgoing> {
        self.0.remove(number.checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f43_a_line_means_the_same_at_any_time() {
        let read = |line: &str| Reader::default().read(line, &[]);
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
    fn wb1_the_queue_is_listed_and_changed_and_a_line_can_be_for_the_run() {
        let read = |line: &str| Reader::default().read(line, &[]);
        assert_eq!(read("/queue"), Said::Queue(QueueAsk::List));
        assert_eq!(read("/Queue  drop 2"), Said::Queue(QueueAsk::Drop(2)));
        assert_eq!(read("/queue edit 1"), Said::Queue(QueueAsk::Edit(1)));
        assert_eq!(
            read("/queue add then\\\nthis"),
            Said::Queue(QueueAsk::Add("then\nthis".to_owned()))
        );
        for unclear in ["/queue edit", "/queue drop x", "/queue add", "/queue all"] {
            assert_eq!(read(unclear), Said::Queue(QueueAsk::Unclear), "{unclear}");
        }
        assert_eq!(read("/steer use tabs"), Said::Steer("use tabs".to_owned()));
        assert_eq!(read("/steer"), Said::Command("/steer".to_owned()));
        assert!(matches!(read("/queues"), Said::Unknown(_)));
        assert_eq!(read("/tool 3"), Said::Tool(ToolAsk::Show(3)));
        assert!(matches!(read("/tools"), Said::Unknown(_)));
        assert_eq!(read("/thoughts on"), Said::Thoughts(ThoughtsAsk::Switch(true)));
        assert_eq!(read("/thinking high"), Said::Command("/thinking high".to_owned()));

        let mut queue = Queue::default();
        for text in ["a", "b", "c"] {
            queue.push(Outgoing::new(text.to_owned(), Vec::new()));
        }
        assert!(queue.take(0).is_none() && queue.take(4).is_none());
        assert_eq!(queue.take(2).map(|message| message.text).as_deref(), Some("b"));
        assert_eq!(queue.texts().collect::<Vec<_>>(), ["a", "c"]);
        let ids = Ids::from("run", "message");
        queue.put_back(Outgoing {
            ids: Some(ids),
            ..Outgoing::new("sent".to_owned(), Vec::new())
        });
        assert_eq!(queue.texts().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(queue.all().count(), 3);
    }

    #[test]
    fn ap12_yes_and_no_answer_the_call_that_waits() {
        let mut reader = Reader::default();
        let asked = &misread::tests::asked(&["allow_session"])[..];
        assert_eq!(reader.read("Y", asked), Said::Answer(ApprovalAnswerKind::Allow));
        assert_eq!(reader.read("s", asked), Said::Answer(ApprovalAnswerKind::AllowSession));
        assert_eq!(reader.read("s", &[]), Said::Message("s".to_owned()));
        assert_eq!(reader.read("no", asked), Said::Answer(ApprovalAnswerKind::Deny));
        assert!(matches!(reader.read("yes please", asked), Said::NoAnswer(_)));
        assert_eq!(
            reader.read("is it safe?", asked),
            Said::Message("is it safe?".to_owned())
        );
        let once = &misread::tests::asked(&[])[..];
        assert!(matches!(reader.read("s", once), Said::NoAnswer(_)));
        for asks in [asked, &[]] {
            assert!(matches!(reader.read("allow K7Q2A", asks), Said::Decide(_)));
        }
        let question = reader.doubt("allow peace".to_owned(), "No call waits.");
        assert_eq!(question, "No call waits. Send it as a message? [y = yes]");
        assert_eq!(reader.read("y", asked), Said::Message("allow peace".to_owned()));
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
            assert!(matches!(reader.read("/stauts now", &[]), Said::Unknown(_)));
            assert_eq!(reader.read(answer, &[]), said);
        }
    }

    #[test]
    fn ap12_f44_at_a_question_an_unknown_command_asks_nothing_more() {
        let asked = &misread::tests::asked(&[])[..];
        let mut reader = Reader::default();
        let Said::NoAnswer(text) = reader.read("/approve K7Q2A", asked) else {
            panic!("it is sent, or asks");
        };
        assert!(text.starts_with("Not sent. There is no command `/approve`."), "{text}");
        assert_eq!(reader.read("y", asked), Said::Answer(ApprovalAnswerKind::Allow));
    }

    #[test]
    fn f43_the_queue_keeps_its_order_and_has_a_bound() {
        let mut queue = Queue::default();
        for number in 0..MOST_QUEUED {
            assert!(!queue.is_full());
            let text = number.to_string();
            queue.push(Outgoing::new(text, Vec::new()));
        }
        assert!(queue.is_full());
        assert_eq!(queue.pop().map(|message| message.text).as_deref(), Some("0"));
        assert_eq!(queue.texts().next(), Some("1"));
        assert!(!queue.is_full());
    }
}
