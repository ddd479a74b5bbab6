//! The files of a skill on this machine, with their bytes. Reads no more than a skill may have. Sends nothing.

use std::fs;
use std::path::Path;

use gsv_protocol::limits;

use crate::embedded::bootstrap::sha256_hex;
use crate::exit::Outcome;
use crate::text_files::{Reader, read_bytes};
use crate::units::bytes as size;

pub const SKILL: &str = "SKILL.md";
const MAX_DEPTH: usize = 8;

/// A file, by its path below the skill's folder, with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    pub path: String,
    pub bytes: Vec<u8>,
}

impl LocalFile {
    /// A text loses its byte order mark. Other files stay as they are.
    pub fn new(path: impl Into<String>, mut bytes: Vec<u8>) -> Self {
        if bytes.starts_with(b"\xef\xbb\xbf") && is_text(&bytes) {
            bytes.drain(..3);
        }
        Self {
            path: path.into(),
            bytes,
        }
    }

    /// The content, if it is text.
    pub fn text(&self) -> Option<&str> {
        is_text(&self.bytes)
            .then(|| std::str::from_utf8(&self.bytes).ok())
            .flatten()
    }
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillFolder {
    /// At most as many as a skill may have, and no more bytes.
    pub files: Vec<LocalFile>,
    count: u64,
    bytes: u64,
}

impl SkillFolder {
    /// All plain files in a folder and the folders in it. `shown` is the path of the folder in reasons: empty, or with `/`.
    pub fn read(reader: &mut Reader, folder: &Path, shown: &str) -> Outcome<Self> {
        let mut found = Self::default();
        found.walk(reader, folder, shown, "", 1)?;
        Ok(found)
    }

    #[cfg(test)]
    pub fn of(files: Vec<LocalFile>) -> Self {
        Self {
            count: files.len() as u64,
            bytes: files.iter().map(|file| file.bytes.len() as u64).sum(),
            files,
        }
    }

    fn walk(&mut self, reader: &mut Reader, folder: &Path, shown: &str, inside: &str, depth: usize) -> Outcome<()> {
        for entry in reader.entries(folder, &format!("{shown}{inside}"))? {
            let path = format!("{inside}{}", entry.name);
            if entry.is_folder && depth >= MAX_DEPTH {
                reader.skip(
                    format!("{shown}{path}/"),
                    format!("lies deeper than {MAX_DEPTH} folders"),
                );
            } else if entry.is_folder {
                self.walk(reader, &entry.path, shown, &format!("{path}/"), depth + 1)?;
            } else {
                self.take(reader, &entry.path, shown, path);
            }
        }
        Ok(())
    }

    /// Counts every file, and reads those that a skill may still have.
    fn take(&mut self, reader: &mut Reader, at: &Path, shown: &str, path: String) {
        self.count += 1;
        let left = limits::SKILL_FILES_BYTES.saturating_sub(self.bytes);
        let length = fs::symlink_metadata(at).map_or(0, |meta| meta.len());
        if self.count > limits::SKILL_FILES || length > left {
            self.bytes = self.bytes.saturating_add(length);
            return;
        }
        match read_bytes(at, left) {
            Ok(bytes) => {
                self.bytes += bytes.len() as u64;
                self.files.push(LocalFile::new(path, bytes));
            }
            Err(why) => reader.skip(format!("{shown}{path}"), why),
        }
    }

    /// Why these files are not a skill that can be installed. It continues a sentence that names the folder.
    pub fn problem(&self) -> Option<String> {
        if self.count > limits::SKILL_FILES {
            return Some(format!(
                "has {} files; a skill has at most {}",
                self.count,
                limits::SKILL_FILES
            ));
        }
        if self.bytes > limits::SKILL_FILES_BYTES {
            return Some(format!(
                "has {} of files; a skill has at most {}",
                size(self.bytes),
                size(limits::SKILL_FILES_BYTES)
            ));
        }
        let Some(main) = self.files.iter().find(|file| file.path == SKILL) else {
            return Some(format!("has no usable {SKILL}"));
        };
        if main.text().is_none() {
            return Some(format!("has a {SKILL} that is not text"));
        }
        (main.bytes.len() as u64 > limits::SKILL_BYTES)
            .then(|| format!("has a {SKILL} larger than {} KiB", limits::SKILL_BYTES / 1024))
    }

    pub fn is_all_text(&self) -> bool {
        self.files.iter().all(|file| file.text().is_some())
    }

    pub const fn size(&self) -> u64 {
        self.bytes
    }

    /// The digest that the gateway computes of the same files (`sha256` of a `SkillEntry`).
    pub fn sha256(&self) -> String {
        let mut lines: Vec<String> = self
            .files
            .iter()
            .map(|file| format!("{}\0{}\n", file.path, sha256_hex(&file.bytes)))
            .collect();
        lines.sort_unstable();
        sha256_hex(lines.concat().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "---\nname: a\ndescription: d\n---\n";

    fn read(dir: &Path) -> SkillFolder {
        SkillFolder::read(&mut Reader::default(), dir, "").unwrap()
    }

    #[test]
    fn f52_binary_files_are_taken_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(SKILL), format!("\u{feff}{TEXT}")).unwrap();
        fs::write(dir.path().join("a.ttf"), [0_u8, 0xff, 1]).unwrap();
        let found = read(dir.path());
        assert_eq!(found.problem(), None);
        assert_eq!(found.files[0].text(), Some(TEXT));
        assert_eq!((found.files[1].text(), found.is_all_text()), (None, false));
        assert_eq!(found.files[1].bytes, [0, 0xff, 1]);
    }

    #[test]
    fn f52_what_is_too_large_is_counted_and_not_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(SKILL), TEXT).unwrap();
        let sparse = fs::File::create(dir.path().join("large.bin")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let found = read(dir.path());
        assert_eq!(
            found.problem().unwrap(),
            "has 1.0 TiB of files; a skill has at most 8.0 MiB"
        );
        assert_eq!(found.files.len(), 1);
        fs::remove_file(dir.path().join("large.bin")).unwrap();
        for number in 0..256 {
            fs::write(dir.path().join(format!("{number:03}")), "").unwrap();
        }
        assert_eq!(
            read(dir.path()).problem().unwrap(),
            "has 257 files; a skill has at most 256"
        );
    }

    #[test]
    fn f52_the_main_file_is_text_of_at_most_128_kib() {
        let of = |bytes: Vec<u8>| SkillFolder::of(vec![LocalFile::new(SKILL, bytes)]).problem();
        assert_eq!(of(vec![b'x'; 131_072]), None);
        assert!(of(vec![b'x'; 131_073]).unwrap().contains("larger than 128 KiB"));
        assert!(of(vec![0, 1]).unwrap().contains("not text"));
        assert!(SkillFolder::default().problem().unwrap().contains("no usable SKILL.md"));
    }

    #[test]
    fn f52_the_digest_is_the_gateways() {
        // By gateway/src/storage/skills/folder.ts: sha256 of the sorted lines `path NUL sha256 LF`.
        let folder = SkillFolder::of(vec![
            LocalFile::new("b", b"2".to_vec()),
            LocalFile::new("a", b"1".to_vec()),
        ]);
        let one = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
        let two = "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35";
        assert_eq!(folder.sha256(), sha256_hex(format!("a\0{one}\nb\0{two}\n").as_bytes()));
    }
}
