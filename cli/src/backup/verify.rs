//! Reads a whole backup: every chunk, every hash, and every database as `SQLite` sees it. Changes nothing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::archive::{Archive, damaged};
use super::manifest::Manifest;
use super::{content, databases};
use crate::exit::{OrFail, Outcome};

/// Where a file goes that is only looked at.
enum To {
    Nowhere,
    /// A database is a file for `SQLite`, until it is checked.
    Database(tempfile::NamedTempFile),
}

impl Write for To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Nowhere => Ok(bytes.len()),
            Self::Database(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn verify(path: &Path, passphrase: &str) -> Outcome<Manifest> {
    Archive::open(path, passphrase)?.each(
        |entry| {
            if !content::is_database(&entry.path) {
                return Ok(To::Nowhere);
            }
            let file = tempfile::Builder::new().prefix(".gsv-").suffix(".sqlite").tempfile();
            file.map(To::Database).or_fail(
                "make a temporary file",
                "Check the folder of temporary files, or set TMPDIR.",
            )
        },
        |entry, to| match to {
            To::Nowhere => Ok(()),
            To::Database(file) => databases::check(file.path())
                .map_err(|why| damaged(path, &format!("the database {} is not sound: {why}", entry.path))),
        },
    )
}

/// The size of a file, for the report.
pub fn size(path: &Path) -> u64 {
    File::open(path)
        .and_then(|file| file.metadata())
        .map_or(0, |meta| meta.len())
}
