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
    assert!(undo(&layout).unwrap());
    assert_eq!(
        (read(&layout).as_str(), OfStart::look(&layout, "1")),
        ("of 1", OfStart::Usual)
    );
    assert_eq!(
        fs::read_to_string(layout.failed_upgrade().join("do/a.sqlite")).unwrap(),
        "of 2"
    );
    assert!(!undo(&layout).unwrap());
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
