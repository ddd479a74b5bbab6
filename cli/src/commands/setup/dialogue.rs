//! Questions with defaults. Without a person to ask, each has its default.

use std::io::{self, BufRead};

use crate::ask;
use crate::output::Output;

/// A question is asked so often; then the person means something that setup does not understand.
pub const TRIES: usize = 5;

pub struct Dialogue {
    pub out: Output,
    pub asks: bool,
}

impl Dialogue {
    /// `may_ask`: false if the person said that nothing is to be asked.
    pub fn new(out: Output, may_ask: bool) -> Self {
        Self {
            // Documents are printed at the end.
            out: out.for_people(),
            asks: may_ask && ask::is_possible(out),
        }
    }

    /// What was typed. None: nothing, or there is no one to ask.
    pub fn line(&self, question: &str) -> Option<String> {
        self.typed(question)?.filter(|line| !line.is_empty())
    }

    /// The outer None: there is no one to ask. The inner None: the input has ended.
    fn typed(&self, question: &str) -> Option<Option<String>> {
        if !self.asks {
            return None;
        }
        self.out.prompt(&format!("{question}: "));
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).unwrap_or(0);
        Some((read > 0).then(|| line.trim().to_owned()))
    }

    /// Without a person to ask: yes. The end of the input is no yes.
    pub fn yes(&self, question: &str) -> bool {
        self.agrees(&format!("{question} [Y/n]"), true)
    }

    /// Without a person to ask: no.
    pub fn no(&self, question: &str) -> bool {
        !self.agrees(&format!("{question} [y/N]"), false)
    }

    fn agrees(&self, question: &str, default: bool) -> bool {
        for _ in 0..TRIES {
            let Some(answer) = self.typed(question) else {
                return default;
            };
            match answer.as_deref().map(str::to_lowercase).as_deref() {
                Some("") => return default,
                Some("y" | "yes") => return true,
                None | Some("n" | "no") => return false,
                Some(_) => self.out.note("Type y or n."),
            }
        }
        false
    }
}
