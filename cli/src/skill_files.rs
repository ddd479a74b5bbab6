//! A skill to install from this machine: one SKILL.md, or a folder. Refuses a skill that cannot be sent whole, with the
//! reasons. Sends nothing.

use std::fs;
use std::path::Path;

use gsv_protocol::limits;

use crate::clean::clean;
use crate::exit::{Failure, OrFail, Outcome};
use crate::skill_folder::{LocalFile, SKILL, SkillFolder};
use crate::text_files::{Reader, read_text};

const MAX_REASONS: usize = 20;

#[derive(Debug, PartialEq, Eq)]
pub struct SkillFiles {
    /// The folder's name, or the name in the head of a single SKILL.md. The gateway checks whether it is valid.
    pub name: Option<String>,
    pub files: Vec<LocalFile>,
}

pub fn read(path: &Path) -> Outcome<SkillFiles> {
    let next = "Name a SKILL.md or the folder that has one.";
    let meta = fs::metadata(path).or_fail(format_args!("look at {}", path.display()), next)?;
    if meta.is_dir() {
        return folder(path);
    }
    let content = read_text(path, limits::SKILL_BYTES)
        .map_err(|why| Failure::usage(format!("{} {why}.", path.display()), next))?;
    Ok(SkillFiles {
        name: name_in(&content).or_else(|| name_of_parent(path)),
        files: vec![LocalFile::new(SKILL, content.into_bytes())],
    })
}

fn folder(path: &Path) -> Outcome<SkillFiles> {
    let mut reader = Reader::default();
    let found = SkillFolder::read(&mut reader, path, "")?;
    let mut reasons: Vec<String> = reader
        .skipped
        .iter()
        .map(|skipped| clean(&format!("{} {}", skipped.path, skipped.why)))
        .chain(reader.hidden.iter().map(|hidden| clean(&format!("{hidden} is hidden"))))
        .chain(found.problem().map(|why| format!("the folder {why}")))
        .collect();
    if !reasons.is_empty() {
        reasons.truncate(MAX_REASONS);
        return Err(Failure::usage(
            format!("{} cannot be installed as it is.", path.display()),
            "Make a folder with the skill's files only. Put large files into the workspace with `gsv workspace put`.",
        )
        .with_lines(reasons));
    }
    let full = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Ok(SkillFiles {
        name: full.file_name().map(|name| name.to_string_lossy().into_owned()),
        files: found.files,
    })
}

/// The `name` in the head of a SKILL.md, when it has a line of its own.
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
    fn sk5_every_unusable_file_is_named_with_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("SKILL.md"), "x".repeat(140_000)).unwrap();
        fs::write(at(".env"), "SECRET=1").unwrap();
        fs::create_dir(at(".git")).unwrap();
        symlink("/etc/passwd", at("link.md")).unwrap();
        symlink("/etc", at("links")).unwrap();
        // Binary files are part of a skill.
        fs::write(at("tool.bin"), [0x7f, b'E', b'L', b'F', 0, 0xff]).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
        let mut lines = read(dir.path()).unwrap_err().lines;
        lines.sort();
        assert_eq!(
            lines,
            [
                ".env is hidden",
                ".git is hidden",
                "link.md is a symbolic link; links are not followed",
                "links is a symbolic link; links are not followed",
                "pipe is neither a file nor a folder",
                "the folder has a SKILL.md larger than 128 KiB",
            ]
        );
        fs::remove_file(at("SKILL.md")).unwrap();
        let lines = read(dir.path()).unwrap_err().lines;
        assert!(lines.contains(&"the folder has no usable SKILL.md".to_owned()));
    }

    #[test]
    fn sk5_a_linked_file_is_not_read_and_too_much_is_not_sent() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", dir.path().join(SKILL)).unwrap();
        assert!(read(&dir.path().join(SKILL)).is_err());
        fs::remove_file(dir.path().join(SKILL)).unwrap();
        fs::write(dir.path().join(SKILL), TEXT).unwrap();
        fs::write(dir.path().join("large.txt"), "\n".repeat(9_000_000)).unwrap();
        let lines = read(dir.path()).unwrap_err().lines;
        assert!(lines[0].contains("a skill has at most 8.0 MiB"), "{lines:?}");
    }
}
