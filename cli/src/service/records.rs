//! What GSV did at the service manager of this machine, in the state folder: written before it is done, so that a command that was
//! interrupted can be repeated, and removed last.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::spec::Spec;
use crate::exit::Outcome;
use crate::{paths, private_file};

const ENDING: &str = ".json";
const LINGER: &str = "linger";

/// An installed service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub spec: Spec,
    /// The service has started with it.
    pub applied: bool,
}

pub struct Records {
    folder: PathBuf,
}

impl Records {
    pub fn find() -> Outcome<Self> {
        Ok(Self {
            folder: paths::state_dir()?.join("services"),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{ENDING}"))
    }

    /// A record that can't be read counts as none: the next install writes it again.
    pub fn get(&self, name: &str) -> Option<Record> {
        let text = private_file::read_private(&self.file(name), "").ok()??;
        serde_json::from_str(&text).ok()
    }

    pub fn put(&self, record: &Record) -> Outcome {
        self.ensure()?;
        let text = serde_json::to_string_pretty(record).unwrap_or_default();
        private_file::write(&self.file(&record.spec.name), text)
    }

    /// The folder goes with the last record.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.file(name));
        let _ = fs::remove_dir(&self.folder);
    }

    /// The names of the services of this state folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries
            .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(ENDING)?.to_owned()))
            .collect();
        names.sort();
        names
    }

    /// Whether GSV let this user's services run without a login.
    pub fn has_linger(&self) -> bool {
        self.folder.join(LINGER).is_file()
    }

    pub fn set_linger(&self, on: bool) -> Outcome {
        if on {
            self.ensure()?;
            return private_file::write(&self.folder.join(LINGER), "");
        }
        let _ = fs::remove_file(self.folder.join(LINGER));
        Ok(())
    }

    fn ensure(&self) -> Outcome {
        if let Some(home) = self.folder.parent() {
            paths::ensure_private_dir(home)?;
        }
        paths::ensure_private_dir(&self.folder)
    }
}
