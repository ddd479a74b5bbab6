//! The status line of `gsv chat`: what the agent does now, then the model, the agent, the conversation, the machines, the cost and
//! how full the context is. Pure: the time since the run began is an argument, and a line never has more columns than it may.

use std::time::Duration;

use unicode_width::UnicodeWidthChar;

use super::assembler::Show;
use super::turn::Draw;
use crate::clean::one_line;
use crate::units;
use crate::width::{columns, fit};

/// One picture of the spinner, and how long it is shown.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
pub const FRAME: Duration = Duration::from_millis(100);
const BETWEEN: &str = " · ";
/// The longest names that are shown.
const NAME_COLUMNS: usize = 32;
/// More machines are counted, not named.
const NAMED_MACHINES: usize = 2;

/// What the gateway says about the conversation. What is not known is not shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    pub agent: String,
    pub session: String,
    pub model: Option<String>,
    /// What the conversation itself says about its calls: `mode full`. Absent: as configured.
    pub mode: Option<String>,
    /// The machines that are connected.
    pub machines: Option<Vec<String>>,
    pub cost_usd: Option<f64>,
    pub context_tokens: Option<u64>,
    pub context_window: Option<u64>,
}

/// What the run under way does now.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Work {
    Sending,
    Thinking,
    Writing,
    Calls,
    /// A question waits for the person's word.
    Asking,
    Stopping,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    pub facts: Facts,
    work: Option<Work>,
    /// Calls that have begun and not ended: their ids and tools.
    calls: Vec<(String, String)>,
    /// A step of the run has ended since the facts were asked for.
    is_stale: bool,
}

impl Status {
    /// A message is being sent.
    pub fn begin(&mut self) {
        self.work = Some(Work::Sending);
        self.calls.clear();
    }

    /// The run has ended, or is not followed any more.
    pub fn end(&mut self) {
        self.work = None;
        self.calls.clear();
        self.is_stale = true;
    }

    pub const fn is_busy(&self) -> bool {
        self.work.is_some()
    }

    /// Whether the facts may have changed. Asked once.
    pub fn take_stale(&mut self) -> bool {
        std::mem::take(&mut self.is_stale)
    }

    pub fn note_stale(&mut self) {
        self.is_stale = true;
    }

    /// A question waits for a word, or no longer does.
    pub fn note_asking(&mut self, asks: bool) {
        match &self.work {
            Some(Work::Asking) if !asks => self.work = Some(self.usual()),
            Some(_) if asks => self.work = Some(Work::Asking),
            _ => {}
        }
    }

    pub fn note_stopping(&mut self) {
        if self.work.is_some() {
            self.work = Some(Work::Stopping);
        }
    }

    /// Follows a run by what is drawn of it.
    pub fn note(&mut self, draw: &Draw) {
        let Some(before) = self.work.clone() else { return };
        match draw {
            Draw::Sent(_) | Draw::Show(Show::Restart | Show::Resuming | Show::Thinking(_)) => {
                self.work = Some(Work::Thinking);
            }
            Draw::Show(Show::Text(_)) => self.work = Some(Work::Writing),
            Draw::Show(Show::EndOfText) => {
                self.work = Some(self.usual());
                self.is_stale = true;
            }
            Draw::Show(Show::Tool(tool)) => {
                self.calls.retain(|(id, _)| *id != tool.call_id.0);
                if tool.phase == gsv_protocol::types::ChatToolPhase::Started {
                    self.calls.push((tool.call_id.0.clone(), tool.name.clone()));
                }
                self.is_stale = true;
                self.work = Some(self.usual());
            }
            _ => {}
        }
        // Only the end of the question or of the run changes these.
        if matches!(before, Work::Asking | Work::Stopping) {
            self.work = Some(before);
        }
    }

    fn usual(&self) -> Work {
        if self.calls.is_empty() {
            Work::Thinking
        } else {
            Work::Calls
        }
    }

    /// The line, without its style. `elapsed`: since the message was sent.
    pub fn line(&self, elapsed: Duration, width: usize) -> String {
        let mut parts = self.parts(elapsed);
        for step in STEPS {
            if total(&parts) <= width {
                break;
            }
            if let Some(part) = parts.iter_mut().find(|part| part.kind == step.0) {
                part.text = if step.1 {
                    std::mem::take(&mut part.short)
                } else {
                    String::new()
                };
            }
        }
        fit(&joined(&parts), width)
    }

