//! The end of a log that rotates (`gateway.log`, `gateway.log.1`, ...), and what is added to it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

pub const MOST_LINES: usize = 100_000;
/// No log keeps more.
const FILES: u32 = 5;
const POLL: Duration = Duration::from_millis(100);

pub struct LogFile {
    path: PathBuf,
    file: Option<File>,
    /// A line whose end is not written yet.
    rest: Vec<u8>,
}

impl LogFile {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            rest: Vec::new(),
        }
    }

    /// The last lines, the oldest first. Later calls of `added` go on behind them.
    pub fn tail(&mut self, count: usize) -> io::Result<Vec<String>> {
        self.file = open(&self.path)?;
        let mut lines: VecDeque<String> = self.read()?.into();
        while lines.len() > count {
            lines.pop_front();
        }
        for number in 1..FILES {
            if lines.len() >= count {
                break;
            }
            let mut name = self.path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            let Some(mut older) = open(Path::new(&name))? else {
                break;
            };
            let mut bytes = Vec::new();
            older.read_to_end(&mut bytes)?;
            for line in whole_lines(&bytes).into_iter().rev().take(count - lines.len()) {
                lines.push_front(line);
            }
        }
        Ok(lines.into())
    }

    /// The lines since the last call, also over a rotation.
    pub fn added(&mut self) -> io::Result<Vec<String>> {
        let mut lines = self.read()?;
        let present = fs::metadata(&self.path).ok().map(|meta| meta.ino());
        let ours = self.file.as_ref().and_then(|file| Some(file.metadata().ok()?.ino()));
        if present.is_some() && present != ours {
            // Lines that were written between the two looks.
            lines.extend(self.read()?);
            self.file = open(&self.path)?;
            lines.extend(self.read()?);
        }
        Ok(lines)
    }

    /// Gives each line that is added, until the program ends.
    pub fn follow(mut self, mut show: impl FnMut(&str)) -> io::Result<()> {
        loop {
            for line in self.added()? {
                show(&line);
            }
            thread::sleep(POLL);
        }
    }

    fn read(&mut self) -> io::Result<Vec<String>> {
        let Some(file) = &mut self.file else {
            return Ok(Vec::new());
        };
        file.read_to_end(&mut self.rest)?;
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole: Vec<u8> = self.rest.drain(..end).collect();
        Ok(whole_lines(&whole))
    }
}

fn whole_lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

/// `None`: there is no such file.
fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn sv6_the_last_lines_come_from_older_files_too_and_a_rotation_loses_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        assert_eq!(LogFile::new(path.clone()).tail(10).unwrap(), [""; 0]);
        fs::write(dir.path().join("x.log.2"), "0\n").unwrap();
        fs::write(dir.path().join("x.log.1"), "1\n2\n").unwrap();
        fs::write(&path, "3\n4\nhal").unwrap();
        assert_eq!(LogFile::new(path.clone()).tail(1).unwrap(), ["4"]);
        assert_eq!(LogFile::new(path.clone()).tail(3).unwrap(), ["2", "3", "4"]);
        let mut log = LogFile::new(path.clone());
        assert_eq!(log.tail(100).unwrap(), ["0", "1", "2", "3", "4"]);
        let add = |text: &str| {
            let mut file = File::options().append(true).create(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        add("f\n5\n");
        assert_eq!(log.added().unwrap(), ["half", "5"]);
        add("6\n");
        fs::rename(&path, dir.path().join("x.log.1")).unwrap();
        add("7\n");
        assert_eq!(log.added().unwrap(), ["6", "7"]);
        assert_eq!(log.added().unwrap(), [""; 0]);
    }
}
