//! Files in folders of this machine, for skills and imports. Follows no symbolic link, waits for no pipe, and names everything
//! that it skips with the reason. Sends nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gsv_protocol::limits;
use gsv_protocol::types::SkillFile;
use rustix::fs::OFlags;

use crate::exit::{Failure, OrFail, Outcome};

const MAX_NAME_BYTES: usize = 200;
/// A folder with more entries is surely not the one that was meant.
const MAX_ENTRIES: usize = 20_000;
/// Frame bytes that are reserved for everything but the content.
pub const ENVELOPE_BYTES: u64 = 8_192;

/// A text file: its path below the folder that is read, with `/`, and its content.
pub type TextFile = SkillFile;

/// A file or folder that is not taken. `why` continues the sentence that `path` begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub path: String,
    pub why: String,
}

pub struct Entry {
    pub name: String,
    pub path: PathBuf,
    pub is_folder: bool,
}

/// Reads folders and collects what it skips.
#[derive(Debug, Default)]
pub struct Reader {
    pub skipped: Vec<Skipped>,
    /// Hidden files and folders, by path.
    pub hidden: Vec<String>,
    entries: usize,
}

impl Reader {
    pub fn skip(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.skipped.push(Skipped {
            path: path.into(),
            why: why.into(),
        });
    }

    /// The plain files and folders in `folder`, by name. `shown` is the path of the folder in reasons: empty, or with `/`.
    pub fn entries(&mut self, folder: &Path, shown: &str) -> Outcome<Vec<Entry>> {
        let next = "Check its permissions.";
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).or_fail(format_args!("read {}", folder.display()), next)? {
            let entry = entry.or_fail(format_args!("read {}", folder.display()), next)?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(Failure::usage(
                    format!("There are more than {MAX_ENTRIES} files in that folder."),
                    "Name the agent's or the skill's own folder, not one above it.",
                ));
            }
            let raw = entry.file_name();
            let path = format!("{shown}{}", raw.to_string_lossy());
            // The type of the entry itself: a link is a link, whatever it points to.
            let kind = entry.file_type().or_fail(format_args!("look at {path}"), next)?;
            let problem = match raw.to_str() {
                Some(name) if name.starts_with('.') => {
                    self.hidden.push(path);
                    continue;
                }
                Some(name) => name_problem(name),
                None => Some("has a name that is not UTF-8"),
            };
            if let Some(why) = problem {
                self.skip(path, why);
            } else if kind.is_symlink() {
                self.skip(path, "is a symbolic link; links are not followed");
            } else if kind.is_file() || kind.is_dir() {
                entries.push(Entry {
                    name: raw.to_string_lossy().into_owned(),
                    path: entry.path(),
                    is_folder: kind.is_dir(),
                });
            } else {
                self.skip(path, "is neither a file nor a folder");
            }
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    /// The text of a file, or an entry in `skipped`.
    pub fn take(&mut self, path: &Path, shown: &str, max_bytes: u64) -> Option<String> {
        read_text(path, max_bytes).map_err(|why| self.skip(shown, why)).ok()
    }
}

/// Names that a receiver could decode to another place. The gateway checks again.
fn name_problem(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let codes = ["%2e", "%2f", "%5c", "%00", "%25", "\\"];
    if name.chars().any(char::is_control) {
        Some("has control characters in its name")
    } else if codes.iter().any(|code| lower.contains(code)) {
        Some("has a name that could lead out of the folder")
    } else if name.len() > MAX_NAME_BYTES {
        Some("has a name that is too long")
    } else {
        None
    }
}

/// The text of a plain file, or why it is not taken.
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String, String> {
    let text = String::from_utf8(read_bytes(path, max_bytes)?).map_err(|_| "is not UTF-8 text".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.contains('\0') {
        return Err("is not text".to_owned());
    }
    if json_bytes(text) + ENVELOPE_BYTES > limits::FRAME_BYTES {
        return Err("is too large for one message to the gateway".to_owned());
    }
    Ok(text.to_owned())
}

/// The content of a plain file, or why it is not taken.
pub fn read_bytes(path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    // A link or a pipe may have taken the file's place since it was listed: neither is followed nor waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)
        .map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("is not a plain file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("is larger than {} KiB", max_bytes / 1024));
    }
    Ok(bytes)
}

/// The size of a text as a JSON string.
pub fn json_bytes(text: &str) -> u64 {
    serde_json::to_string(text).map_or(u64::MAX / 4, |json| json.len() as u64)
}
