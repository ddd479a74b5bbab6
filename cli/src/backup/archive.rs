//! The inner form of a backup: the length of the manifest, the manifest, and the content of its files in its order, deflated and sealed.
//! Files have no headers of their own, so nothing but the manifest says what they are.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::bufread::DeflateDecoder;
use flate2::write::DeflateEncoder;
use ring::digest::{Context, SHA256};
use rustix::fs::OFlags;

use super::manifest::{Entry, MAX_BYTES, Manifest};
use super::seal::{Fault, Opener, Sealer};
use crate::exit::{Exit, Failure, OrFail, Outcome};

const BUFFER: usize = 64 * 1024;
/// Deflate can't make more bytes of one.
const MOST_INFLATED: u64 = 1_032;
const DAMAGED_NEXT: &str = "Use another copy of this backup, or another backup. A transfer may have damaged the file: copy it again and run `gsv backup verify` on it.";

/// Writes the archive of the files below `from`. Returns the file behind it, whole.
pub fn write<W: Write + Seek>(out: W, passphrase: &str, manifest: &Manifest, from: &Path) -> io::Result<W> {
    let list = serde_json::to_vec(manifest)?;
    let length = u32::try_from(list.len()).ok().filter(|length| *length <= MAX_BYTES);
    let length = length.ok_or_else(|| io::Error::other("there are more files than one backup can hold"))?;
    let sealer = Sealer::new(out, passphrase)?;
    let mut deflate = DeflateEncoder::new(BufWriter::with_capacity(BUFFER, sealer), Compression::new(4));
    deflate.write_all(&length.to_le_bytes())?;
    deflate.write_all(&list)?;
    for entry in &manifest.files {
        let mut file = File::open(from.join(&entry.path))?.take(entry.size);
        if copy(&mut file, &mut deflate)? != (entry.size, entry.sha256.clone()) {
            return Err(io::Error::other(format!("{} changed while it was written", entry.path)));
        }
    }
    let sealer = deflate.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    sealer.finish()
}

/// Size and hash of what was copied.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<(u64, String)> {
    let (mut hash, mut size, mut buffer) = (Context::new(&SHA256), 0_u64, vec![0; BUFFER]);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                hash.update(&buffer[..read]);
                to.write_all(&buffer[..read])?;
                size += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((size, HEXLOWER.encode(hash.finish().as_ref())))
}

/// Size and hash of a file.
pub fn digest(path: &Path) -> io::Result<(u64, String)> {
    copy(&mut File::open(path)?, &mut io::sink())
}

/// An archive that is being read: the manifest is checked, the files follow.
pub struct Archive<'a> {
    path: &'a Path,
    pub manifest: Manifest,
    content: DeflateDecoder<BufReader<Opener<BufReader<File>>>>,
}

/// The file of a backup, and its size. Fails where there is none, so that no passphrase is asked for.
pub fn file_of(path: &Path) -> Outcome<(File, u64)> {
    let next = "Check the path of the backup.";
    // A pipe is not waited for; a plain file is read as without the flag.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.or_fail(format_args!("open {}", path.display()), next)?;
    let meta = file
        .metadata()
        .or_fail(format_args!("look at {}", path.display()), next)?;
    if !meta.is_file() {
        return Err(Failure::usage(
            format!("{} is not a file.", path.display()),
            "Give the file of a backup.",
        ));
    }
    Ok((file, meta.len()))
}

impl<'a> Archive<'a> {
    pub fn open(path: &'a Path, passphrase: &str) -> Outcome<Self> {
        let (file, bytes) = file_of(path)?;
        Self::read(path, file, bytes, passphrase).map_err(|error| unreadable(path, &error))
    }

    fn read(path: &'a Path, file: File, bytes: u64, passphrase: &str) -> io::Result<Self> {
        let opener = Opener::new(BufReader::with_capacity(BUFFER, file), bytes, passphrase)?;
        let mut content = DeflateDecoder::new(BufReader::with_capacity(BUFFER, opener));
        let mut length = [0; 4];
        content.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > MAX_BYTES {
            return Err(Fault::Malformed("its list of files is too long").error());
        }
        let mut list = Vec::new();
        (&mut content).take(length.into()).read_to_end(&mut list)?;
        let manifest = Manifest::parse(&list).map_err(Fault::error)?;
        if manifest.bytes() > bytes.saturating_mul(MOST_INFLATED) {
            return Err(Fault::Malformed("its sizes are too large").error());
        }
        Ok(Self {
            path,
            manifest,
            content,
        })
    }

