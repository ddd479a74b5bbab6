//! Unpacks the archive of a release, whose hash was verified before. Even so it takes only plain files and folders below its one top folder,
//! and no more bytes than a release has.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use crate::exit::{Failure, OrFail, Outcome};

const MAX_BYTES: u64 = 4 << 30;
const MAX_ENTRIES: usize = 10_000;

pub fn unpack(archive: &Path, to: &Path) -> Outcome {
    let doing = || format!("unpack {}", archive.display());
    let next = "Check that the disk is not full, then run the command again.";
    let file = File::open(archive).or_fail(doing(), next)?;
    fs::create_dir(to).or_fail(doing(), next)?;
    let unpacked = write_entries(GzDecoder::new(file), to);
    match unpacked {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(Failure::failed(
            format!("The archive of the release is not valid: {error}. Nothing was replaced."),
            "Tell those who publish the releases.",
        )),
        done => done.or_fail(doing(), next),
    }
}

fn write_entries(content: impl Read, to: &Path) -> io::Result<()> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut archive = Archive::new(content.take(MAX_BYTES));
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if number >= MAX_ENTRIES {
            return Err(invalid("it has too many entries".into()));
        }
        let below = below_top(&path).ok_or_else(|| invalid(format!("it names {}", path.display())))?;
        let target = to.join(&below);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&target)?,
            EntryType::Regular => {
                if let Some(parent) = target.parent() {
                    fs::create_dir_all(parent)?;
                }
                let is_program = entry.header().mode()? & 0o100 != 0;
                let mut file = File::create_new(&target)?;
                io::copy(&mut entry, &mut file)?;
                file.set_permissions(fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))?;
            }
            _ => return Err(invalid(format!("{} is neither a file nor a folder", path.display()))),
        }
    }
    Ok(())
}

/// The path below the archive's one top folder. `None`: it leads elsewhere.
fn below_top(path: &Path) -> Option<PathBuf> {
    let mut below = PathBuf::new();
    for (number, part) in path.components().enumerate() {
        match part {
            Component::Normal(_) if number == 0 => {}
            Component::Normal(name) => below.push(name),
            _ => return None,
        }
    }
    (path.components().count() > 0).then_some(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    fn archive(dir: &Path, name: &str, kind: EntryType) -> PathBuf {
        let path = dir.join("a.tar.gz");
        let mut builder = Builder::new(GzEncoder::new(File::create(&path).unwrap(), Compression::fast()));
        let mut header = Header::new_gnu();
        let bytes = header.as_gnu_mut().unwrap();
        bytes.name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(if kind == EntryType::Regular { 2 } else { 0 });
        header.set_cksum();
        let content: &[u8] = if kind == EntryType::Regular { b"hi" } else { b"" };
        builder.append(&header, content).unwrap();
        builder.into_inner().unwrap().finish().unwrap();
        path
    }

    #[test]
    fn up9_an_archive_gives_plain_files_below_its_folder_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("new");
        unpack(&archive(dir.path(), "gsv-1/bin/gsv", EntryType::Regular), &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("bin/gsv")).unwrap(), "hi");
        assert_eq!(
            fs::metadata(to.join("bin/gsv")).unwrap().permissions().mode() & 0o777,
            0o755
        );
        for (name, kind) in [
            ("gsv-1/../../out", EntryType::Regular),
            ("/etc/out", EntryType::Regular),
            ("gsv-1/link", EntryType::Symlink),
            ("gsv-1/link", EntryType::Link),
            ("gsv-1/pipe", EntryType::Fifo),
        ] {
            let to = dir.path().join("other");
            let failure = unpack(&archive(dir.path(), name, kind), &to).unwrap_err();
            assert!(failure.message.contains("not valid"), "{name}: {}", failure.message);
            let _ = fs::remove_dir_all(to);
        }
        assert!(!dir.path().join("out").exists());
    }
}
