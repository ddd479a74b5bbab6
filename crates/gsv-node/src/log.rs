//! The node's log: one JSON object a line, 10 MB a file, five files. Secrets are masked before anything is written. A log
//! that can't be written never stops the node.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use gsv_protocol::HIDDEN;
use serde_json::{Map, Value};

use crate::mask::Mask;

const FILE_BYTES: u64 = 10 * 1000 * 1000;
/// The current one and four older ones.
const FILES: u32 = 5;
const LINE_BYTES: usize = 16 * 1024;
/// Fits a frame.
const TAIL_BYTES: usize = 768 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Info,
    Warn,
    Error,
}
impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

pub struct Log {
    path: PathBuf,
    mask: Mask,
    limit: u64,
    open: Mutex<Option<(File, u64)>>,
}

/// The last lines, oldest first.
#[derive(Debug, PartialEq, Eq)]
pub struct Tail {
    pub lines: Vec<String>,
    /// Fewer lines than were asked for, because more would not fit.
    pub truncated: bool,
}

impl Log {
    pub fn open(path: PathBuf, mask: Mask) -> io::Result<Self> {
        Self::with_limit(path, mask, FILE_BYTES)
    }

    fn with_limit(path: PathBuf, mask: Mask, limit: u64) -> io::Result<Self> {
        let open = Some(append_to(&path)?);
        Ok(Self {
            path,
            mask,
            limit,
            open: Mutex::new(open),
        })
    }

    /// `fields` must be few and small. Secrets in values are masked; a field with the name of a secret is hidden as a whole.
    pub fn write(&self, level: Level, message: &str, fields: &[(&str, Value)]) {
        let mut line = Map::new();
        line.insert("time".into(), timestamp(now_ms()).into());
        line.insert("level".into(), level.as_str().into());
        line.insert("message".into(), self.mask.text(&clip(message)).into());
        for (name, value) in fields {
            let value = match value {
                _ if Mask::hides(name) => HIDDEN.into(),
                Value::String(text) => self.mask.text(&clip(text)).into(),
                value @ (Value::Null | Value::Bool(_) | Value::Number(_)) => value.clone(),
                nested => self.mask.text(&clip(&self.mask.value(nested).to_string())).into(),
            };
            line.insert((*name).to_owned(), value);
        }
        let line = format!("{}\n", Value::Object(line));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that can't be written can't be reported; the next line tries again.
        let _ = self.append(&mut open, line.as_bytes());
    }

    /// [`Log::write`] about a call.
    pub fn call(&self, level: Level, message: &str, call_id: &str, fields: &[(&str, Value)]) {
        let mut all = vec![("callId", Value::from(call_id))];
        all.extend(fields.iter().cloned());
        self.write(level, message, &all);
    }

    fn append(&self, open: &mut Option<(File, u64)>, line: &[u8]) -> io::Result<()> {
        if open
            .as_ref()
            .is_some_and(|(_, len)| len + line.len() as u64 > self.limit)
        {
            *open = None;
            self.rotate();
        }
        let (file, len) = match open {
            Some(open) => open,
            None => open.insert(append_to(&self.path)?),
        };
        file.write_all(line)?;
        *len += line.len() as u64;
        Ok(())
    }

    fn rotate(&self) {
        for number in (1..FILES - 1).rev() {
            // A missing file is harmless.
            let _ = fs::rename(self.numbered(number), self.numbered(number + 1));
        }
        let _ = fs::rename(&self.path, self.numbered(1));
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }

    /// The last lines, over the current and the previous file. Blocks on the disk.
    pub fn tail(&self, lines: usize) -> io::Result<Tail> {
        let mut collected = VecDeque::new();
        let mut bytes = 0;
        for path in [self.path.clone(), self.numbered(1)] {
            let (text, was_cut) = match read_end(&path, TAIL_BYTES as u64 + 1) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text?,
            };
            for line in text.lines().rev() {
                if collected.len() == lines {
                    return Ok(Tail {
                        lines: collected.into(),
                        truncated: false,
                    });
                }
                bytes += line.len() + 8;
                if bytes > TAIL_BYTES {
                    return Ok(Tail {
                        lines: collected.into(),
                        truncated: true,
                    });
                }
                collected.push_front(line.to_owned());
            }
            if was_cut {
                let truncated = collected.len() < lines;
                return Ok(Tail {
                    lines: collected.into(),
                    truncated,
                });
            }
        }
        Ok(Tail {
            lines: collected.into(),
            truncated: false,
        })
    }
}

