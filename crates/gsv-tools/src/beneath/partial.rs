//! A file that arrives in pieces: a temporary file in the folder of its destination. When it is whole, it replaces the destination at
//! once. An interrupted one stays, and is continued under the same id.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::write::is_same;
use super::{Beneath, Links, Parents, RelPath, Spot, kind_of, mode_of, stat_name};
use crate::error::{ToolError, quote};

/// How often the temporary file is opened that another task removes at the same time.
const TRIES: usize = 8;
/// For another task that ends, which looks between two pieces whether it goes on.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
const LOCK_LOOK: Duration = Duration::from_millis(20);

/// Asked between two pieces of work that may take minutes: whether it is still wanted.
pub type GoesOn<'a> = dyn Fn() -> bool + 'a;

/// The temporary file of a destination, locked.
pub struct Partial {
    rel: RelPath,
    spot: Spot,
    temp: String,
    pub(crate) file: File,
}

impl Beneath {
    /// Opens or makes the temporary file of `id`. Waits some seconds until another task of this machine that writes it has let it go.
    ///
    /// # Errors
    /// The destination can't be written, another task goes on writing the temporary file, or `goes_on` says no; without `replaces`, also
    /// that the destination exists.
    pub fn open_partial(
        &self,
        rel: &RelPath,
        id: &str,
        replaces: bool,
        goes_on: &GoesOn<'_>,
    ) -> Result<Partial, ToolError> {
        let spot = self.locate(rel, Links::Follow, Parents::Create)?;
        if let Some(stat) = &spot.stat {
            self.require_regular(rel, kind_of(stat))?;
            if !replaces {
                return Err(ToolError::Exists {
                    path: quote(&self.show(rel)),
                });
            }
            rustix::fs::accessat(&spot.dir, &spot.name, Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|errno| self.failed(rel, errno))?;
        }
        self.require_named(rel, &spot)?;
        self.require_not_run(rel, &spot)?;
        let temp = temp_name(id);
        // The mode of the file that is replaced is set at the end; until then no other user may read the new content.
        let mode = if spot.stat.is_some() { 0o600 } else { 0o666 };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            let fd = rustix::fs::openat(&spot.dir, temp.as_str(), flags, Mode::from_raw_mode(mode))
                .map_err(|errno| self.failed(rel, errno))?;
            self.lock(rel, &fd, goes_on)?;
            let opened = rustix::fs::fstat(&fd).map_err(|errno| self.failed(rel, errno))?;
            self.require_regular(rel, kind_of(&opened))?;
            // A file with another name could be one that this machine must not change.
            if opened.st_nlink > 1 {
                return Err(ToolError::ManyNames {
                    path: quote(&self.show(rel)),
                });
            }
            let named = stat_name(&spot.dir, temp.as_str()).map_err(|errno| self.failed(rel, errno))?;
            if named.is_some_and(|named| is_same(&named, &opened)) {
                return Ok(Partial {
                    rel: rel.clone(),
                    spot,
                    temp,
                    file: File::from(fd),
                });
            }
        }
        Err(ToolError::Changed {
            path: quote(&self.show(rel)),
        })
    }

    /// Never waits without a bound: the other one may be a program that its user has stopped.
    fn lock(&self, rel: &RelPath, fd: &OwnedFd, goes_on: &GoesOn<'_>) -> Result<(), ToolError> {
        let give_up = Instant::now() + LOCK_PATIENCE;
        loop {
            match rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(self.failed(rel, errno)),
            }
            if !goes_on() {
                return Err(ToolError::Cancelled { tail: None });
            }
            if Instant::now() >= give_up {
                return Err(ToolError::Busy {
                    path: quote(&self.show(rel)),
                });
            }
            sleep(LOCK_LOOK);
        }
    }

    /// Makes the folder and those that lead to it.
    ///
    /// # Errors
    /// A link leads out of the root, or the disk refuses it.
    pub fn make_folder(&self, rel: &RelPath) -> Result<(), ToolError> {
        // The parents of any name in it are made.
        self.locate(&rel.child("_"), Links::Follow, Parents::Create).map(drop)
    }

    /// Puts the file in its place, when the destination is as it was.
    ///
    /// # Errors
    /// The destination has changed, or the disk failed. The temporary file is removed.
    pub fn commit_partial(&self, partial: Partial) -> Result<(), ToolError> {
        let stored = self.store(&partial);
        if stored.is_err() {
            self.discard_partial(partial);
        }
        stored
    }

    fn store(&self, partial: &Partial) -> Result<(), ToolError> {
        let Partial { rel, spot, temp, file } = partial;
        if let Some(stat) = &spot.stat {
            let mode = Mode::from_bits_truncate((mode_of(stat) & 0o777) as rustix::fs::RawMode);
            rustix::fs::fchmod(file, mode).map_err(|errno| self.failed(rel, errno))?;
        }
        file.sync_all().map_err(|error| ToolError::io(self.doing(rel), error))?;
        self.put(rel, spot, temp, spot.stat.as_ref())
    }

    /// Removes the temporary file.
    pub fn discard_partial(&self, Partial { spot, temp, .. }: Partial) {
        // Best effort: it may be gone.
        let _ = rustix::fs::unlinkat(&spot.dir, temp.as_str(), AtFlags::empty());
    }

    /// Removes the temporary file that an ended transfer has left.
    ///
    /// # Errors
    /// The folder can't be opened. A file that is gone is no error.
    pub fn remove_partial(&self, rel: &RelPath, id: &str) -> Result<(), ToolError> {
        let spot = self.locate(rel, Links::Follow, Parents::MustExist)?;
        match rustix::fs::unlinkat(&spot.dir, temp_name(id).as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.failed(rel, errno)),
        }
    }

    fn doing(&self, rel: &RelPath) -> String {
        format!("write {}", quote(&self.show(rel)))
    }
    fn failed(&self, rel: &RelPath, errno: Errno) -> ToolError {
        ToolError::io(self.doing(rel), errno)
    }
}

fn temp_name(id: &str) -> String {
    format!(".gsv-{id}.part")
}