    fn parts(&self, elapsed: Duration) -> Vec<Part> {
        let facts = &self.facts;
        let name = |text: &str| one_line(text, NAME_COLUMNS);
        let mut parts = vec![
            Part::new(Kind::Work, self.work_words(elapsed), ""),
            Part::new(Kind::Mode, facts.mode.clone().unwrap_or_default(), ""),
            Part::new(Kind::Model, facts.model.as_deref().map(name).unwrap_or_default(), ""),
            Part::new(Kind::Agent, name(&facts.agent), ""),
            Part::new(Kind::Session, name(&facts.session), ""),
        ];
        if let Some(machines) = &facts.machines {
            let short = match machines.len() {
                0 => "no machine".to_owned(),
                1 => "1 machine".to_owned(),
                count => format!("{count} machines"),
            };
            let long = if (1..=NAMED_MACHINES).contains(&machines.len()) {
                machines.iter().map(|id| name(id)).collect::<Vec<_>>().join(", ")
            } else {
                short.clone()
            };
            let short = if cells(&short) < cells(&long) {
                short
            } else {
                long.clone()
            };
            parts.push(Part::new(Kind::Machines, long, &short));
        }
        // A model without a known price counts as 0, which is not its price.
        let cost = facts.cost_usd.filter(|cost| *cost > 0.0).map(cents);
        parts.push(Part::new(Kind::Cost, cost.unwrap_or_default(), ""));
        if let (Some(tokens), Some(window @ 1..)) = (facts.context_tokens, facts.context_window) {
            let percent = tokens.saturating_mul(100).checked_div(window).unwrap_or(0).min(999);
            parts.push(Part::new(
                Kind::Context,
                format!("context {percent}%"),
                &format!("{percent}%"),
            ));
        }
        parts
    }

    /// `⠹ Bash on laptop 12 s`. Empty while no run is under way.
    fn work_words(&self, elapsed: Duration) -> String {
        let words = match &self.work {
            None => return String::new(),
            Some(Work::Asking) => return "? waits for your word".to_owned(),
            Some(Work::Stopping) => "stopping".to_owned(),
            Some(Work::Sending) => "sending".to_owned(),
            Some(Work::Thinking) => "thinking".to_owned(),
            Some(Work::Writing) => "writing".to_owned(),
            Some(Work::Calls) => match self.calls.as_slice() {
                [(_, tool)] => one_line(tool, NAME_COLUMNS),
                calls => format!("{} calls", calls.len()),
            },
        };
        let frame = elapsed.as_millis() / FRAME.as_millis() % FRAMES.len() as u128;
        let frame = usize::try_from(frame).map_or("", |frame| FRAMES[frame]);
        format!("{frame} {words} {}", units::in_seconds(units::millis(elapsed)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Work,
    /// Never gives way.
    Mode,
    Model,
    Agent,
    Session,
    Machines,
    Cost,
    Context,
}

struct Part {
    kind: Kind,
    text: String,
    /// The shorter form.
    short: String,
}

impl Part {
    fn new(kind: Kind, text: String, short: &str) -> Self {
        let short = short.to_owned();
        Self { kind, text, short }
    }
}

/// What gives way first on a narrow terminal: into its short form, or wholly.
const STEPS: [(Kind, bool); 8] = [
    (Kind::Session, false),
    (Kind::Machines, true),
    (Kind::Agent, false),
    (Kind::Context, true),
    (Kind::Machines, false),
    (Kind::Cost, false),
    (Kind::Model, false),
    (Kind::Context, false),
];

/// In whole cents: more digits only distract while they change.
fn cents(cost: f64) -> String {
    if cost < 0.01 {
        "<$0.01".to_owned()
    } else {
        format!("${cost:.2}")
    }
}

fn joined(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| part.text.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    texts.join(BETWEEN)
}

fn total(parts: &[Part]) -> usize {
    cells(&joined(parts))
}

/// The columns that a text may take: terminals do not agree on characters that are joined.
fn cells(text: &str) -> usize {
    let each = text.chars().map(|c| c.width().unwrap_or(0)).sum();
    columns(text).max(each)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
