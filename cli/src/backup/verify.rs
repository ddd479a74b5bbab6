//! Reads a whole backup: every chunk, every hash, and every database as `SQLite` sees it. Changes nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::archive::{Archive, damaged};
use super::manifest::Manifest;
use super::scratch::Scratch;
use super::{content, databases};
use crate::exit::{OrFail, Outcome};

/// Where a file goes that is only looked at.
enum To {
    Nowhere,
    /// A database is a file for `SQLite`, until it is checked.
    Database(PathBuf, File),
}

impl Write for To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Nowhere => Ok(bytes.len()),
            Self::Database(_, file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn verify(path: &Path, passphrase: &str) -> Outcome<Manifest> {
    let archive = Archive::open(path, passphrase)?;
    let scratch = Scratch::make()?;
    archive.each(
        |entry| {
            if !content::is_database(&entry.path) {
                return Ok(To::Nowhere);
            }
            scratch.check_space("a database of the backup", entry.size)?;
            let copy = scratch.path("database.sqlite");
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy);
            let file = file.or_fail(
                "make a temporary file",
                "Check the folder of temporary files, or set TMPDIR.",
            )?;
            Ok(To::Database(copy, file))
        },
        |entry, to| match to {
            To::Nowhere => Ok(()),
            To::Database(copy, _) => {
                databases::check(&copy)
                    .map_err(|why| damaged(path, &format!("the database {} is not sound: {why}", entry.path)))?;
                fs::remove_file(&copy).or_fail("remove a temporary file", "Check the folder of temporary files.")
            }
        },
    )
}

/// The size of a file, for the report.
pub fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}
