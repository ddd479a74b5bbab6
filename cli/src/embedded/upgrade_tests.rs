//! First starts of versions, with kills at each step: a kill is a state of the folders between two steps.

use std::fs;

use super::*;

fn home() -> (tempfile::TempDir, Layout) {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout {
        home: dir.path().join("state"),
    };
    layout.ensure().unwrap();
    (dir, layout)
}

fn database(layout: &Layout) -> std::path::PathBuf {
    layout.durable().join("a.sqlite")
}

fn write(layout: &Layout, text: &str) {
    fs::write(database(layout), text).unwrap();
}

fn read(layout: &Layout) -> String {
    fs::read_to_string(database(layout)).unwrap()
}

/// What `gsv up` does before the supervisor: the copy, then the scripts with their manifest.
fn begin(layout: &Layout, version: &str) -> OfStart {
    before_start(layout, version).unwrap();
    let manifest = format!(r#"{{"version":"{version}","compatibilityDate":"2026-11-01"}}"#);
    fs::write(layout.gateway().join("manifest.json"), manifest).unwrap();
    OfStart::look(layout, version)
}

fn starts(layout: &Layout, version: &str) {
    assert_eq!(begin(layout, version).succeeded(layout, version), None);
}

/// A home that version 1 has used.
fn used() -> (tempfile::TempDir, Layout) {
    let (dir, layout) = home();
    starts(&layout, "1");
    write(&layout, "of 1");
    fs::write(layout.durable().join("a.sqlite-shm"), "index").unwrap();
    starts(&layout, "1");
    (dir, layout)
}

#[test]
fn up1_a_first_start_copies_the_state_and_the_next_one_removes_the_copy() {
    let (_dir, layout) = used();
    assert!(
        !layout.before_upgrade().exists(),
        "a new home, and a start of the same version, have nothing to copy"
    );
    assert_eq!(OfStart::look(&layout, "1"), OfStart::Usual);

    let mut first = begin(&layout, "2");
    assert!(first.is_upgrade());
    let copy = layout.before_upgrade();
    assert_eq!(fs::read_to_string(copy.join("do/a.sqlite")).unwrap(), "of 1");
    assert!(!copy.join("do/a.sqlite-shm").exists(), "each process builds its index");
    write(&layout, "of 2");
    assert_eq!(first.succeeded(&layout, "2"), None);
    assert!(copy.exists(), "until the next start has succeeded");

    assert_eq!(OfStart::look(&layout, "2"), OfStart::AfterUpgrade);
    starts(&layout, "2");
    assert!(!copy.exists());
    assert_eq!(
        (read(&layout).as_str(), OfStart::look(&layout, "2")),
        ("of 2", OfStart::Usual)
    );
}

#[test]
fn up1_a_home_without_a_mark_counts_as_one_of_another_version() {
    let (_dir, layout) = home();
    write(&layout, "of an early version");
    let first = begin(&layout, "1");
    assert!(first.is_upgrade());
    assert_eq!(copied(&layout).unwrap().from, None);
}

#[test]
fn up3_a_failed_first_start_puts_the_state_back_and_keeps_its_own() {
    let (_dir, layout) = used();
    for attempt in ["half of 2", "half of 2 again"] {
        let mut first = begin(&layout, "2");
        write(&layout, attempt);
        let (happened, next) = first.failed(&layout).unwrap();
        assert!(
            happened.contains("first start of version 2") && happened.contains("is back"),
            "{happened}"
        );
        assert!(
            next.contains("version 1") && next.contains("gsv update --rollback"),
            "{next}"
        );
        assert_eq!(read(&layout), "of 1");
        let failed = layout.failed_upgrade();
        assert_eq!(fs::read_to_string(failed.join("do/a.sqlite")).unwrap(), attempt);
        assert!(!layout.before_upgrade().exists());
    }
    assert_eq!(
        OfStart::look(&layout, "1"),
        OfStart::Usual,
        "the earlier version starts as ever"
    );
    assert_eq!(
        begin(&layout, "1").failed(&layout),
        None,
        "a usual start puts nothing back"
    );
    assert_eq!(read(&layout), "of 1");
}

#[test]
fn up4_an_interrupted_first_start_goes_on_with_the_older_copy() {
    let (_dir, layout) = used();
    begin(&layout, "2");
    write(&layout, "half of 2");
    // Killed. Again, and it fails this time.
    let mut again = begin(&layout, "2");
    assert!(again.is_upgrade());
    assert!(again.failed(&layout).is_some());
    assert_eq!(read(&layout), "of 1");
}

#[test]
fn up5_another_version_gets_the_state_from_before_an_interrupted_first_start() {
    for other in ["1", "3"] {
        let (_dir, layout) = used();
        begin(&layout, "2");
        write(&layout, "half of 2");
        let told = before_start(&layout, other).unwrap();
        assert!(told.unwrap().contains("failed-upgrade"), "{other}");
        assert_eq!(read(&layout), "of 1", "{other}");
        assert_eq!(layout.before_upgrade().exists(), other == "3");
    }
}

#[test]
fn up5_a_copy_that_is_older_than_the_work_of_another_version_is_never_put_back() {
    let (_dir, layout) = used();
    begin(&layout, "2");
    // Killed. A version that knows nothing of copies has worked since.
    fs::write(
        layout.gateway().join("manifest.json"),
        r#"{"version":"0","compatibilityDate":"2026-11-01"}"#,
    )
    .unwrap();
    write(&layout, "more of 1");
    let mut first = begin(&layout, "2");
    assert!(first.failed(&layout).is_some());
    assert_eq!(read(&layout), "more of 1");
}

#[test]
fn up4_a_kill_at_each_step_leaves_the_old_state_or_the_new_one() {
    let gateway = |layout: &Layout, name: &str| layout.gateway().join(name);
    // While the copy is made.
    let (_dir, layout) = used();
    fs::create_dir_all(gateway(&layout, "before-upgrade.new/do")).unwrap();
    fs::write(gateway(&layout, "before-upgrade.new/do/a.sqlite"), "a part").unwrap();
    assert!(begin(&layout, "2").failed(&layout).is_some());
    assert_eq!(read(&layout), "of 1");

    // After the name says that the copy is being put back, after the first folder, and after both.
    for folders in 0..=2 {
        let (_dir, layout) = used();
        begin(&layout, "2");
        write(&layout, "half of 2");
        let back = gateway(&layout, "before-upgrade.back");
        fs::rename(layout.before_upgrade(), &back).unwrap();
        for folder in ["do", "services"].iter().take(folders) {
            let aside = gateway(&layout, "aside");
            fs::rename(gateway(&layout, folder), &aside).unwrap();
            fs::rename(back.join(folder), gateway(&layout, folder)).unwrap();
            fs::rename(&aside, back.join(folder)).unwrap();
        }
        starts(&layout, "1");
        assert_eq!(read(&layout), "of 1", "{folders}");
        assert!(!back.exists(), "{folders}");
        let failed = layout.failed_upgrade().join("do/a.sqlite");
        assert_eq!(fs::read_to_string(failed).unwrap(), "half of 2", "{folders}");
    }

    // While the copy is removed.
    let (_dir, layout) = used();
    starts(&layout, "2");
    write(&layout, "of 2");
    fs::remove_file(layout.before_upgrade().join("upgrade.json")).unwrap();
    starts(&layout, "2");
    assert!(!layout.before_upgrade().exists());
    assert_eq!(read(&layout), "of 2");
}

#[test]
fn up7_the_copy_outlives_a_rollback_that_the_earlier_version_refuses_and_is_put_back_by_the_next() {
    let (_dir, layout) = used();
    starts(&layout, "2");
    write(&layout, "of 2");
    assert!(
        begin(&layout, "1").failed(&layout).is_some(),
        "version 1 refuses the state"
    );
    starts(&layout, "2");
    starts(&layout, "2");
    assert_eq!(read(&layout), "of 2");
    let kept = undo(&layout).unwrap().unwrap();
    assert_eq!(
        (read(&layout).as_str(), OfStart::look(&layout, "1")),
        ("of 1", OfStart::Usual)
    );
    assert_eq!(fs::read_to_string(kept.join("do/a.sqlite")).unwrap(), "of 2");
    assert_eq!(undo(&layout).unwrap(), None);
}

/// Version 2 has worked on the state of version 1, and is rolled back.
fn roll_back(layout: &Layout, work: &str) -> Outcome<Option<PathBuf>> {
    starts(layout, "2");
    write(layout, work);
    undo(layout)
}

#[test]
fn up15_no_failed_start_overwrites_what_a_rollback_has_kept() {
    let (_dir, layout) = used();
    let kept = roll_back(&layout, "work of 2").unwrap().unwrap();
    assert_eq!(kept, layout.rolled_back(1));
    for attempt in ["half of 3", "half of 3 again"] {
        let mut first = begin(&layout, "3");
        write(&layout, attempt);
        assert!(first.failed(&layout).is_some());
    }
    let content = |dir: &std::path::Path| fs::read_to_string(dir.join("do/a.sqlite")).unwrap();
    assert_eq!(content(&kept), "work of 2");
    assert_eq!(content(&layout.failed_upgrade()), "half of 3 again");
    assert_eq!(read(&layout), "of 1");
}

#[test]
fn up15_each_rollback_keeps_its_state_and_one_too_many_is_refused_before_anything_changes() {
    let (_dir, layout) = used();
    let works = ["first", "second", "third"];
    for work in works {
        roll_back(&layout, work).unwrap();
    }
    let failure = roll_back(&layout, "fourth").unwrap_err();
    assert!(
        failure.message.contains("3 earlier rollbacks") && failure.next.contains("rm -r") && failure.lines.len() == 3,
        "{failure:?}"
    );
    assert_eq!(
        (read(&layout).as_str(), OfStart::look(&layout, "2")),
        ("fourth", OfStart::AfterUpgrade)
    );
    for (number, work) in (1..).zip(works) {
        let kept = layout.rolled_back(number).join("do/a.sqlite");
        assert_eq!(fs::read_to_string(kept).unwrap(), work);
    }
    // The person removes one, and its name is free again.
    fs::remove_dir_all(layout.rolled_back(2)).unwrap();
    assert_eq!(undo(&layout).unwrap(), Some(layout.rolled_back(2)));
    assert_eq!(read(&layout), "of 1");
}

#[test]
fn up4_up15_a_rollback_that_is_killed_at_any_step_is_completed_by_the_next_start() {
    for folders in 0..=2 {
        for is_marked in [false, true] {
            let (_dir, layout) = used();
            starts(&layout, "2");
            write(&layout, "work of 2");
            let back = layout.gateway().join("before-upgrade.rollback");
            fs::rename(layout.before_upgrade(), &back).unwrap();
            if is_marked || folders > 0 {
                fs::write(layout.last_start(), "1").unwrap();
            }
            for folder in ["do", "services"].iter().take(folders) {
                let aside = layout.gateway().join("aside");
                fs::rename(layout.gateway().join(folder), &aside).unwrap();
                fs::rename(back.join(folder), layout.gateway().join(folder)).unwrap();
                fs::rename(&aside, back.join(folder)).unwrap();
            }
            let told = before_start(&layout, "1").unwrap().unwrap();
            assert!(
                told.contains("rollback was interrupted") && told.contains("rolled-back-1"),
                "{told}"
            );
            assert_eq!(read(&layout), "of 1", "{folders} {is_marked}");
            let kept = layout.rolled_back(1).join("do/a.sqlite");
            assert_eq!(fs::read_to_string(kept).unwrap(), "work of 2");
            assert_eq!(
                OfStart::look(&layout, "1"),
                OfStart::Usual,
                "the mark is that of the state"
            );
        }
    }
}

#[test]
fn up16_a_damaged_mark_never_puts_an_old_state_back() {
    let long = "2".repeat(200);
    for damage in ["", "\0\0\0\0", "7", long.as_str()] {
        for next in ["2", "3"] {
            let (_dir, layout) = used();
            starts(&layout, "2");
            write(&layout, "work of 2");
            fs::write(layout.last_start(), damage).unwrap();
            let failure = before_start(&layout, next).unwrap_err();
            assert!(
                failure.message.contains("last-start") && failure.message.contains("no earlier state was put back"),
                "{failure:?}"
            );
            assert!(
                failure.next.contains("rm -r") && failure.next.contains("gsv update --rollback --with-state"),
                "{failure:?}"
            );
            assert_eq!(read(&layout), "work of 2", "{damage:?} {next}");
            // The first way out: the state as it is, with a copy of its own.
            fs::remove_dir_all(layout.before_upgrade()).unwrap();
            let mut first = begin(&layout, next);
            assert!(first.is_upgrade());
            assert!(first.failed(&layout).is_some());
            assert_eq!(read(&layout), "work of 2", "{damage:?} {next}");
        }
    }
    // The second one.
    let (_dir, layout) = used();
    starts(&layout, "2");
    write(&layout, "work of 2");
    fs::write(layout.last_start(), "\0").unwrap();
    assert!(undo(&layout).unwrap().is_some());
    assert_eq!(
        (read(&layout).as_str(), OfStart::look(&layout, "1")),
        ("of 1", OfStart::Usual)
    );
}

#[test]
fn up16_a_mark_that_was_removed_is_damaged_when_the_copy_names_a_version() {
    let (_dir, layout) = used();
    starts(&layout, "2");
    write(&layout, "work of 2");
    fs::remove_file(layout.last_start()).unwrap();
    assert!(before_start(&layout, "3").is_err());
    assert_eq!(read(&layout), "work of 2");
}

#[test]
fn up6_a_version_that_is_not_stored_makes_the_copy_void() {
    let (_dir, layout) = used();
    let mut first = begin(&layout, "2");
    write(&layout, "of 2");
    // No file can be put in the place of a folder with files, as none can be written on a full disk.
    fs::remove_file(layout.last_start()).unwrap();
    fs::create_dir_all(layout.last_start().join("file")).unwrap();
    assert!(first.succeeded(&layout, "2").unwrap().contains("not stored"));
    assert_eq!(copied(&layout), None);
    assert!(begin(&layout, "2").failed(&layout).is_some());
    assert_eq!(read(&layout), "of 2");
}

#[test]
fn up6_a_copy_that_can_not_be_made_stops_the_start_and_changes_nothing() {
    let (_dir, layout) = used();
    // A folder of a name that is too long for the copy stands for a full disk.
    fs::create_dir_all(layout.gateway().join("before-upgrade.new")).unwrap();
    let denied = layout.durable().join("denied");
    std::os::unix::fs::symlink("/nowhere", &denied).unwrap();
    assert!(before_start(&layout, "2").is_ok(), "links are not copied");
    fs::remove_file(&denied).unwrap();
    fs::remove_dir_all(layout.before_upgrade()).unwrap();
    fs::write(layout.before_upgrade(), "a file in the way").unwrap();
    let failure = before_start(&layout, "2").unwrap_err();
    assert!(
        failure.message.contains("the state is as it was"),
        "{}",
        failure.message
    );
    assert_eq!(read(&layout), "of 1");
    assert!(!layout.gateway().join("before-upgrade.new").exists());
}
