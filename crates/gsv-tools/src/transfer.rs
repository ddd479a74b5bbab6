//! The two ends of a transfer on this machine: a file that is sent, and one that is received. Both make the sha256 of the bytes as
//! they pass. Blocks; the node calls it on threads for the disk. Never: talks to the gateway, or opens a path by itself.

use std::fmt::Write as _;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use ring::digest::{Context, SHA256};
use rustix::fs::Stat;

use crate::beneath::{Beneath, GoesOn, Opened, Partial, RelPath};
use crate::error::{ToolError, quote};

const BUFFER: usize = 256 * 1024;

/// Whether this may be the id of a transfer, which is a part of a file's name.
pub fn is_id(id: &str) -> bool {
    id.len() == 32
        && id
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a name is that of a transfer's temporary file.
pub fn is_temp_name(name: &str) -> bool {
    name.strip_prefix(".gsv-")
        .and_then(|rest| rest.strip_suffix(".part"))
        .is_some_and(is_id)
}

/// A file that is sent.
pub struct Source {
    opened: Opened,
    shown: String,
    hash: Context,
    offset: u64,
}

impl Source {
    pub fn open(files: &Beneath, path: &str) -> Result<Self, ToolError> {
        let rel = files.parse(path)?;
        Ok(Self {
            opened: files.open_file(&rel)?,
            shown: files.show(&rel),
            hash: Context::new(&SHA256),
            offset: 0,
        })
    }

    pub fn size(&self) -> u64 {
        self.opened.size()
    }

    /// Another text after each change of the file.
    pub fn version(&self) -> String {
        version_of(&self.opened.stat)
    }

    /// Goes to `offset`, and reads all before it once for the checksum.
    pub fn skip(&mut self, offset: u64, goes_on: &GoesOn<'_>) -> Result<(), ToolError> {
        let mut buffer = vec![0; BUFFER];
        while self.offset < offset {
            if !goes_on() {
                return Err(ToolError::Cancelled { tail: None });
            }
            let left = usize::try_from(offset - self.offset).unwrap_or(usize::MAX);
            self.fill(&mut buffer[..left.min(BUFFER)])?;
        }
        Ok(())
    }

    /// The next bytes behind `head`, `most` of them unless the file ends before. `None`: they were all read.
    pub fn frame(&mut self, head: &[u8], most: usize) -> Result<Option<Vec<u8>>, ToolError> {
        let left = usize::try_from(self.size() - self.offset).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(None);
        }
        let mut frame = vec![0; head.len() + most.min(left)];
        let (start, bytes) = frame.split_at_mut(head.len());
        start.copy_from_slice(head);
        self.fill(bytes)?;
        Ok(Some(frame))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), ToolError> {
        self.opened.file.read_exact(bytes).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                self.changed()
            } else {
                ToolError::io(format!("read {}", quote(&self.shown)), error)
            }
        })?;
        self.hash.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// The sha256 of the whole file, which has not changed since it was opened.
    pub fn finish(mut self) -> Result<String, ToolError> {
        // Files that the system makes while they are read say that they have no bytes.
        if self.opened.file.read(&mut [0]).is_ok_and(|more| more > 0) {
            return Err(match self.size() {
                0 => ToolError::Sizeless {
                    path: quote(&self.shown),
                },
                _ => self.changed(),
            });
        }
        let now = rustix::fs::fstat(&self.opened.file)
            .map_err(|errno| ToolError::io(format!("read {}", quote(&self.shown)), errno))?;
        if version_of(&now) != version_of(&self.opened.stat) {
            return Err(self.changed());
        }
        Ok(hex(self.hash))
    }

    fn changed(&self) -> ToolError {
        ToolError::SourceChanged {
            path: quote(&self.shown),
        }
    }
}

/// What a destination says to a file that is offered.
pub enum Offered {
    /// It takes the file, from [`Destination::offset`] on.
    Open(Box<Destination>),
    /// It has the file already: an earlier attempt has stored it, and its answer was lost.
    Stored,
}

