//! [S11]: names that are swapped while tools use them. A thread exchanges a directory with a symlink to the outside
//! as fast as it can; nothing outside is read, written, removed or listed. With `GSV_LONG` each test tries fifty times as often:
//! two million opens in all.

use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::Lab;
use gsv_tools::beneath::{Beneath, Resolver, Scope};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

/// How often something is tried.
fn times(usual: usize) -> usize {
    if std::env::var_os("GSV_LONG").is_some() {
        50 * usual
    } else {
        usual
    }
}

fn furnish(root: &Path) {
    for (dir, text) in [("ws/real", "inside"), ("outside", "OUTSIDE")] {
        std::fs::create_dir_all(root.join(dir)).unwrap();
        std::fs::write(root.join(dir).join("f.txt"), text).unwrap();
    }
    std::fs::write(root.join("outside/only-outside.txt"), "OUTSIDE").unwrap();
    std::os::unix::fs::symlink("../outside", root.join("ws/evil")).unwrap();
    std::os::unix::fs::symlink("../outside/f.txt", root.join("ws/evil.txt")).unwrap();
    std::fs::write(root.join("ws/real.txt"), "inside").unwrap();
}

/// Ends the flipping thread, also when the work panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` while the names are flipped, and makes sure that they were.
fn flipping<T>(root: &Path, work: impl FnOnce() -> T) -> T {
    let (stop, flips) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _ends = Ends(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (one, other) in [("real", "evil"), ("real.txt", "evil.txt")] {
                    let (one, other) = (root.join("ws").join(one), root.join("ws").join(other));
                    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                }
                flips.fetch_add(1, Ordering::Relaxed);
            }
        });
        while flips.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        work()
    })
}

fn opens(resolver: Resolver) {
    let dir = tempfile::tempdir().unwrap();
    furnish(dir.path());
    let files = Beneath::new(&dir.path().join("ws"), Scope::Workspace, resolver).unwrap();
    let paths = ["real/f.txt", "evil/f.txt", "real.txt", "evil.txt"].map(|path| files.parse(path).unwrap());
    let (mut inside, mut refused) = (0, 0);
    flipping(dir.path(), || {
        for at in 0..times(20_000) {
            match files.open_file(&paths[at % paths.len()]) {
                Ok(mut opened) => {
                    let mut text = String::new();
                    opened.file.read_to_string(&mut text).unwrap();
                    assert_eq!(text, "inside");
                    inside += 1;
                }
                Err(_) => refused += 1,
            }
        }
    });
    println!("{inside} opens read what is inside, {refused} were refused, none read what is outside");
    // Both outcomes occurred, so there was a race.
    assert!(inside > 0 && refused > 0, "{inside} {refused}");
}

#[test]
fn s11_opens_by_openat2_read_nothing_outside() {
    opens(Resolver::Auto);
}

#[test]
fn s11_opens_by_walk_read_nothing_outside() {
    opens(Resolver::Walk);
}

fn changes(resolver: Resolver) {
    let dir = tempfile::tempdir().unwrap();
    furnish(dir.path());
    let files = Beneath::new(&dir.path().join("ws"), Scope::Workspace, resolver).unwrap();
    flipping(dir.path(), || {
        for at in 0..times(100) {
            let path = ["real", "evil"][at % 2];
            let _ = files.write_file(&files.parse(&format!("{path}/new-{at}/w.txt")).unwrap(), b"w", None);
            let _ = files.write_file(&files.parse(&format!("{path}/f.txt")).unwrap(), b"inside", None);
            let _ = files.write_file(&files.parse(&format!("{path}.txt")).unwrap(), b"inside", None);
            let _ = files.remove_file(&files.parse(&format!("{path}/only-outside.txt")).unwrap());
        }
    });
    let mut outside: Vec<_> = std::fs::read_dir(dir.path().join("outside"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    outside.sort();
    assert_eq!(outside, ["f.txt", "only-outside.txt"]);
    assert_eq!(
        std::fs::read_to_string(dir.path().join("outside/f.txt")).unwrap(),
        "OUTSIDE"
    );
}

#[test]
fn s11_writes_and_deletes_by_openat2_change_nothing_outside() {
    changes(Resolver::Auto);
}

#[test]
fn s11_writes_and_deletes_by_walk_change_nothing_outside() {
    changes(Resolver::Walk);
}

#[test]
fn s11_searches_show_nothing_outside() {
    for resolver in [Resolver::Auto, Resolver::Walk] {
        let lab = Lab::resolved_by(resolver);
        furnish(lab.dir.path());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        flipping(lab.dir.path(), || {
            for at in 0..times(120) {
                let path = [".", "real", "evil"][at % 3];
                for (tool, args) in [
                    ("Grep", json!({"pattern": "inside|OUTSIDE", "path": path})),
                    ("Glob", json!({"pattern": "**/*", "path": path})),
                ] {
                    if let Ok(found) = runtime.block_on(lab.call(tool, args)) {
                        let found = found["matches"].to_string();
                        assert!(
                            !found.contains("OUTSIDE") && !found.contains("only-outside"),
                            "{tool} {path}: {found}"
                        );
                    }
                }
            }
        });
    }
}
