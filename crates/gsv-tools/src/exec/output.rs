//! A command's output file: reads parts of it as text, and frees the disk space of old output.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::limits;
use crate::text::{Utf8Stream, incomplete_suffix, orphan_prefix, tail_chars};

/// The end of the output.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) text: String,
    pub(crate) truncated: bool,
    pub(crate) bytes: u64,
}

/// The last `chars` characters.
pub(crate) fn tail(path: &Path, chars: usize) -> io::Result<Tail> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let from = first_kept(&file, bytes.saturating_sub(chars as u64 * 4));
    let window = read_window(&mut file, from, bytes - from)?;
    let text = String::from_utf8_lossy(&window);
    let (tail, cut) = tail_chars(&text, chars);
    Ok(Tail {
        text: tail.to_owned(),
        truncated: cut || from > 0,
        bytes,
    })
}

/// A part of the output from a byte offset on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// Where the part begins: later than asked for when the output there is no longer kept or is inside a character.
    pub(crate) offset: u64,
    pub(crate) next: u64,
    pub(crate) bytes: u64,
}

/// At most `limit` bytes from `offset`; without an offset, the last ones. A character is never split.
pub(crate) fn part(path: &Path, offset: Option<u64>, limit: usize, is_over: bool) -> io::Result<Part> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let from = first_kept(
        &file,
        offset.unwrap_or_else(|| bytes.saturating_sub(limit as u64)).min(bytes),
    );
    let length = (bytes - from).min(limit as u64);
    let mut window = read_window(&mut file, from, length)?;
    if !is_over || from + (window.len() as u64) < bytes {
        window.truncate(window.len() - incomplete_suffix(&window));
    }
    let next = from + window.len() as u64;
    let skip = if from > 0 { orphan_prefix(&window) } else { 0 };
    Ok(Part {
        text: String::from_utf8_lossy(&window[skip..]).into_owned(),
        offset: from + skip as u64,
        next,
        bytes,
    })
}

fn read_window(file: &mut File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut window = Vec::new();
    file.take(length).read_to_end(&mut window)?;
    Ok(window)
}

/// The first offset from `from` on whose output is still kept.
#[cfg(target_os = "linux")]
fn first_kept(file: &File, from: u64) -> u64 {
    rustix::fs::seek(file, rustix::fs::SeekFrom::Data(from)).unwrap_or(from)
}

#[cfg(not(target_os = "linux"))]
fn first_kept(_file: &File, from: u64) -> u64 {
    from
}

/// The outcome of [`trim`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trimmed {
    Fits,
    /// More than can be kept, on a file system that can't free parts of a file.
    Flood,
}

/// Frees the disk space of the oldest output when the file takes twice the space of what is kept.
pub(crate) fn trim(path: &Path) -> io::Result<Trimmed> {
    use std::os::unix::fs::MetadataExt;
    let found = path.metadata()?;
    if found.blocks() * 512 <= limits::SPOOL_BYTES * 2 {
        return Ok(Trimmed::Fits);
    }
    if punch(path, found.len().saturating_sub(limits::SPOOL_BYTES)).is_ok() {
        return Ok(Trimmed::Fits);
    }
    Ok(without_freeing(found.len()))
}

/// Where no space can be freed.
fn without_freeing(bytes: u64) -> Trimmed {
    if bytes > limits::SPOOL_HARD_BYTES {
        Trimmed::Flood
    } else {
        Trimmed::Fits
    }
}