fn append_to(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// The whole lines in the last `bytes` bytes of a file, and whether there are others before them.
fn read_end(path: &Path, bytes: u64) -> io::Result<(String, bool)> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let from = len.saturating_sub(bytes);
    file.seek(SeekFrom::Start(from))?;
    let mut content = Vec::new();
    file.take(bytes).read_to_end(&mut content)?;
    let text = String::from_utf8_lossy(&content).into_owned();
    if from == 0 {
        return Ok((text, false));
    }
    Ok((
        text.split_once('\n')
            .map(|(_, whole)| whole.to_owned())
            .unwrap_or_default(),
        true,
    ))
}

fn clip(text: &str) -> String {
    let mut end = text.len().min(LINE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// RFC 3339, UTC. Days to a date: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn timestamp(ms: u64) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second, milli) = (
        in_day / 3_600_000,
        in_day / 60_000 % 60,
        in_day / 1000 % 60,
        in_day % 1000,
    );
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn times_are_in_the_format_of_rfc_3339() {
        for (ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_804_242_296_789, "2027-03-05T10:24:56.789Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(timestamp(ms), want);
        }
    }

    #[test]
    fn s17_a_line_is_json_without_secrets() {
        let dir = TempDir::new().unwrap();
        let log = Log::open(dir.path().join("node.log"), Mask::new(["hunter2hunter2".to_owned()])).unwrap();
        log.write(
            Level::Warn,
            "no hunter2hunter2\nhere",
            &[("token", json!("abc")), ("callId", json!("a/b")), ("pid", json!(7))],
        );
        let tail = log.tail(10).unwrap();
        let line: Value = serde_json::from_str(&tail.lines[0]).unwrap();
        assert_eq!(
            (&line["message"], &line["token"]),
            (&json!("no [redacted]\nhere"), &json!("[redacted]"))
        );
        assert_eq!(
            (&line["callId"], &line["pid"], &line["level"]),
            (&json!("a/b"), &json!(7), &json!("warn"))
        );
    }

    #[test]
    fn f74_s17_secrets_are_masked_in_every_field() {
        const CANARY: &str = "canary-7c1d09ef";
        let dir = TempDir::new().unwrap();
        let log = Log::open(dir.path().join("node.log"), Mask::new([CANARY.to_owned()])).unwrap();
        let text = json!(format!("exit 1: {CANARY} was refused"));
        let nested = json!({"argv": ["curl", {"header": CANARY}]});
        log.write(Level::Warn, "a text", &[("reason", text.clone())]);
        log.write(Level::Warn, "a structure", &[("detail", nested)]);
        log.write(Level::Warn, "a secret's name", &[("apiKey", json!({"value": CANARY}))]);
        // Below another name, and not known to the mask by its value.
        log.write(
            Level::Warn,
            "a name inside",
            &[("detail", json!({"env": [{"PASSWORD": "plain words"}]}))],
        );
        log.call(Level::Error, CANARY, CANARY, &[("why", text)]);
        let written = fs::read_to_string(dir.path().join("node.log")).unwrap();
        assert!(!written.contains(CANARY), "{written}");
        assert!(!written.contains("plain words"), "{written}");
        assert_eq!(written.lines().count(), 5);
        assert!(written.contains("exit 1: [redacted] was refused"), "{written}");
    }

    #[test]
    fn p6_1_the_log_rotates_and_keeps_five_files() {
        let dir = TempDir::new().unwrap();
        let log = Log::with_limit(dir.path().join("node.log"), Mask::default(), 1000).unwrap();
        for number in 0..200 {
            log.write(Level::Info, &format!("line {number}"), &[]);
        }
        let mut sizes: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name(), entry.metadata().unwrap().len()))
            .collect();
        sizes.sort();
        assert_eq!(
            sizes.iter().map(|(name, _)| name.to_str().unwrap()).collect::<Vec<_>>(),
            ["node.log", "node.log.1", "node.log.2", "node.log.3", "node.log.4"]
        );
        assert!(sizes.iter().all(|(_, len)| *len <= 1000));
        let tail = log.tail(12).unwrap();
        assert_eq!(tail.lines.len(), 12);
        assert!(tail.lines[11].contains("line 199") && tail.lines[0].contains("line 188"));
    }

    #[test]
    fn a_tail_fits_a_frame() {
        let dir = TempDir::new().unwrap();
        let log = Log::open(dir.path().join("node.log"), Mask::default()).unwrap();
        assert_eq!(
            log.tail(5).unwrap(),
            Tail {
                lines: vec![],
                truncated: false
            }
        );
        for _ in 0..60 {
            log.write(Level::Info, &"x".repeat(20_000), &[]);
        }
        let tail = log.tail(5000).unwrap();
        assert!(tail.truncated && tail.lines.iter().map(String::len).sum::<usize>() < TAIL_BYTES);
        assert!(!log.tail(3).unwrap().truncated);
    }
}
