//! What there is to take in a folder: an `OpenClaw` workspace, or an agent's folder of the reference GSV. Both have the same
//! names. Reads only what belongs to that layout, follows no symbolic link, and names everything that it leaves with the
//! reason.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gsv_protocol::limits;
use rustix::fs::OFlags;

use crate::exit::{Failure, OrFail, Outcome};

/// Files that a prompt is made from.
const TOP_FILES: [&str; 8] = [
    "SOUL.md",
    "IDENTITY.md",
    "USER.md",
    "AGENTS.md",
    "TOOLS.md",
    "MEMORY.md",
    "HEARTBEAT.md",
    "BOOTSTRAP.md",
];
/// The older spelling of MEMORY.md, which counts where that is missing.
const OLD_MEMORY: &str = "memory.md";
const SKILL: &str = "SKILL.md";
const MAX_NAME_BYTES: usize = 200;
const MAX_DEPTH: usize = 8;
/// Whoever has more has named another folder than they meant.
const MAX_ENTRIES: usize = 20_000;
/// What a frame needs beside the content.
const ENVELOPE_BYTES: u64 = 8_192;

/// A text file, by its path in the agent's workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: String,
    pub content: String,
}

/// A skill: its files by their paths in the skill's folder, SKILL.md among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSkill {
    pub name: String,
    pub files: Vec<Found>,
}

/// Something that is not taken, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub path: String,
    pub why: String,
}

#[derive(Debug, Default)]
pub struct Scan {
    pub files: Vec<Found>,
    pub skills: Vec<FoundSkill>,
    pub left: Vec<Left>,
    /// Archives of conversations, which stay where they are.
    pub archives: usize,
    /// Hidden entries, version control among them.
    pub hidden: usize,
    entries: usize,
}

impl Scan {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.skills.is_empty()
    }

    pub fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }

    /// Whether it says who the agent is: then there is no first meeting.
    pub fn knows_itself(&self) -> bool {
        self.has("IDENTITY.md") || self.has("SOUL.md")
    }

    fn leave(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.left.push(Left {
            path: path.into(),
            why: why.into(),
        });
    }
}

/// What kind of thing an entry is; a link is never looked behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

pub fn scan(folder: &Path) -> Outcome<Scan> {
    let named = fs::metadata(folder).or_fail(
        format_args!("look at {}", folder.display()),
        "Name the folder that has SOUL.md, AGENTS.md and the others in it.",
    )?;
    if !named.is_dir() {
        return Err(Failure::usage(
            format!("{} is not a folder.", folder.display()),
            "Name the folder that has SOUL.md, AGENTS.md and the others in it.",
        ));
    }
    let mut scan = Scan::default();
    for (name, kind, entry) in entries(&mut scan, folder, "")? {
        match (name.as_str(), kind) {
            (name, Kind::File) if TOP_FILES.contains(&name) => take(&mut scan, &entry, name.to_owned()),
            (OLD_MEMORY, Kind::File) if fs::symlink_metadata(folder.join("MEMORY.md")).is_err() => {
                take(&mut scan, &entry, "MEMORY.md".to_owned());
            }
            ("memory", Kind::Folder) => daily(&mut scan, &entry.path())?,
            ("skills", Kind::Folder) => skills(&mut scan, &entry.path())?,
            ("sessions", Kind::Folder) => sessions(&mut scan, &entry.path())?,
            (name, kind) => {
                let slash = if kind == Kind::Folder { "/" } else { "" };
                scan.leave(format!("{name}{slash}"), "not part of an agent's workspace");
            }
        }
    }
    Ok(scan)
}

/// What is in a folder, by name, without what is hidden, linked, oddly named or neither file nor folder.
fn entries(scan: &mut Scan, folder: &Path, inside: &str) -> Outcome<Vec<(String, Kind, DirEntry)>> {
    let next = "Check that you may read it.";
    let mut out = Vec::new();
    let listed = fs::read_dir(folder).or_fail(format_args!("read {}", folder.display()), next)?;
    for entry in listed {
        let entry = entry.or_fail(format_args!("read {}", folder.display()), next)?;
        scan.entries += 1;
        if scan.entries > MAX_ENTRIES {
            return Err(Failure::usage(
                format!("There are more than {MAX_ENTRIES} files in that folder."),
                "Name the agent's own folder, not one above it.",
            ));
        }
        let raw = entry.file_name();
        let shown = format!("{inside}{}", raw.to_string_lossy());
        let Some(name) = raw.to_str() else {
            scan.leave(shown, "its name is not UTF-8");
            continue;
        };
        if name.starts_with('.') {
            scan.hidden += 1;
            continue;
        }
        if let Some(problem) = name_problem(name) {
            scan.leave(shown, problem);
            continue;
        }
        // Of the entry itself: a link is seen as one.
        let kind = entry
            .file_type()
            .or_fail(format_args!("look at {}", entry.path().display()), next)?;
        if kind.is_symlink() {
            scan.leave(shown, "a symbolic link; links are not followed");
        } else if kind.is_file() {
            out.push((name.to_owned(), Kind::File, entry));
        } else if kind.is_dir() {
            out.push((name.to_owned(), Kind::Folder, entry));
        } else {
            scan.leave(shown, "neither a file nor a folder");
        }
    }
    out.sort_by(|(left, ..), (right, ..)| left.cmp(right));
    Ok(out)
}

