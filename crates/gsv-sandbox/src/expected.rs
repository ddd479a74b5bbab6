//! What must be mounted for a command, as it is passed on to the check inside.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A file, wherever it is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// # Errors
/// The file can't be looked at.
#[cfg(target_os = "linux")]
pub(crate) fn identity_of(file: impl std::os::fd::AsFd) -> Result<Identity, rustix::io::Errno> {
    let found = rustix::fs::fstat(file)?;
    Ok(Identity {
        device: found.st_dev,
        inode: found.st_ino,
    })
}

/// What must be mounted at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// This folder, writable.
    Writable(Identity),
    /// This folder or file, read-only.
    ReadOnly(Identity),
    /// Anything that is read-only: it hides what is below.
    Cover,
}

/// The plan of one command's mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) points: Vec<(PathBuf, Want)>,
    /// `/proc/self/mountinfo` outside, before anything was mounted.
    pub(crate) before: Vec<u8>,
}

impl Expected {
    /// Where the command may write. None for a command that changes nothing.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        let points = self.points.iter();
        points.filter_map(|(path, want)| matches!(want, Want::Writable(_)).then_some(path.as_path()))
    }

    /// One record for each point, ended by a zero byte; an empty record; the mounts before. Paths may have any other byte in them.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, want) in &self.points {
            let (letter, identity) = match want {
                Want::Writable(identity) => ('w', *identity),
                Want::ReadOnly(identity) => ('r', *identity),
                Want::Cover => ('c', Identity { device: 0, inode: 0 }),
            };
            bytes.extend(format!("{letter} {} {} ", identity.device, identity.inode).into_bytes());
            bytes.extend(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        bytes.push(0);
        bytes.extend(&self.before);
        bytes
    }

    /// `None`: the record is damaged.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut points = Vec::new();
        let mut rest = bytes;
        loop {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let (record, after) = (rest.get(..end)?, rest.get(end + 1..)?);
            rest = after;
            if record.is_empty() {
                break;
            }
            points.push(point(record)?);
        }
        Some(Self {
            points,
            before: rest.to_owned(),
        })
    }
}

fn point(record: &[u8]) -> Option<(PathBuf, Want)> {
    let mut fields = record.splitn(4, |byte| *byte == b' ');
    let letter = fields.next()?;
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let identity = Identity {
        device: number()?,
        inode: number()?,
    };
    let path = PathBuf::from(OsStr::from_bytes(fields.next()?));
    let want = match letter {
        b"w" => Want::Writable(identity),
        b"r" => Want::ReadOnly(identity),
        b"c" => Want::Cover,
        _ => return None,
    };
    Some((path, want))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn sb5_what_is_expected_is_read_as_it_was_written() {
        let identity = Identity { device: 1, inode: 2 };
        let odd = OsString::from_vec(b"/ws/\xff \n".to_vec());
        let all = Expected {
            points: vec![
                ("/ws".into(), Want::Writable(identity)),
                ("/ws/a b".into(), Want::ReadOnly(identity)),
                (odd.into(), Want::Cover),
            ],
            before: b"27 1 254:0 / / rw - ext4 /dev/vda rw\n".to_vec(),
        };
        assert_eq!(Expected::from_bytes(&all.to_bytes()), Some(all.clone()));
        assert_eq!(Expected::from_bytes(b"w 1 x /ws\0\0"), None);
        assert_eq!(Expected::from_bytes(b"w 1 2 /ws\0"), None);
    }
}