/// A file that is offered.
#[derive(Debug, Clone)]
pub struct Offer {
    pub path: String,
    /// The id of the transfer ([`is_id`]).
    pub id: String,
    pub size: u64,
    /// When it is known before the bytes.
    pub sha256: Option<String>,
    pub replaces: bool,
}

/// A file that is received.
pub struct Destination {
    partial: Partial,
    shown: String,
    hash: Context,
    offset: u64,
    size: u64,
}

impl Destination {
    /// Opens a file that is received, and reads once what an interrupted attempt has left of it.
    pub fn open(files: &Beneath, offer: &Offer, goes_on: &GoesOn<'_>) -> Result<Offered, ToolError> {
        let rel = files.parse(&offer.path)?;
        if let Some(sha256) = &offer.sha256
            && holds(files, &rel, offer.size, sha256, goes_on)
        {
            // A temporary file of another attempt is of no use.
            let _ = files.remove_partial(&rel, &offer.id);
            return Ok(Offered::Stored);
        }
        let partial = files.open_partial(&rel, &offer.id, offer.replaces, goes_on)?;
        let mut new = Self {
            partial,
            shown: files.show(&rel),
            hash: Context::new(&SHA256),
            offset: 0,
            size: offer.size,
        };
        if !new.resume(goes_on).map_err(|error| new.failed(error))? {
            return Err(ToolError::Cancelled { tail: None });
        }
        Ok(Offered::Open(Box::new(new)))
    }

    /// False: it is no longer wanted.
    fn resume(&mut self, goes_on: &GoesOn<'_>) -> std::io::Result<bool> {
        let file = &mut self.partial.file;
        if file.metadata()?.len() > self.size {
            file.set_len(0)?;
        }
        file.rewind()?;
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            self.hash.update(&buffer[..read]);
            self.offset += read as u64;
            if !goes_on() {
                return Ok(false);
            }
        }
        file.seek(SeekFrom::Start(self.offset)).map(|_| true)
    }

    /// The bytes that this end has.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        let written = self.partial.file.write_all(bytes);
        written.map_err(|error| self.failed(error))?;
        self.hash.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Stores the file, when it is whole and has this sha256. Otherwise nothing is left of it.
    pub fn finish(self, files: &Beneath, sha256: &str) -> Result<(), ToolError> {
        if self.offset != self.size || hex(self.hash) != sha256 {
            files.discard_partial(self.partial);
            return Err(ToolError::Differs {
                path: quote(&self.shown),
            });
        }
        files.commit_partial(self.partial)
    }

    /// Removes what was received.
    pub fn discard(self, files: &Beneath) {
        files.discard_partial(self.partial);
    }

    fn failed(&self, error: std::io::Error) -> ToolError {
        ToolError::io(format!("write {}", quote(&self.shown)), error)
    }
}

/// Removes what a transfer that has ended has left here.
pub fn discard(files: &Beneath, path: &str, id: &str) -> Result<(), ToolError> {
    files.remove_partial(&files.parse(path)?, id)
}

/// Whether the file is there with this content, as far as it was read.
fn holds(files: &Beneath, rel: &RelPath, size: u64, sha256: &str, goes_on: &GoesOn<'_>) -> bool {
    let Ok(mut opened) = files.open_file(rel) else {
        return false;
    };
    if opened.size() != size {
        return false;
    }
    let mut hash = Context::new(&SHA256);
    let mut buffer = vec![0; BUFFER];
    loop {
        match opened.file.read(&mut buffer) {
            Ok(0) => return hex(hash) == sha256,
            Ok(read) if goes_on() => hash.update(&buffer[..read]),
            Ok(_) | Err(_) => return false,
        }
    }
}

fn version_of(stat: &Stat) -> String {
    format!(
        "{:x}-{:x}-{}-{}.{}-{}.{}",
        stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec
    )
}

fn hex(hash: Context) -> String {
    hash.finish().as_ref().iter().fold(String::new(), |mut out, byte| {
        // Writing to a string can't fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