#[cfg(target_os = "linux")]
fn punch(path: &Path, until: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    let file = std::fs::OpenOptions::new().write(true).open(path)?;
    let until = until & !0xFFF;
    rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, until)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn punch(_path: &Path, _until: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Follows the output while it grows. Skips ahead in a flood, because live output is only for watching.
pub(crate) struct Follow {
    file: File,
    offset: u64,
    text: Utf8Stream,
}

impl Follow {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            offset: 0,
            text: Utf8Stream::default(),
        })
    }

    /// The output since the last call; may be empty.
    pub(crate) fn next(&mut self) -> io::Result<String> {
        let bytes = self.file.metadata()?.len();
        let latest = bytes.saturating_sub(limits::PROGRESS_BYTES as u64);
        let mut text = String::new();
        let skips = latest > self.offset;
        if skips {
            text += &self.text.finish();
            text += "\n[…]\n";
            self.offset = latest;
        }
        let window = read_window(&mut self.file, self.offset, bytes - self.offset)?;
        self.offset += window.len() as u64;
        let skip = if skips { orphan_prefix(&window) } else { 0 };
        text += &self.text.push(&window[skip..]);
        Ok(text)
    }

    pub(crate) fn finish(&mut self) -> io::Result<String> {
        let text = self.next()?;
        Ok(text + &self.text.finish())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    use proptest::prelude::*;

    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn w26_parts_put_together_are_the_output(text in "[aä€😀\n]{0,60}", limit in 4usize..20) {
            let file = file(text.as_bytes());
            let (mut offset, mut all) = (0, String::new());
            loop {
                let part = part(file.path(), Some(offset), limit, true).unwrap();
                prop_assert!(part.text.len() <= limit);
                all += &part.text;
                if part.next == part.bytes {
                    break;
                }
                prop_assert!(part.next > offset);
                offset = part.next;
            }
            prop_assert_eq!(all, text);
        }

        #[test]
        fn w26_the_tail_is_whole_characters(text in "[aä€😀]{0,60}", chars in 1usize..40) {
            let file = file(text.as_bytes());
            let tail = tail(file.path(), chars).unwrap();
            let all: Vec<char> = text.chars().collect();
            let want: String = all[all.len().saturating_sub(chars)..].iter().collect();
            prop_assert_eq!(tail.truncated, all.len() > chars);
            prop_assert_eq!(tail.text, want);
        }
    }

    #[test]
    fn w26_broken_bytes_at_the_beginning_of_the_output_are_shown() {
        let file = file(b"\x80\xbfab");
        let whole = part(file.path(), Some(0), 10, true).unwrap();
        assert_eq!(
            (whole.text.as_str(), whole.offset, whole.next),
            ("\u{fffd}\u{fffd}ab", 0, 4)
        );
        // Later in the output they are the rest of a character that an earlier part had.
        let rest = part(file.path(), Some(1), 10, true).unwrap();
        assert_eq!((rest.text.as_str(), rest.offset), ("ab", 2));
    }

    #[test]
    fn w26_a_character_that_is_cut_at_the_end_waits_for_its_rest_while_the_command_runs() {
        let file = file(b"ab\xe2\x82");
        let read = |is_over| {
            let part = part(file.path(), Some(0), 10, is_over).unwrap();
            (part.text, part.next)
        };
        assert_eq!(read(false), ("ab".to_owned(), 2));
        assert_eq!(read(true), ("ab\u{fffd}".to_owned(), 4), "no rest comes any more");
    }

    #[test]
    fn w26_a_gibibyte_is_kept_where_no_space_can_be_freed() {
        assert_eq!(without_freeing(1 << 30), Trimmed::Fits);
        assert_eq!(without_freeing((1 << 30) + 1), Trimmed::Flood);
    }

    #[test]
    fn old_output_of_a_flood_is_freed_and_the_tail_stays() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let block = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            file.write_all(&block).unwrap();
        }
        file.write_all(b"the end").unwrap();
        file.as_file().sync_all().unwrap();
        if punch(file.path(), 4096).is_err() {
            return; // This file system can't free parts of a file; then the hard limit applies.
        }
        assert_eq!(trim(file.path()).unwrap(), Trimmed::Fits);
        file.as_file().sync_all().unwrap();
        assert!(file.as_file().metadata().unwrap().blocks() * 512 <= limits::SPOOL_BYTES + 65536);
        assert_eq!(tail(file.path(), 7).unwrap().text, "the end");
        let part = part(file.path(), Some(0), 10, true).unwrap();
        assert!(part.offset > 0 && part.text == "xxxxxxxxxx");
    }

    #[test]
    fn w26_output_that_takes_less_than_twice_the_kept_space_stays_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"the start").unwrap();
        let size = usize::try_from(limits::SPOOL_BYTES + (1 << 20)).unwrap();
        file.write_all(&vec![b'x'; size]).unwrap();
        assert_eq!(trim(file.path()).unwrap(), Trimmed::Fits);
        assert_eq!(part(file.path(), Some(0), 9, true).unwrap().text, "the start");
        // Twice the kept space itself is not too much, where the file system counts no more than the content.
        let exact = usize::try_from(2 * limits::SPOOL_BYTES).unwrap();
        file.write_all(&vec![b'x'; exact - size - 9]).unwrap();
        file.as_file().sync_all().unwrap();
        if file.as_file().metadata().unwrap().blocks() * 512 == 2 * limits::SPOOL_BYTES {
            assert_eq!(trim(file.path()).unwrap(), Trimmed::Fits);
            assert_eq!(part(file.path(), Some(0), 9, true).unwrap().text, "the start");
        }
    }

    #[test]
    fn w26_following_splits_no_character() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut follow = Follow::open(file.path()).unwrap();
        let euro = "€".as_bytes();
        file.write_all(&euro[..1]).unwrap();
        assert_eq!(follow.next().unwrap(), "");
        file.write_all(&euro[1..]).unwrap();
        assert_eq!(follow.next().unwrap(), "€");
        file.write_all(&vec![b'y'; limits::PROGRESS_BYTES * 3]).unwrap();
        file.write_all(b"the end").unwrap();
        let text = follow.finish().unwrap();
        assert!(text.starts_with("\n[…]\ny") && text.len() <= limits::PROGRESS_BYTES + 8);
        assert!(text.ends_with("ythe end"), "what is skipped is the oldest");
    }
}
