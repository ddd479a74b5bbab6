//! Makes a backup: snapshot, checks, manifest, archive. The file appears whole under its name or not at all.

use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{NamedTempFile, TempDir};

use super::archive::{self, digest, files_below};
use super::manifest::{Entry, Manifest};
use super::snapshot::Snapshot;
use super::{content, databases, go_on, secrets, verify};
use crate::embedded::cluster::Cluster;
use crate::embedded::layout::Layout;
use crate::embedded::lock::Lock;
use crate::embedded::state::{Found, State};
use crate::exit::{Failure, OrFail, Outcome};
use crate::new_file;
use crate::paths;
use crate::units::now_ms;

/// How the names of the folders begin in which copies are made.
const PREFIX: &str = "backup-";
pub const OTHER_UNDER_WAY: &str = "Another backup of this gateway is being made.";

pub struct Request<'a> {
    pub file: &'a Path,
    pub passphrase: &'a str,
    pub with_secrets: bool,
    pub force: bool,
    /// How the name of a scheduled backup's unfinished file begins. The file is read back before it gets its final name.
    pub unattended: Option<&'a str>,
}

#[derive(Debug)]
pub struct Made {
    pub manifest: Manifest,
    pub bytes: u64,
    /// The gateway was held still for at most so long.
    pub held: Duration,
    pub left_out: Vec<String>,
}

pub fn make(layout: &Layout, request: &Request) -> Outcome<Made> {
    check_place(layout, request)?;
    let Some(lock) = try_lock(layout)? else {
        return Err(Failure::later(
            OTHER_UNDER_WAY,
            "Wait until it has ended, then run the command again.",
        ));
    };
    make_holding(layout, request, &lock)
}

/// Held while a backup is made. `None`: another one is under way.
pub fn try_lock(layout: &Layout) -> Outcome<Option<Lock>> {
    Lock::try_take(&layout.gateway().join("backup.lock"))
}

/// As `make`, for a caller that has the lock already.
pub fn make_holding(layout: &Layout, request: &Request, _lock: &Lock) -> Outcome<Made> {
    check_place(layout, request)?;
    let gateway = layout.gateway();
    sweep(&gateway);
    let copy = TempDir::with_prefix_in(PREFIX, &gateway);
    let copy = copy.or_fail(format_args!("make a folder in {}", gateway.display()), new_file::NEXT)?;
    let draft = match request.unattended {
        None => new_file::draft(request.file)?,
        Some(prefix) => new_file::draft_with(request.file, prefix)?,
    };
    let (snapshot, held) = Snapshot::take(layout, copy.path())?;
    let left_out = snapshot.left_out;
    merge_databases(copy.path())?;
    let without = if request.with_secrets {
        secrets::add(copy.path())?;
        Vec::new()
    } else {
        secrets::remove(copy.path())?
    };
    let manifest = describe(layout, copy.path(), request.with_secrets, without)?;
    let written = archive::write(draft, request.passphrase, &manifest, copy.path());
    go_on()?;
    let mut draft = written.or_fail(new_file::doing(request.file), new_file::NEXT)?;
    if request.unattended.is_some() {
        // The databases of the backup take the place of the copy.
        drop(copy);
        read_back(&mut draft, request)?;
    }
    let bytes = draft.get_ref().as_file().metadata().map_or(0, |meta| meta.len());
    new_file::finish(draft, request.file, request.force)?;
    sync_folder(request.file)?;
    Ok(Made {
        manifest,
        bytes,
        held,
        left_out,
    })
}

/// Checks what was written as `gsv backup verify` does.
fn read_back(draft: &mut BufWriter<NamedTempFile>, request: &Request) -> Outcome {
    let flushed = draft.flush().and_then(|()| draft.get_ref().as_file().sync_all());
    flushed.or_fail(new_file::doing(request.file), new_file::NEXT)?;
    let checked = verify::verify(draft.get_ref().path(), request.passphrase);
    go_on()?;
    checked.map(drop).map_err(|failure| {
        Failure::failed(
            format!(
                "The new backup could not be checked, so it was removed: {}",
                failure.message
            ),
            "Check the disks (`df -h`) and the memory of this machine. Older backups are kept.",
        )
    })
}

