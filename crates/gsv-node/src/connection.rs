//! What a line of the node's log says of the connection to the gateway, in fields of its own, so that a program reads it without the
//! message. PURE.

use serde_json::Value;

const STATE: &str = "connection";
const REASON: &str = "reason";
const UP: &str = "up";
const DOWN: &str = "down";
const ENDED: &str = "ended";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    Up,
    /// The node tries again.
    Down {
        reason: String,
    },
    /// The node has stopped.
    Ended,
}

impl Connection {
    /// The fields of a line that says this.
    pub(crate) fn fields(&self) -> Vec<(&'static str, Value)> {
        let state = |state: &str| (STATE, Value::from(state));
        match self {
            Self::Up => vec![state(UP)],
            Self::Down { reason } => vec![state(DOWN), (REASON, Value::from(reason.as_str()))],
            Self::Ended => vec![state(ENDED)],
        }
    }

    /// `None`: the line says nothing of it.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        match line.get(STATE)?.as_str()? {
            UP => Some(Self::Up),
            DOWN => Some(Self::Down {
                reason: line.get(REASON).and_then(Value::as_str).unwrap_or_default().to_owned(),
            }),
            ENDED => Some(Self::Ended),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Level, Log};
    use crate::mask::Mask;

    #[test]
    fn what_a_line_of_the_log_says_is_read_back() {
        let dir = tempfile::TempDir::new().unwrap();
        let log = Log::open(dir.path().join("node.log"), Mask::default()).unwrap();
        let said = [
            Connection::Up,
            Connection::Down {
                reason: "the peer is gone".to_owned(),
            },
            Connection::Ended,
        ];
        for each in &said {
            log.write(Level::Info, "any words", &each.fields());
        }
        log.write(Level::Info, "Connected as a to gateway 1.", &[]);
        let lines = log.tail(9).unwrap().lines;
        let read: Vec<_> = lines.iter().filter_map(|line| Connection::of_line(line)).collect();
        assert_eq!(read, said);
        assert_eq!(Connection::of_line("no JSON"), None);
        assert_eq!(Connection::of_line(r#"{"connection": "other"}"#), None);
    }
}
