//! The text that an editor opens, in a file that only this user can read. It is kept when what was typed could not be stored.

use std::fs;
use std::path::PathBuf;

use crate::editor;
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths::{ensure_private_dir, shell, state_dir, write_private_file};

pub struct Draft {
    path: PathBuf,
    /// The command that needs no editor, as a sentence.
    otherwise: String,
}

impl Draft {
    /// The name tells the editor the kind of file: `config-edit` and `json`.
    pub fn new(name: &str, extension: &str, otherwise: impl Into<String>) -> Outcome<Self> {
        let dir = state_dir()?;
        ensure_private_dir(&dir)?;
        Ok(Self {
            path: dir.join(format!("{name}-{}.{extension}", std::process::id())),
            otherwise: otherwise.into(),
        })
    }

    /// Opens the text in the editor and gives what was saved. A draft in which nothing was typed is not kept.
    pub fn edit(&self, text: &str, is_untouched: impl Fn(&str) -> bool) -> Outcome<String> {
        let doing = format!("write {}", self.path.display());
        write_private_file(&self.path, text.as_bytes()).or_fail(&doing, "Free some space, or check the folder.")?;
        if let Err(failure) = editor::open(&self.path, &self.otherwise) {
            if fs::read(&self.path).is_ok_and(|bytes| is_untouched(&String::from_utf8_lossy(&bytes))) {
                self.remove();
                return Err(failure);
            }
            return Err(self.kept(failure));
        }
        let doing = format!("read {}", self.path.display());
        let bytes = fs::read(&self.path).or_fail(&doing, "Save the file under its own name.")?;
        String::from_utf8(bytes).map_err(|_| {
            self.kept(Failure::usage(
                "The file is not UTF-8 text, so nothing was stored.",
                "Save it as UTF-8.",
            ))
        })
    }

    /// What was typed is not lost.
    pub fn kept(&self, mut failure: Failure) -> Failure {
        failure
            .lines
            .push(format!("Your text is kept in {}", shell(&self.path)));
        failure
    }

    pub fn remove(&self) {
        // A file that stays holds no secret.
        let _ = fs::remove_file(&self.path);
    }
}