fn check_place(layout: &Layout, request: &Request) -> Outcome {
    if !layout.durable().is_dir() {
        return Err(Failure::failed(
            format!(
                "There is no gateway in {}, so there is nothing to back up.",
                layout.home.display()
            ),
            "Run this on the gateway's machine, with its GSV_HOME.",
        ));
    }
    Cluster::refuse(
        layout,
        "No backup was made",
        "Keep the state of the cluster with `gsv stop --all` and `gsv deploy export FILE`, then `gsv resume`.",
    )?;
    new_file::check(request.file, request.force)?;
    let dir = folder_of(request.file);
    let inside = fs::canonicalize(&dir).ok().zip(fs::canonicalize(&layout.home).ok());
    if inside.is_some_and(|(dir, home)| dir.starts_with(home)) {
        return Err(Failure::usage(
            format!(
                "{} is in the state folder, which would be lost together with its backup.",
                request.file.display()
            ),
            "Choose a folder on another disk.",
        ));
    }
    Ok(())
}

pub fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Removes copies that a killed backup has left. The caller holds the lock.
fn sweep(gateway: &Path) {
    for entry in fs::read_dir(gateway).into_iter().flatten().flatten() {
        let is_copy = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_copy && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn merge_databases(copy: &Path) -> Outcome {
    for path in list(copy)? {
        if content::is_database(&path) {
            go_on()?;
            databases::merge(&copy.join(&path)).map_err(|why| {
                Failure::failed(
                    format!("The database {path} of the state folder is damaged, so no backup was made: {why}."),
                    "Restore an earlier backup with `gsv restore FILE`. If there is none, stop the gateway with `gsv down` and keep a copy of the whole state folder.",
                )
            })?;
        }
    }
    // A log without its database is left over, and no archive may have one.
    for path in list(copy)?.iter().filter(|path| content::is_log(path)) {
        fs::remove_file(copy.join(path)).or_fail(format_args!("remove the copy of {path}"), new_file::NEXT)?;
    }
    Ok(())
}

fn list(copy: &Path) -> Outcome<Vec<String>> {
    files_below(copy).or_fail("list the copied files", new_file::NEXT)
}

fn describe(layout: &Layout, copy: &Path, has_secrets: bool, without: Vec<String>) -> Outcome<Manifest> {
    let mut files = Vec::new();
    for path in list(copy)? {
        go_on()?;
        files.push(entry(copy, path)?);
    }
    let gateway = match State::read(&layout.state()) {
        Found::State(state) => Some(state.version),
        Found::Absent | Found::Damaged => None,
    };
    Ok(Manifest {
        made_at: now_ms(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        home: layout.home.display().to_string(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        gateway,
        has_secrets,
        channels_without_variables: without,
        moved: None,
        files,
    })
}

fn entry(copy: &Path, path: String) -> Outcome<Entry> {
    let file = copy.join(&path);
    let doing = format!("read the copy of {path}");
    let (size, sha256) = digest(&file).or_fail(&doing, new_file::NEXT)?;
    let meta = fs::metadata(&file).or_fail(&doing, new_file::NEXT)?;
    let modified = meta
        .modified()
        .ok()
        .and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    Ok(Entry {
        size,
        sha256,
        modified_ns: modified.and_then(|at| u64::try_from(at.as_nanos()).ok()).unwrap_or(0),
        executable: meta.permissions().mode() & 0o100 != 0,
        path,
    })
}

/// The name itself survives a loss of power.
fn sync_folder(file: &Path) -> Outcome {
    let dir = folder_of(file);
    let synced = fs::File::open(&dir).and_then(|dir| dir.sync_all());
    synced.or_fail(
        format_args!("make {} durable", paths::shell(file)),
        "Check the disk, then run `gsv backup verify` on the file.",
    )
}
