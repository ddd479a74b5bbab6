//! The agent's files in a folder of another program: an `OpenClaw` workspace, or an agent's folder of the reference GSV.
//! Both use the same names. Reads only files of that layout, and names everything that it skips with the reason.

use std::fs;
use std::path::Path;

use gsv_protocol::limits;

use crate::exit::{Failure, OrFail, Outcome};
use crate::skill_folder::SkillFolder;
use crate::text_files::{Entry, Reader, Skipped, TextFile};

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
/// The older spelling of MEMORY.md; it is used when MEMORY.md is missing.
const OLD_MEMORY: &str = "memory.md";
const NOT_PART: &str = "is not part of an agent's workspace";
const NOT_DAILY: &str = "is not a memory/*.md file";

/// A skill: its files by their paths in the skill's folder, SKILL.md among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSkill {
    pub name: String,
    pub folder: SkillFolder,
}

#[derive(Debug, Default)]
pub struct Scan {
    pub files: Vec<TextFile>,
    pub skills: Vec<FoundSkill>,
    pub skipped: Vec<Skipped>,
    /// Archives of conversations, which are not imported.
    pub archives: usize,
    /// Hidden entries, version control among them.
    pub hidden: usize,
}

impl Scan {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.skills.is_empty()
    }

    pub fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }

    /// Whether the files say who the agent is, or who it and its human are; a soul alone does not. Then the agent needs no first meeting (`BOOTSTRAP.md`).
    pub fn has_identity(&self) -> bool {
        self.has("IDENTITY.md") || (self.has("SOUL.md") && self.has("USER.md"))
    }

    fn take(&mut self, reader: &mut Reader, entry: &Entry, path: &str) {
        if let Some(content) = reader.take(&entry.path, path, limits::WORKSPACE_FILE_BYTES) {
            self.files.push(TextFile {
                path: path.to_owned(),
                content,
            });
        }
    }
}

pub fn scan(folder: &Path) -> Outcome<Scan> {
    let next = "Name the folder that has SOUL.md, AGENTS.md and the others in it.";
    let named = fs::metadata(folder).or_fail(format_args!("look at {}", folder.display()), next)?;
    if !named.is_dir() {
        return Err(Failure::usage(format!("{} is not a folder.", folder.display()), next));
    }
    let (mut scan, mut reader) = (Scan::default(), Reader::default());
    for entry in reader.entries(folder, "")? {
        match (entry.name.as_str(), entry.is_folder) {
            (name, false) if TOP_FILES.contains(&name) => scan.take(&mut reader, &entry, name),
            (OLD_MEMORY, false) if fs::symlink_metadata(folder.join("MEMORY.md")).is_err() => {
                scan.take(&mut reader, &entry, "MEMORY.md");
            }
            ("memory", true) => daily(&mut scan, &mut reader, &entry.path)?,
            ("skills", true) => skills(&mut scan, &mut reader, &entry.path)?,
            ("sessions", true) => sessions(&mut scan, &mut reader, &entry.path)?,
            _ => reader.skip(shown(&entry, ""), NOT_PART),
        }
    }
    scan.skipped = reader.skipped;
    scan.hidden = reader.hidden.len();
    Ok(scan)
}

fn shown(entry: &Entry, inside: &str) -> String {
    let slash = if entry.is_folder { "/" } else { "" };
    format!("{inside}{}{slash}", entry.name)
}

fn daily(scan: &mut Scan, reader: &mut Reader, folder: &Path) -> Outcome {
    for entry in reader.entries(folder, "memory/")? {
        let path = shown(&entry, "memory/");
        if entry.path.extension().is_some_and(|extension| extension == "md") && !entry.is_folder {
            scan.take(reader, &entry, &path);
        } else {
            reader.skip(path, NOT_DAILY);
        }
    }
    Ok(())
}

fn sessions(scan: &mut Scan, reader: &mut Reader, folder: &Path) -> Outcome {
    for entry in reader.entries(folder, "sessions/")? {
        if entry.name.ends_with(".jsonl.gz") && !entry.is_folder {
            scan.archives += 1;
        } else {
            reader.skip(shown(&entry, "sessions/"), NOT_PART);
        }
    }
    Ok(())
}

fn skills(scan: &mut Scan, reader: &mut Reader, folder: &Path) -> Outcome {
    for entry in reader.entries(folder, "skills/")? {
        let path = shown(&entry, "skills/");
        if !entry.is_folder {
            reader.skip(path, "is not a folder with SKILL.md in it");
            continue;
        }
        let folder = SkillFolder::read(reader, &entry.path, &path)?;
        match folder.problem() {
            None => scan.skills.push(FoundSkill {
                name: entry.name,
                folder,
            }),
            Some(why) => reader.skip(path, why),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
