//! The files of a skill on this machine: one SKILL.md, or a folder. Follows no link, takes text only, and when something
//! can't be taken names all of it with the reasons. Sends nothing.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gsv_protocol::limits;
use gsv_protocol::types::SkillFile;
use rustix::fs::OFlags;

use crate::clean::clean;
use crate::exit::{Failure, OrFail, Outcome};

pub const SKILL: &str = "SKILL.md";
const MAX_DEPTH: usize = 8;
const MAX_ENTRIES: usize = 1_000;
const MAX_REASONS: usize = 20;
/// What a request needs beside the files, and what JSON adds to them at least.
const ENVELOPE_BYTES: usize = 65_536;

#[derive(Debug, PartialEq, Eq)]
pub struct SkillFiles {
    /// From the folder, or from the head of a single SKILL.md; whether it can be a name is the gateway's to say.
    pub name: Option<String>,
    pub files: Vec<SkillFile>,
}

pub fn read(path: &Path) -> Outcome<SkillFiles> {
    let next = "Name a SKILL.md or the folder that has one.";
    let meta = fs::metadata(path).or_fail(format_args!("look at {}", path.display()), next)?;
    let found = if meta.is_dir() {
        folder(path)?
    } else {
        let content = text(path, limits::SKILL_BYTES)
            .map_err(|why| Failure::usage(format!("{} {why}.", path.display()), next))?;
        SkillFiles {
            name: name_in(&content).or_else(|| name_of_parent(path)),
            files: vec![SkillFile {
                path: SKILL.to_owned(),
                content,
            }],
        }
    };
    let size = serde_json::to_string(&found.files).map_or(usize::MAX, |json| json.len());
    if size + ENVELOPE_BYTES > usize::try_from(limits::FRAME_BYTES).unwrap_or(usize::MAX) {
        return Err(Failure::usage(
            "The files of this skill are too large to be sent together.",
            "Leave out what the skill does not need, or put the large files into the workspace with `gsv workspace put`.",
        ));
    }
    Ok(found)
}

fn folder(path: &Path) -> Outcome<SkillFiles> {
    let mut walk = Walk::default();
    walk.folder(path, "", 0)
        .or_fail(format_args!("read {}", path.display()), "Check that you may read it.")?;
    let total: usize = walk.files.iter().map(|file| file.content.len()).sum();
    if walk.files.len() > usize::try_from(limits::SKILL_FILES).unwrap_or(usize::MAX) {
        walk.reasons
            .push(format!("there are more than {} files", limits::SKILL_FILES));
    }
    if total as u64 > limits::SKILL_FILES_BYTES {
        walk.reasons.push(format!(
            "all files together have {total} bytes, more than {}",
            limits::SKILL_FILES_BYTES
        ));
    }
    if !walk.files.iter().any(|file| file.path == SKILL) {
        walk.reasons.push(format!("{SKILL} is missing"));
    }
    if !walk.reasons.is_empty() {
        walk.reasons.truncate(MAX_REASONS);
        return Err(Failure::usage(
            format!("{} can't be installed as it is.", path.display()),
            "Make a folder with what belongs to the skill, and nothing else.",
        )
        .with_lines(walk.reasons));
    }
    walk.files.sort_by(|a, b| a.path.cmp(&b.path));
    let full = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Ok(SkillFiles {
        name: full.file_name().map(|name| name.to_string_lossy().into_owned()),
        files: walk.files,
    })
}

#[derive(Default)]
struct Walk {
    files: Vec<SkillFile>,
    reasons: Vec<String>,
    entries: usize,
}

