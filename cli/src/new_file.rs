//! Writes a file that appears whole or not at all, and replaces another only by `--force`.

use std::io::{self, BufWriter};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::exit::{Failure, OrFail, Outcome};

pub const NEXT: &str = "Check that the folder exists and is writable.";

/// Fails when the file exists and may not be replaced.
pub fn check(path: &Path, force: bool) -> Outcome {
    if path.is_dir() {
        Err(Failure::usage(
            format!("{} is a folder.", path.display()),
            "Name the file to write, for example a new file in this folder.",
        ))
    } else if force || !path.exists() {
        Ok(())
    } else {
        Err(exists(path))
    }
}

/// A private file in the same folder, removed unless it is finished.
pub fn draft(path: &Path) -> Outcome<BufWriter<NamedTempFile>> {
    draft_with(path, ".gsv-")
}

/// As `draft`, with the beginning of its name.
pub fn draft_with(path: &Path, prefix: &str) -> Outcome<BufWriter<NamedTempFile>> {
    let dir = path.parent().unwrap_or(Path::new("."));
    NamedTempFile::with_prefix_in(prefix, dir)
        .map(BufWriter::new)
        .or_fail(doing(path), NEXT)
}

/// Gives the draft its name. Without `force`, a file that appeared meanwhile stays.
pub fn finish(draft: BufWriter<NamedTempFile>, path: &Path, force: bool) -> Outcome {
    match named(draft, path, force) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
        done => done.or_fail(doing(path), NEXT),
    }
}

pub fn doing(path: &Path) -> String {
    format!("write {}", path.display())
}

fn named(draft: BufWriter<NamedTempFile>, path: &Path, force: bool) -> io::Result<()> {
    let file = draft.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    if force {
        file.persist(path)?;
    } else {
        file.persist_noclobber(path)?;
    }
    Ok(())
}

fn exists(path: &Path) -> Failure {
    Failure::failed(
        format!("{} already exists.", path.display()),
        "Choose another name, or replace it with --force.",
    )
}
