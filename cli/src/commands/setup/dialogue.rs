//! Questions with defaults. Without a person to ask, each has its default.

use std::io::{self, BufRead};

use crate::ask;
use crate::output::Output;

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
        if !self.asks {
            return None;
        }
        self.out.prompt(&format!("{question}: "));
        let mut line = String::new();
        let _ = io::stdin().lock().read_line(&mut line);
        Some(line.trim().to_owned()).filter(|line| !line.is_empty())
    }

    /// Yes, unless the person says something else.
    pub fn yes(&self, question: &str) -> bool {
        let answer = self.line(&format!("{question} [Y/n]"));
        answer.is_none_or(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"))
    }
}