impl Walk {
    fn folder(&mut self, folder: &Path, inside: &str, depth: usize) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.reasons.push(format!("there are more than {MAX_ENTRIES} entries"));
                return Ok(());
            }
            let name = entry.file_name();
            let kind = entry.file_type()?;
            let shown = clean(&format!("{inside}{}", name.to_string_lossy()));
            let Some(name) = name.to_str() else {
                self.reasons.push(format!("{shown}: its name is not text"));
                continue;
            };
            if kind.is_symlink() {
                self.reasons.push(format!("{shown}: is a link"));
            } else if name.starts_with('.') {
                self.reasons.push(format!("{shown}: is hidden"));
            } else if kind.is_dir() && depth >= MAX_DEPTH {
                self.reasons
                    .push(format!("{shown}: lies deeper than {MAX_DEPTH} folders"));
            } else if kind.is_dir() {
                self.folder(&entry.path(), &format!("{inside}{name}/"), depth + 1)?;
            } else if kind.is_file() {
                let most = if inside.is_empty() && name == SKILL {
                    limits::SKILL_BYTES
                } else {
                    limits::SKILL_FILES_BYTES
                };
                match text(&entry.path(), most) {
                    Ok(content) => self.files.push(SkillFile {
                        path: format!("{inside}{name}"),
                        content,
                    }),
                    Err(why) => self.reasons.push(format!("{shown}: {why}")),
                }
            } else {
                self.reasons.push(format!("{shown}: is neither file nor folder"));
            }
        }
        Ok(())
    }
}

/// A file's text, or what is wrong with it.
fn text(path: &Path, most: u64) -> Result<String, String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)
        .map_err(|error| format!("can't be read: {error}"))?;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err("is not a plain file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("can't be read: {error}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("is larger than {most} bytes"));
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| "is not text".to_owned())
}

/// `name` in the head of a SKILL.md, when it stands on a line of its own.
fn name_in(text: &str) -> Option<String> {
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let value = lines
        .take_while(|line| line.trim_end() != "---")
        .find_map(|line| line.strip_prefix("name:"))?;
    let value = value.split(" #").next().unwrap_or(value).trim();
    let bare = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(value);
    (!bare.is_empty()).then(|| bare.to_owned())
}

fn name_of_parent(path: &Path) -> Option<String> {
    let full = fs::canonicalize(path).ok()?;
    (full.file_name()? == SKILL).then_some(())?;
    Some(full.parent()?.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const TEXT: &str = "---\nname: \"mail\"\ndescription: d\n---\n# Mail\n";

    #[test]
    fn sk5_the_name_comes_from_the_head_or_the_folder() {
        for (text, name) in [
            (TEXT, Some("mail")),
            ("---\nname: mail # the name\n---\n", Some("mail")),
            ("---\r\nname: 'a b'\r\n---\r\n", Some("a b")),
            ("---\nmetadata:\n  name: no\n---\nname: no\n", None),
            ("name: no\n", None),
            ("---\nname:\n---\n", None),
        ] {
            assert_eq!(name_in(text).as_deref(), name, "{text:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("post");
        fs::create_dir_all(folder.join("ref")).unwrap();
        fs::write(folder.join(SKILL), TEXT).unwrap();
        fs::write(folder.join("ref/a.md"), "a").unwrap();
        let found = read(&folder).unwrap();
        assert_eq!(found.name.as_deref(), Some("post"));
        let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [SKILL, "ref/a.md"]);
        assert_eq!(read(&folder.join(SKILL)).unwrap().name.as_deref(), Some("mail"));
    }

    #[test]
    fn sk5_what_can_t_be_taken_is_named_with_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("SKILL.md"), "x".repeat(70_000)).unwrap();
        fs::write(at(".env"), "SECRET=1").unwrap();
        fs::create_dir(at(".git")).unwrap();
        symlink("/etc/passwd", at("link.md")).unwrap();
        symlink("/etc", at("links")).unwrap();
        fs::write(at("tool.bin"), [0x7f, b'E', b'L', b'F', 0, 0xff]).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
        let failure = read(dir.path()).unwrap_err();
        let mut lines = failure.lines;
        lines.sort();
        assert_eq!(
            lines,
            [
                ".env: is hidden",
                ".git: is hidden",
                "SKILL.md is missing",
                "SKILL.md: is larger than 65536 bytes",
                "link.md: is a link",
                "links: is a link",
                "pipe: is neither file nor folder",
                "tool.bin: is not text",
            ]
        );
    }

    #[test]
    fn sk5_a_linked_file_is_not_read_and_too_much_is_not_sent() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", dir.path().join(SKILL)).unwrap();
        assert!(read(&dir.path().join(SKILL)).is_err());
        fs::remove_file(dir.path().join(SKILL)).unwrap();
        fs::write(dir.path().join(SKILL), TEXT).unwrap();
        fs::write(dir.path().join("large.txt"), "\n".repeat(600_000)).unwrap();
        assert!(read(dir.path()).unwrap_err().message.contains("too large to be sent"));
    }
}
