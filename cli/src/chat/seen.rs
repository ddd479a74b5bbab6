//! Up to where each conversation was shown at a prompt, in a file of the state folder, so that a chat that is opened again shows only what
//! is new. It is a convenience: a file that cannot be read or written only shows something a second time.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::paths::write_private_file;

/// Conversations that are remembered; those with the smallest names go first.
const MOST: usize = 200;

pub struct Seen {
    file: PathBuf,
    /// The gateway and the conversation.
    name: String,
}

impl Seen {
    pub fn new(file: PathBuf, url: &str, session: &str) -> Self {
        Self {
            file,
            name: format!("{url} {session}"),
        }
    }

    fn all(&self) -> BTreeMap<String, u64> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// `last`: the current end of the log. A position beyond it is of a log that is gone.
    pub fn upto(&self, last: u64) -> u64 {
        self.all()
            .get(&self.name)
            .copied()
            .filter(|seq| *seq <= last)
            .unwrap_or(0)
    }

    pub fn note(&self, seq: u64) {
        let mut all = self.all();
        if all.insert(self.name.clone(), seq) == Some(seq) {
            return;
        }
        while all.len() > MOST {
            let Some(first) = all.keys().find(|name| **name != self.name).cloned() else {
                break;
            };
            all.remove(&first);
        }
        if let Ok(text) = serde_json::to_string(&all) {
            let _ = write_private_file(&self.file, text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

    use super::*;

    #[test]
    fn sc8_what_was_shown_is_remembered_by_gateway_and_conversation_within_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("seen");
        let main = Seen::new(file.clone(), "ws://a", "main");
        assert_eq!(main.upto(9), 0);
        main.note(7);
        assert_eq!((main.upto(9), main.upto(6)), (7, 0));
        assert_eq!(Seen::new(file.clone(), "ws://b", "main").upto(9), 0);
        for number in 0..=MOST {
            Seen::new(file.clone(), "ws://a", &format!("agent:{number}")).note(1);
        }
        main.note(8);
        assert_eq!(main.upto(9), 8);
        let stored: BTreeMap<String, u64> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(stored.len(), MOST);
        fs::write(&file, "not json").unwrap();
        assert_eq!(main.upto(9), 0);
    }
}
