use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::beneath::{Resolver, Scope};

const ID: &str = "0123456789abcdef0123456789abcdef";

fn files(dir: &Path) -> Beneath {
    Beneath::new(dir, Scope::Workspace, Resolver::Auto).unwrap()
}
fn offer(size: usize) -> Offer {
    Offer {
        path: "in/b.bin".into(),
        id: ID.into(),
        size: size as u64,
        sha256: None,
        replaces: false,
    }
}
fn open(files: &Beneath, offer: &Offer) -> Destination {
    match Destination::open(files, offer, &|| true).unwrap() {
        Offered::Open(destination) => *destination,
        Offered::Stored => panic!("it is not stored"),
    }
}
fn sum(bytes: &[u8]) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(bytes);
    hex(hash)
}
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Cut anywhere, any number of times, at either end.
    #[test]
    fn tf4_k29_a_file_arrives_whole_whatever_the_cuts(bytes in proptest::collection::vec(any::<u8>(), 0..4000), cuts in proptest::collection::vec(1usize..900, 0..8)) {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        std::fs::write(dir.path().join("a.bin"), &bytes).unwrap();
        let mut cuts = cuts.into_iter();
        loop {
            let mut to = open(&files, &offer(bytes.len()));
            let mut from = Source::open(&files, "a.bin").unwrap();
            from.skip(to.offset(), &|| true).unwrap();
            if let Some(cut) = cuts.next() {
                if let Some(frame) = from.frame(b"1234", cut).unwrap() {
                    prop_assert_eq!(&frame[..4], b"1234");
                    to.write(&frame[4..]).unwrap();
                }
                continue;
            }
            while let Some(frame) = from.frame(b"", 777).unwrap() {
                to.write(&frame).unwrap();
            }
            let sha256 = from.finish().unwrap();
            prop_assert_eq!(&sha256, &sum(&bytes));
            to.finish(&files, &sha256).unwrap();
            break;
        }
        prop_assert_eq!(std::fs::read(dir.path().join("in/b.bin")).unwrap(), bytes);
        prop_assert_eq!(names(&dir.path().join("in")), ["b.bin"]);
    }
}

#[test]
fn tf3_p18_a_copy_that_differs_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let mut to = open(&files, &offer(3));
    to.write(b"abc").unwrap();
    let error = to.finish(&files, &sum(b"abd")).unwrap_err();
    assert_eq!(error.reason(), "transfer.checksum");
    let mut short = open(&files, &offer(3));
    short.write(b"ab").unwrap();
    assert_eq!(
        short.finish(&files, &sum(b"ab")).unwrap_err().reason(),
        "transfer.checksum"
    );
    assert_eq!(names(&dir.path().join("in")), [] as [&str; 0]);
}

#[test]
fn tf6_a_source_that_changes_has_no_checksum() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let path = dir.path().join("a.bin");
    for change in [b"abcdef".as_slice(), b"ab"] {
        std::fs::write(&path, b"abcd").unwrap();
        let mut from = Source::open(&files, "a.bin").unwrap();
        from.frame(b"", 1).unwrap();
        let version = from.version();
        std::fs::write(&path, change).unwrap();
        assert_ne!(Source::open(&files, "a.bin").unwrap().version(), version);
        let ended = from.frame(b"", 3).and_then(|_| from.finish());
        assert_eq!(ended.unwrap_err().reason(), "transfer.source_changed");
    }
}

#[test]
fn tf5_k30_a_file_that_was_stored_before_its_answer_was_lost_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let mut to = open(&files, &offer(3));
    to.write(b"abc").unwrap();
    to.finish(&files, &sum(b"abc")).unwrap();
    let again = Offer {
        sha256: Some(sum(b"abc")),
        ..offer(3)
    };
    assert!(matches!(
        Destination::open(&files, &again, &|| true).unwrap(),
        Offered::Stored
    ));
    let other = Offer {
        sha256: Some(sum(b"abd")),
        ..offer(3)
    };
    assert_eq!(
        Destination::open(&files, &other, &|| true)
            .map(drop)
            .unwrap_err()
            .reason(),
        "file.exists"
    );
}

#[test]
fn tf7_a_file_that_is_replaced_keeps_its_mode_and_stays_when_it_changes_in_between() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    std::fs::create_dir(dir.path().join("in")).unwrap();
    let path = dir.path().join("in/b.bin");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let forced = Offer {
        replaces: true,
        ..offer(3)
    };
    let mut to = open(&files, &forced);
    to.write(b"new").unwrap();
    std::fs::write(&path, "changed").unwrap();
    assert_eq!(to.finish(&files, &sum(b"new")).unwrap_err().reason(), "tool.failed");
    assert_eq!(std::fs::read(&path).unwrap(), b"changed");
    let mut to = open(&files, &forced);
    to.write(b"new").unwrap();
    to.finish(&files, &sum(b"new")).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(&dir.path().join("in")), ["b.bin"]);
}

