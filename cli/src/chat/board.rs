//! Holds what the status line of the chat shows (model, session, cost), and wakes the line editor, which paints it below the line that is being
//! typed, when that changes. Only a terminal whose editor can repaint has one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::status::{Facts, Status};
use super::turn::Draw;
use crate::above::Above;
use crate::output::{Output, Style};

/// A smaller terminal needs its rows for the conversation.
const LEAST_ROWS: usize = 5;
const LEAST_COLUMNS: usize = 12;

#[derive(Debug)]
pub struct Board {
    above: &'static Above,
    terminal: Output,
    /// The editor can repaint.
    live: AtomicBool,
    /// The editor's last picture has the line.
    shown: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    status: Status,
    began: Instant,
}

impl Board {
    pub fn new(above: &'static Above, terminal: Output) -> Self {
        Self {
            above,
            terminal,
            live: AtomicBool::new(false),
            shown: AtomicBool::new(false),
            state: Mutex::new(State {
                status: Status::default(),
                began: Instant::now(),
            }),
        }
    }

    pub fn set_live(&self) {
        self.live.store(true, Ordering::Relaxed);
    }

    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    /// Whether the next picture has the line.
    pub fn place(&self) -> bool {
        let (columns, rows) = self.terminal.size();
        let fits = self.is_live() && columns >= LEAST_COLUMNS && rows >= LEAST_ROWS && !self.line(columns).is_empty();
        self.shown.store(fits, Ordering::Relaxed);
        fits
    }

    /// Whether the editor has left the line on the screen.
    pub fn take_shown(&self) -> bool {
        self.shown.swap(false, Ordering::Relaxed)
    }

    /// The line with its style.
    pub fn paint(&self) -> String {
        let line = self.line(self.terminal.size().0);
        let (sign, rest) = match line.split_once(' ') {
            Some((sign, rest)) if self.state().status.is_busy() => (sign, format!(" {rest}")),
            _ => ("", line),
        };
        let sign = if sign.is_empty() {
            String::new()
        } else {
            self.terminal.paint(Style::Cyan, sign)
        };
        format!("{sign}{}", self.terminal.paint(Style::Dim, &rest))
    }

    fn line(&self, columns: usize) -> String {
        let state = self.state();
        // The last column stays free: a full row would begin another one.
        state.status.line(state.began.elapsed(), columns.saturating_sub(1))
    }

    pub fn facts(&self) -> Facts {
        self.state().status.facts.clone()
    }

    pub fn set_facts(&self, facts: Facts) {
        self.change(|status| status.facts = facts);
    }

    /// A message is being sent.
    pub fn begin(&self) {
        self.state().began = Instant::now();
        self.change(Status::begin);
    }

    pub fn end(&self) {
        self.change(Status::end);
    }

    pub fn note(&self, draw: &Draw) {
        self.change(|status| status.note(draw));
    }

    pub fn note_asking(&self, asks: bool) {
        self.change(|status| status.note_asking(asks));
    }

    pub fn note_stopping(&self) {
        self.change(Status::note_stopping);
    }

    pub fn note_stale(&self) {
        self.state().status.note_stale();
    }

    pub fn take_stale(&self) -> bool {
        self.state().status.take_stale()
    }

    /// Paints the next picture of the spinner.
    pub fn tick(&self) {
        if self.is_live() && self.state().status.is_busy() {
            self.above.repaint();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Status)) {
        let mut state = self.state();
        let before = state.status.clone();
        change(&mut state.status);
        let is_changed = state.status != before;
        drop(state);
        if is_changed && self.is_live() {
            self.above.repaint();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