/// Names that could mean another place to whoever decodes them. The gateway checks again.
fn name_problem(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    if name.chars().any(char::is_control) {
        Some("its name has control characters in it")
    } else if name.contains('\\')
        || ["%2e", "%2f", "%5c", "%00", "%25"]
            .iter()
            .any(|code| lower.contains(code))
    {
        Some("its name could lead out of the folder")
    } else if name.len() > MAX_NAME_BYTES {
        Some("its name is too long")
    } else {
        None
    }
}

fn take(scan: &mut Scan, entry: &DirEntry, path: String) {
    match read_text(&entry.path(), limits::WORKSPACE_FILE_BYTES) {
        Ok(content) => scan.files.push(Found { path, content }),
        Err(why) => scan.leave(path, why),
    }
}

fn daily(scan: &mut Scan, folder: &Path) -> Outcome {
    for (name, kind, entry) in entries(scan, folder, "memory/")? {
        let path = format!("memory/{name}");
        let is_markdown = Path::new(&name).extension().is_some_and(|extension| extension == "md");
        match kind {
            Kind::File if is_markdown => take(scan, &entry, path),
            Kind::File => scan.leave(path, "only memory/*.md is taken"),
            Kind::Folder => scan.leave(format!("{path}/"), "only memory/*.md is taken"),
        }
    }
    Ok(())
}

fn sessions(scan: &mut Scan, folder: &Path) -> Outcome {
    for (name, kind, _) in entries(scan, folder, "sessions/")? {
        if kind == Kind::File && name.ends_with(".jsonl.gz") {
            scan.archives += 1;
        } else {
            scan.leave(format!("sessions/{name}"), "not part of an agent's workspace");
        }
    }
    Ok(())
}

fn skills(scan: &mut Scan, folder: &Path) -> Outcome {
    for (name, kind, entry) in entries(scan, folder, "skills/")? {
        let path = format!("skills/{name}/");
        if kind == Kind::File {
            scan.leave(format!("skills/{name}"), "a skill is a folder with SKILL.md in it");
            continue;
        }
        let mut files = Vec::new();
        walk(scan, &entry.path(), &path, "", 1, &mut files)?;
        match skill_problem(&files) {
            None => scan.skills.push(FoundSkill { name, files }),
            Some(why) => scan.leave(path, why),
        }
    }
    Ok(())
}

fn walk(scan: &mut Scan, folder: &Path, skill: &str, inside: &str, depth: usize, files: &mut Vec<Found>) -> Outcome {
    for (name, kind, entry) in entries(scan, folder, &format!("{skill}{inside}"))? {
        let path = format!("{inside}{name}");
        match kind {
            Kind::Folder if depth >= MAX_DEPTH => scan.leave(format!("{skill}{path}/"), "too deep in the folder"),
            Kind::Folder => walk(scan, &entry.path(), skill, &format!("{path}/"), depth + 1, files)?,
            Kind::File => match read_text(&entry.path(), limits::SKILL_FILES_BYTES) {
                Ok(content) => files.push(Found { path, content }),
                Err(why) => scan.leave(format!("{skill}{path}"), why),
            },
        }
    }
    Ok(())
}

fn skill_problem(files: &[Found]) -> Option<String> {
    let Some(main) = files.iter().find(|file| file.path == SKILL) else {
        return Some("no usable SKILL.md in it".to_owned());
    };
    let sum: u64 = files.iter().map(|file| file.content.len() as u64).sum();
    let sent: u64 = files.iter().map(|file| encoded_bytes(&file.content)).sum();
    if main.content.len() as u64 > limits::SKILL_BYTES {
        Some(format!(
            "its SKILL.md is larger than {} KiB",
            limits::SKILL_BYTES / 1024
        ))
    } else if files.len() as u64 > limits::SKILL_FILES {
        Some(format!("more than {} files", limits::SKILL_FILES))
    } else if sum > limits::SKILL_FILES_BYTES || sent + ENVELOPE_BYTES > limits::FRAME_BYTES {
        Some("its files are too large together".to_owned())
    } else {
        None
    }
}

/// A file's text, or why it is not taken.
fn read_text(path: &Path, max_bytes: u64) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("could not be read: {error}");
    let file = open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err("not a plain file".to_owned());
    }
    if meta.len() > max_bytes {
        return Err(format!("larger than {} KiB", max_bytes / 1024));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.contains('\0') {
        return Err("not text".to_owned());
    }
    if encoded_bytes(text) + ENVELOPE_BYTES > limits::FRAME_BYTES {
        return Err("too large for one message to the gateway".to_owned());
    }
    Ok(text.to_owned())
}

/// Also when somebody puts a link or a pipe in the file's place meanwhile: neither is followed nor waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)
}

/// As a JSON string.
fn encoded_bytes(text: &str) -> u64 {
    serde_json::to_string(text).map_or(u64::MAX / 4, |json| json.len() as u64)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
