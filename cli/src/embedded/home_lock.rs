//! The lock of a state folder's nodes: each `gsv node` shares it for as long as it runs, and a restore that replaces the folder holds it
//! alone. The lock of a node's ledger is not enough, because a node that starts may not have a ledger yet.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::exit::{Failure, OrFail, Outcome};

const NAME: &str = "node.lock";
const NEXT: &str = "Check that the state folder is yours and writable.";
/// Each restore that ends meanwhile replaces the file once.
const TRIES: usize = 10;

/// Held until dropped.
#[derive(Debug)]
pub struct HomeLock {
    _file: File,
}

/// For a node that starts.
pub fn share(home: &Path) -> Outcome<HomeLock> {
    let taken = take(home, File::try_lock_shared)?;
    taken.ok_or_else(|| {
        Failure::later(
            format!("`gsv restore` is replacing the state in {}.", home.display()),
            "Wait until it has ended, then run the command again.",
        )
    })
}

/// For a restore that replaces the folder.
pub fn hold(home: &Path) -> Outcome<HomeLock> {
    let taken = take(home, File::try_lock)?;
    taken.ok_or_else(|| {
        Failure::failed(
            format!(
                "A node or another restore runs with the files in {}, so nothing was restored.",
                home.display()
            ),
            "Stop the node with `gsv node stop`, or with Ctrl-C in its terminal; wait for another restore to end. Then run the command again.",
        )
    })
}

fn take(home: &Path, lock: impl Fn(&File) -> Result<(), TryLockError>) -> Outcome<Option<HomeLock>> {
    let path = home.join(NAME);
    let doing = || format!("lock {}", path.display());
    for _ in 0..TRIES {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).or_fail(doing(), NEXT)?;
        match lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error).or_fail(doing(), NEXT),
        }
        // Another folder may have taken the place of this one since the file was opened.
        let mine = file.metadata().or_fail(doing(), NEXT)?;
        if path
            .metadata()
            .is_ok_and(|there| (there.dev(), there.ino()) == (mine.dev(), mine.ino()))
        {
            return Ok(Some(HomeLock { _file: file }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bk12_nodes_share_the_lock_and_a_restore_has_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (share(dir.path()).unwrap(), share(dir.path()).unwrap());
        assert!(hold(dir.path()).unwrap_err().message.contains("A node"));
        drop((one, two));
        let held = hold(dir.path()).unwrap();
        assert!(share(dir.path()).unwrap_err().message.contains("gsv restore"));
        drop(held);
        share(dir.path()).unwrap();
    }
}
