//! Installations in temporary folders; a kill is a state of the folders between two steps.

use super::*;

fn release(root: &Path, version: &str, by: &str) {
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("bin/gsv"), version).unwrap();
    let text = format!(
        r#"{{"format":1,"version":"{version}","platform":"{}","installedBy":"{by}"}}"#,
        platform()
    );
    fs::write(root.join(RELEASE), text).unwrap();
}

fn version(folder: &Folder) -> String {
    folder.release().unwrap().version.to_string()
}

#[test]
fn up12_only_a_folder_of_an_archive_is_replaced_and_the_others_name_their_command() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    release(&root.join("gsv"), "1.0.0", "archive");
    release(&root.join("npm"), "1.0.0", "npm");
    fs::create_dir_all(root.join("cargo/bin")).unwrap();
    fs::write(root.join("cargo/.crates.toml"), "").unwrap();
    fs::create_dir_all(root.join("sources/target/debug")).unwrap();
    fs::write(root.join("sources/Cargo.toml"), "").unwrap();
    let of = |path: &str| Installation::of(&root.join(path));
    assert!(of("gsv/bin/gsv").folder().is_ok());
    for (path, says) in [
        ("npm/bin/gsv", "packages with npm"),
        ("cargo/bin/gsv", "cargo install --locked --path cli"),
        ("sources/target/debug/gsv", "./scripts/start"),
        ("elsewhere/gsv", "unpack an archive"),
    ] {
        let failure = of(path).folder().unwrap_err();
        assert!(failure.next.contains(says), "{path}: {}", failure.next);
    }
}

#[test]
fn up11_a_release_is_replaced_in_one_step_and_the_previous_one_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder(dir.path().join("gsv"));
    release(&folder.0, "1.0.0", "archive");
    assert!(folder.earlier(&Version::new(1, 0, 0)).is_err());
    for next in ["1.1.0", "1.2.0"] {
        let _lock = folder.lock().unwrap();
        let work = folder.make_work().unwrap();
        release(&work.new_release(), next, "archive");
        folder.replace(&work).unwrap();
        assert_eq!(version(&folder), next);
    }
    assert!(!folder.work().exists());
    assert_eq!(folder.earlier(&Version::new(1, 2, 0)).unwrap(), Version::new(1, 1, 0));
    folder.exchange().unwrap();
    assert_eq!(version(&folder), "1.1.0");
    let failure = folder.earlier(&Version::new(1, 1, 0)).unwrap_err();
    assert!(
        failure.message.contains("no earlier version"),
        "what is beside it is newer: {}",
        failure.message
    );
}

#[test]
fn up11_a_kill_at_each_step_of_an_update_leaves_the_old_program_or_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder(dir.path().join("gsv"));
    release(&folder.0, "1.0.0", "archive");
    for step in ["unpacked", "moved"] {
        let work = folder.make_work().unwrap();
        release(&work.new_release(), "1.1.0", "archive");
        if step == "moved" {
            fs::rename(work.new_release(), folder.previous()).unwrap();
        }
        std::mem::forget(work);
        assert_eq!(version(&folder), "1.0.0", "{step}");
        // The next update begins clean, and completes.
        let _lock = folder.lock().unwrap();
        assert!(!folder.work().exists());
    }
    let work = folder.make_work().unwrap();
    release(&work.new_release(), "1.1.0", "archive");
    folder.replace(&work).unwrap();
    assert_eq!(
        (version(&folder).as_str(), version(&Folder(folder.previous())).as_str()),
        ("1.1.0", "1.0.0")
    );
}

#[test]
fn up11_a_folder_with_files_of_others_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder(dir.path().join("local"));
    release(&folder.0, "1.0.0", "archive");
    folder.check_alone().unwrap();
    fs::create_dir(folder.0.join("share")).unwrap();
    assert!(folder.check_alone().unwrap_err().message.contains("share"));
}
