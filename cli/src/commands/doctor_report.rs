//! What `gsv doctor` prints: a line for each check, or JSON, and whether all passed. Checks nothing itself.

use serde::Serialize;
use serde_json::json;

use crate::clean::one_line;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    level: Level,
    found: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
}

/// The checks so far.
pub struct Report {
    out: Output,
    checks: Vec<Check>,
}

impl Report {
    pub fn new(out: Output) -> Self {
        Self {
            out,
            checks: Vec::new(),
        }
    }

    pub fn ok(&mut self, name: &'static str, found: impl Into<String>) {
        self.add(name, Level::Ok, found.into(), String::new());
    }

    pub fn warn(&mut self, name: &'static str, found: impl Into<String>, next: impl Into<String>) {
        self.add(name, Level::Warn, found.into(), next.into());
    }

    pub fn fail(&mut self, name: &'static str, found: impl Into<String>, next: impl Into<String>) {
        self.add(name, Level::Fail, found.into(), next.into());
    }

    pub fn failure(&mut self, name: &'static str, failure: Failure) {
        self.fail(name, failure.message, failure.next);
    }

    /// Prints each check as soon as it is known, because some take seconds.
    fn add(&mut self, name: &'static str, level: Level, found: String, next: String) {
        if !self.out.json {
            let (style, mark) = match level {
                Level::Ok => (Style::Green, "ok  "),
                Level::Warn => (Style::Yellow, "warn"),
                Level::Fail => (Style::Red, "fail"),
            };
            let (mark, found) = (self.out.paint(style, mark), one_line(&found, usize::MAX));
            self.out.line(&format!("{mark}  {name:9}  {found}"));
            if !next.is_empty() {
                self.out
                    .line(&format!("                 → {}", one_line(&next, usize::MAX)));
            }
        }
        self.checks.push(Check {
            name,
            level,
            found,
            next,
        });
    }

    pub fn finish(self) -> Outcome {
        let count = |level| self.checks.iter().filter(|check| check.level == level).count();
        let (failed, warned) = (count(Level::Fail), count(Level::Warn));
        let words = if warned == 0 {
            "No problems found."
        } else {
            "Nothing is broken."
        };
        self.out.show(json!({ "ok": failed == 0, "checks": self.checks }), |_| {
            if failed == 0 {
                self.out.aside(words);
            }
        });
        if failed == 0 {
            return Ok(());
        }
        Err(Failure::failed(
            format!("{failed} of {} checks failed.", self.checks.len()),
            "Fix them as the lines above say, then run `gsv doctor` again.",
        ))
    }
}
