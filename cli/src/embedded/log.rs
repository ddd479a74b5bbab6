//! The gateway's log file: lines with a time, and rotation at a size. The gateway itself redacts secrets.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::units::{now_ms, timestamp};

const FILE_BYTES: u64 = 10 * 1024 * 1024;
/// All files, the current one included.
const FILES: usize = 5;
/// A longer line is cut, so that one line can't fill the disk.
const LINE_BYTES: usize = 16 * 1024;
const TAIL_BYTES: u64 = 16 * 1024;

#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    limit: u64,
    /// Lines go to stderr too.
    echo: bool,
}

impl Log {
    pub fn open(path: &Path, echo: bool) -> io::Result<Self> {
        Self::open_limited(path, echo, FILE_BYTES)
    }

    fn open_limited(path: &Path, echo: bool, limit: u64) -> io::Result<Self> {
        let file = open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes,
            limit,
            echo,
        })
    }

    /// Writes one line from `source`. Best effort: a log that cannot be written stops nothing.
    pub fn line(&mut self, source: &str, text: &str) {
        let text = text.trim_end();
        let mut end = text.len().min(LINE_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let line = format!("{} {source:10} {}\n", timestamp(now_ms()), &text[..end]);
        if self.echo {
            crate::output::echo_log(&line);
        }
        if self.bytes >= self.limit {
            self.rotate();
        }
        if self.file.write_all(line.as_bytes()).is_ok() {
            self.bytes += line.len() as u64;
        }
    }

    fn rotate(&mut self) {
        for number in (1..FILES).rev() {
            let from = if number == 1 {
                self.path.clone()
            } else {
                numbered(&self.path, number - 1)
            };
            let _ = fs::rename(from, numbered(&self.path, number));
        }
        if let Ok(file) = open(&self.path) {
            self.file = file;
            self.bytes = 0;
        }
    }
}

/// Opens a private file for appending.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The current end of the log: a mark for `tail_since`.
pub fn end(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// The last lines after a mark.
pub fn tail_since(path: &Path, mark: u64, lines: usize) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        // After a rotation the mark is beyond the end: everything is new.
        let from = if mark <= len { mark } else { 0 };
        file.seek(SeekFrom::Start(from.max(len.saturating_sub(TAIL_BYTES))))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_rotated_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.log");
        let mut log = Log::open_limited(&path, false, 200).unwrap();
        for number in 0..100 {
            log.line("test", &format!("line {number}"));
        }
        let files = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files, FILES);
        assert!(end(&path) < 300);
        let last = tail_since(&path, 0, 1);
        assert!(last[0].ends_with("line 99"), "{last:?}");
    }

    #[test]
    fn only_lines_after_the_mark_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.log");
        let mut log = Log::open(&path, false).unwrap();
        log.line("test", "old");
        let mark = end(&path);
        log.line("test", &"é".repeat(LINE_BYTES));
        let lines = tail_since(&path, mark, 10);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() <= LINE_BYTES + 64);
    }
}
