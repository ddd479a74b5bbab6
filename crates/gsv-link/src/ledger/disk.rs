//! The operations by which the ledger changes the disk. They are a trait, so that tests can stop between any two of them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

pub trait Disk: Send + Sync {
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn set_len(&self, file: &File, len: u64) -> io::Result<()>;
    /// Returns when the file's content would survive a power cut.
    fn sync(&self, file: &File) -> io::Result<()>;
    fn create(&self, path: &Path) -> io::Result<File>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives the file a second name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

#[derive(Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        // Some file systems have no hard links.
        fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(|_| ()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No later read shows whether a file was synced. But a device without storage refuses to sync, so the error shows that the
    /// system was asked.
    #[test]
    fn f70_the_disk_asks_the_system_to_sync() {
        let null = Path::new("/dev/null");
        let file = File::open(null).unwrap();
        assert_eq!(RealDisk.sync(&file).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(RealDisk.sync_dir(null).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
