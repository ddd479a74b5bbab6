//! Tells the person that a long answer is complete: by the terminal's bell, or by a notification of the desktop (OSC 9). Pure.

use std::time::Duration;

/// A shorter answer is waited for at the terminal.
pub const AFTER: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    Off,
    Bell,
    Osc9,
}

impl Notify {
    pub const NAMES: [&str; 3] = ["bell", "osc9", "off"];

    /// Absent: the bell.
    pub fn read(value: Option<&str>) -> Self {
        match value {
            Some("off") => Self::Off,
            Some("osc9") => Self::Osc9,
            _ => Self::Bell,
        }
    }

    /// What the terminal is sent after an answer that took so long. The words are fixed: nothing of the answer becomes part of a sequence.
    pub fn sign(self, took: Duration, after: Duration) -> Option<&'static str> {
        let sign = match self {
            Self::Off => return None,
            Self::Bell => "\u{7}",
            Self::Osc9 => "\u{1b}]9;GSV: the answer is complete\u{7}",
        };
        (took >= after).then_some(sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ct7_only_a_long_answer_is_told_and_only_as_the_person_wants_it() {
        let long = Duration::from_secs(10);
        assert_eq!(Notify::read(None).sign(long, AFTER), Some("\u{7}"));
        assert_eq!(Notify::read(None).sign(Duration::from_millis(9_999), AFTER), None);
        assert_eq!(Notify::read(Some("off")).sign(long, AFTER), None);
        assert!(
            Notify::read(Some("osc9"))
                .sign(long, AFTER)
                .unwrap()
                .starts_with("\u{1b}]9;")
        );
    }
}
