//! Questions with defaults. Without a person to ask, each has its default.

use std::io::{self, BufRead};

use crate::ask;
use crate::output::Output;

/// Give up after this many unclear answers.
pub const TRIES: usize = 5;

enum Typed {
    /// There is no one to ask.
    NotAsked,
    /// The input has ended.
    End,
    Line(String),
}

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
        match self.typed(question) {
            Typed::Line(line) if !line.is_empty() => Some(line),
            _ => None,
        }
    }

    fn typed(&self, question: &str) -> Typed {
        if !self.asks {
            return Typed::NotAsked;
        }
        self.out.prompt(&format!("{question}: "));
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).unwrap_or(0);
        if read == 0 {
            return Typed::End;
        }
        Typed::Line(line.trim().to_owned())
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
            let answer = match self.typed(question) {
                Typed::NotAsked => return default,
                Typed::End => return false,
                Typed::Line(line) => line.to_lowercase(),
            };
            match answer.as_str() {
                "" => return default,
                "y" | "yes" => return true,
                "n" | "no" => return false,
                _ => self.out.note("Type y or n."),
            }
        }
        false
    }
}
