//! Output that is printed above the line that a person is typing. Lines wait here until the line editor paints its prompt: it
//! writes them in front of it, so nothing else writes to the terminal meanwhile. Knows no editor and no gateway.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct Above {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// A sequence for the terminal that shows nothing, such as its bell.
    sign: &'static str,
    /// Rows above the cursor that are removed before everything else.
    erased: usize,
    text: String,
    /// Lines have arrived since the last call.
    called: bool,
    /// The editor paints.
    open: bool,
}

impl Above {
    /// Adds text. A piece without a line end waits for the rest of its line.
    pub fn push(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.state();
        state.text.push_str(text);
        state.called = true;
        self.arrived.notify_one();
    }

    /// Removes the `rows` rows above the cursor, and those that are removed already, before anything else is printed.
    pub fn erase(&self, rows: usize) {
        self.state().erased += rows;
    }

    /// Sends a sequence that shows nothing, with the next picture.
    pub fn sign(&self, sign: &'static str) {
        self.state().sign = sign;
        self.repaint();
    }

    /// The editor paints again, although no lines have arrived.
    pub fn repaint(&self) {
        self.state().called = true;
        self.arrived.notify_one();
    }

    /// The whole lines that wait.
    pub fn take_lines(&self) -> String {
        let mut state = self.state();
        let end = state.text.rfind('\n').map_or(0, |end| end + 1);
        let rest = state.text.split_off(end);
        let lines = std::mem::replace(&mut state.text, rest);
        // It is about the lines, so they are there first.
        let lines = lines + std::mem::take(&mut state.sign);
        match std::mem::take(&mut state.erased) {
            0 => lines,
            rows => format!("\u{1b}[{rows}A\r\u{1b}[J{lines}"),
        }
    }

    /// Everything that waits, in whole lines.
    pub fn take_all(&self) -> String {
        let mut text = self.take_lines();
        let rest = std::mem::take(&mut self.state().text);
        if !rest.is_empty() {
            text.push_str(&rest);
            text.push('\n');
        }
        text
    }

    /// Whether the editor has a line open. While it has none, what arrives waits for its next prompt.
    pub fn set_open(&self, open: bool) {
        self.state().open = open;
        self.arrived.notify_one();
    }

    /// Blocks until lines have arrived that an open editor should paint.
    pub fn wait(&self) {
        let mut state = self.state();
        while !(state.open && state.called) {
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.called = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f43_only_whole_lines_are_printed_above_the_prompt() {
        let above = Above::default();
        above.push("one\ntw");
        assert_eq!(above.take_lines(), "one\n");
        assert_eq!(above.take_lines(), "");
        above.push("o\n");
        above.push("rest");
        above.erase(1);
        above.erase(1);
        assert_eq!(above.take_lines(), "\u{1b}[2A\r\u{1b}[Jtwo\n");
        assert_eq!(above.take_all(), "rest\n");
        assert_eq!(above.take_all(), "");
    }

    #[test]
    fn ct7_the_bell_comes_after_the_lines_that_it_is_about() {
        let above = Above::default();
        above.sign("\u{7}");
        above.push("the answer\n");
        assert_eq!(above.take_lines(), "the answer\n\u{7}");
        assert_eq!(above.take_lines(), "");
    }
}