#[test]
fn tf7_x14_paths_stay_in_the_workspace_and_out_of_private_folders() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("private")).unwrap();
    std::fs::write(dir.path().join("private/key"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("out")).unwrap();
    std::fs::write(outside.path().join("a"), "secret").unwrap();
    let files = files(dir.path()).without(vec![dir.path().join("private")], 100);
    for path in ["../a", "/etc/passwd", "out/a", "private/key", ".", ""] {
        assert!(Source::open(&files, path).is_err(), "{path}");
        let to = Offer {
            path: path.into(),
            replaces: true,
            ..offer(1)
        };
        assert!(Destination::open(&files, &to, &|| true).is_err(), "{path}");
    }
    assert_eq!(names(outside.path()), ["a"]);
    assert_eq!(names(&dir.path().join("private")), ["key"]);
}

#[test]
fn tf8_what_an_ended_transfer_has_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    open(&files, &offer(3)).write(b"ab").unwrap();
    assert_eq!(names(&dir.path().join("in")), [format!(".gsv-{ID}.part")]);
    assert!(is_temp_name(&names(&dir.path().join("in"))[0]));
    discard(&files, "in/b.bin", ID).unwrap();
    discard(&files, "in/b.bin", ID).unwrap();
    assert_eq!(names(&dir.path().join("in")), [] as [&str; 0]);
}

/// `/dev/full` stands for a disk without space: the error is the same.
#[cfg(target_os = "linux")]
#[test]
fn tf8_a_full_disk_is_a_plain_error() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let mut to = open(&files, &offer(3));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let kept = std::mem::replace(&mut to.partial.file, full);
    let error = to.write(b"abc").unwrap_err();
    assert_eq!(error.reason(), "tool.io");
    assert!(error.to_string().contains("free space"), "{error}");
    to.partial.file = kept;
    to.discard(&files);
    assert_eq!(names(&dir.path().join("in")), [] as [&str; 0]);
}

#[test]
fn only_hexadecimal_ids_become_part_of_a_name() {
    assert!(is_id(ID));
    for id in [
        "",
        "../x",
        &ID[1..],
        &ID.to_uppercase(),
        "0123456789abcdef0123456789abcde/",
    ] {
        assert!(!is_id(id), "{id}");
    }
}

/// A program that its user has stopped (Ctrl-Z) holds its file for as long as it wants.
#[test]
fn tf4_a_temporary_file_that_another_copy_holds_is_not_waited_for_without_end() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let mut held = open(&files, &offer(3));
    let busy = Destination::open(&files, &offer(3), &|| true).map(drop).unwrap_err();
    assert!(matches!(busy, ToolError::Busy { .. }), "{busy}");
    let ended = Destination::open(&files, &offer(3), &|| false).map(drop).unwrap_err();
    assert!(matches!(ended, ToolError::Cancelled { .. }), "{ended}");
    held.write(b"abc").unwrap();
    held.finish(&files, &sum(b"abc")).unwrap();
}

#[test]
fn tf4_reading_what_is_there_ends_with_the_attempt() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    std::fs::write(dir.path().join("a.bin"), vec![7; 3 * BUFFER]).unwrap();
    let mut to = open(&files, &offer(3 * BUFFER));
    to.write(&vec![7; 2 * BUFFER]).unwrap();
    drop(to);
    let pieces = std::cell::Cell::new(0);
    let goes_on = || {
        pieces.set(pieces.get() + 1);
        false
    };
    let ended = Destination::open(&files, &offer(3 * BUFFER), &goes_on)
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(ended, ToolError::Cancelled { .. }) && pieces.get() == 1,
        "{ended}"
    );
    let mut from = Source::open(&files, "a.bin").unwrap();
    assert!(from.skip(1, &|| false).is_err());
    assert_eq!(open(&files, &offer(3 * BUFFER)).offset(), 2 * BUFFER as u64, "it stays");
}

#[cfg(target_os = "linux")]
#[test]
fn p10_a_file_without_a_size_of_its_own_is_not_copied_as_an_empty_one() {
    let files = Beneath::new(Path::new("/"), Scope::Anywhere, Resolver::Auto).unwrap();
    let mut from = Source::open(&files, "/proc/version").unwrap();
    assert_eq!(from.size(), 0);
    assert_eq!(from.frame(b"", 9).unwrap(), None);
    let refused = from.finish().unwrap_err();
    assert!(
        matches!(&refused, ToolError::Sizeless { path } if path == "\"/proc/version\""),
        "{refused}"
    );
}

#[test]
fn tf14_x14_a_folder_is_made_below_the_root_alone() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = files(dir.path());
    std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
    files.make_folder(&files.parse("a/b").unwrap()).unwrap();
    files.make_folder(&files.parse("a/b").unwrap()).unwrap();
    assert_eq!(names(&dir.path().join("a")), ["b"]);
    let refused = files.make_folder(&files.parse("link/c").unwrap()).unwrap_err();
    assert_eq!(refused.reason(), "path.outside_workspace");
    assert_eq!(names(outside.path()), [] as [&str; 0]);
}