    /// Writes each file to where `place` says and checks it against the manifest; `written` sees each file that is right. The last step
    /// checks that nothing follows. All that this writes must be thrown away after a failure.
    pub fn each<W: Write>(
        mut self,
        mut place: impl FnMut(&Entry) -> Outcome<W>,
        mut written: impl FnMut(&Entry, W) -> Outcome,
    ) -> Outcome<Manifest> {
        for entry in &self.manifest.files {
            let mut to = place(entry)?;
            let mut sink = Writing {
                to: &mut to,
                failed: false,
            };
            let copied = copy(&mut (&mut self.content).take(entry.size), &mut sink);
            let has_no_place = sink.failed;
            let copied = match copied {
                Err(error) if has_no_place => {
                    let doing = format!("write {} of the backup", entry.path);
                    return Err(error).or_fail(doing, "Check the disk.");
                }
                copied => copied.map_err(|error| unreadable(self.path, &error))?,
            };
            if copied != (entry.size, entry.sha256.clone()) {
                return Err(damaged(
                    self.path,
                    &format!("{} does not have the hash of its list", entry.path),
                ));
            }
            written(entry, to)?;
        }
        self.end().map_err(|error| unreadable(self.path, &error))?;
        Ok(self.manifest)
    }

    fn end(&mut self) -> io::Result<()> {
        let more = self.content.read(&mut [0; 1])?;
        // The sealed content may have more than the deflated one.
        if more > 0 || !self.content.get_mut().fill_buf()?.is_empty() {
            return Err(Fault::Malformed("something follows its last file").error());
        }
        Ok(())
    }
}

/// Tells a failure to write from one to read.
struct Writing<'a, W> {
    to: &'a mut W,
    failed: bool,
}

impl<W: Write> Write for Writing<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to
            .write(bytes)
            .inspect_err(|error| self.failed |= error.kind() != io::ErrorKind::Interrupted)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

pub fn damaged(path: &Path, why: &str) -> Failure {
    Failure::failed(format!("{} is damaged: {why}.", path.display()), DAMAGED_NEXT)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let name = path.display();
    match Fault::of(error) {
        Some(Fault::NoBackup) => Failure::usage(
            format!("{name} is not a backup of GSV."),
            "Give the file that `gsv backup FILE` has written.",
        ),
        Some(Fault::Newer(version)) => Failure::failed(
            format!("{name} was made by a newer version of GSV (its format is {version})."),
            "Update GSV, then run the command again.",
        ),
        Some(Fault::Passphrase) => Failure::new(
            Exit::Auth,
            format!(
                "The passphrase does not open {name}, or its first {} bytes were changed.",
                super::seal::HEADER
            ),
            "Try the passphrase again. Without it, no one can read the backup.",
        ),
        Some(Fault::Incomplete { bytes, of }) => Failure::failed(
            format!("{name} is not whole: it has {bytes} of {of} bytes."),
            DAMAGED_NEXT,
        ),
        Some(Fault::Changed) => damaged(path, "a part of it was changed or cut off"),
        Some(Fault::Malformed(why)) => damaged(path, why),
        None if error.kind() == io::ErrorKind::TimedOut => Failure::interrupted(),
        None if matches!(
            error.kind(),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
        ) =>
        {
            damaged(path, "its content can't be unpacked")
        }
        None => Failure::failed(
            format!("Could not read {name}: {error}."),
            "Check the disk, then run the command again.",
        ),
    }
}

/// Lists what is below a folder: paths with `/`, in order.
pub fn files_below(root: &Path) -> io::Result<Vec<String>> {
    fn walk(dir: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry
                .file_name()
                .into_string()
                .map_err(|_| io::Error::other("a name is not UTF-8"))?;
            let path = if prefix.is_empty() {
                name
            } else {
                format!("{prefix}/{name}")
            };
            if entry.file_type()?.is_dir() {
                walk(&entry.path(), &path, found)?;
            } else {
                found.push(path);
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    walk(root, "", &mut found)?;
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bk7_a_named_pipe_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe.as_path(), dir.path(), Path::new("/dev/null")] {
            let refused = Archive::open(path, "a passphrase").map(|_| ()).unwrap_err();
            assert!(refused.message.ends_with("is not a file."), "{}", refused.message);
        }
    }

    #[test]
    fn bk9_sizes_that_no_file_of_its_length_can_hold_are_refused_before_anything_is_written() {
        let list = |size: u64| {
            format!(
                r#"{{"madeAt":1,"host":"h","home":"/h","program":"1","hasSecrets":false,"files":[{{"path":"gateway/do/a.sqlite","size":{size},"sha256":"","modifiedNs":0}}]}}"#
            )
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("backup");
        for (size, is_possible) in [(100_000, true), (1 << 60, false)] {
            let list = list(size);
            let sealer = Sealer::new(File::create(&path).unwrap(), "a passphrase").unwrap();
            let mut deflate = DeflateEncoder::new(sealer, Compression::new(4));
            deflate
                .write_all(&u32::try_from(list.len()).unwrap().to_le_bytes())
                .unwrap();
            deflate.write_all(list.as_bytes()).unwrap();
            deflate.finish().unwrap().finish().unwrap();
            let opened = Archive::open(&path, "a passphrase").map(|_| ());
            assert_eq!(opened.is_ok(), is_possible, "{size}: {opened:?}");
        }
    }
}
