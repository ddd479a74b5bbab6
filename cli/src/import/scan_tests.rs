use super::*;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (path, text) in files {
        write(dir.path(), path, text.as_bytes());
    }
    dir
}

fn write(dir: &Path, path: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn paths(scan: &Scan) -> Vec<&str> {
    scan.files.iter().map(|file| file.path.as_str()).collect()
}

fn why<'a>(scan: &'a Scan, path: &str) -> &'a str {
    let found = scan.skipped.iter().find(|skipped| skipped.path == path);
    &found
        .unwrap_or_else(|| panic!("{path} is not in {:?}", scan.skipped))
        .why
}

#[test]
fn only_files_of_the_workspace_layout_are_taken() {
    let dir = folder(&[
        ("SOUL.md", "soul"),
        ("IDENTITY.md", "identity"),
        ("AGENTS.md", "\u{feff}agents"),
        ("TOOLS.md", "tools"),
        ("USER.md", "user"),
        ("MEMORY.md", "memory"),
        ("memory.md", "old"),
        ("HEARTBEAT.md", ""),
        ("memory/2026-01-01.md", "day"),
        ("memory/2026-01-01-trip.md", "trip"),
        ("memory/state.json", "{}"),
        ("memory/deep/x.md", "x"),
        ("skills/mail/SKILL.md", "---\nname: mail\n---"),
        ("skills/mail/lib/a.py", "print()"),
        ("skills/README.md", "x"),
        ("sessions/abc.jsonl.gz", "gz"),
        ("sessions/abc-part1.jsonl.gz", "gz"),
        ("notes.md", "mine"),
        ("canvas/index.html", "<p>"),
        (".git/config", "x"),
        (".env", "SECRET"),
        ("skills/mail/.venv/x", "x"),
    ]);
    let scan = scan(dir.path()).unwrap();
    let mut taken = paths(&scan);
    taken.sort_unstable();
    assert_eq!(
        taken,
        [
            "AGENTS.md",
            "HEARTBEAT.md",
            "IDENTITY.md",
            "MEMORY.md",
            "SOUL.md",
            "TOOLS.md",
            "USER.md",
            "memory/2026-01-01-trip.md",
            "memory/2026-01-01.md"
        ]
    );
    let content = |path: &str| &scan.files.iter().find(|file| file.path == path).unwrap().content;
    assert_eq!(content("AGENTS.md"), "agents");
    assert_eq!(content("MEMORY.md"), "memory");
    let skill: Vec<_> = scan.skills[0]
        .folder
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(
        (scan.skills[0].name.as_str(), skill),
        ("mail", vec!["SKILL.md", "lib/a.py"])
    );
    assert_eq!((scan.archives, scan.hidden, scan.has_identity()), (2, 3, true));
    for skipped in ["memory.md", "notes.md", "canvas/"] {
        assert_eq!(why(&scan, skipped), "is not part of an agent's workspace");
    }
    assert_eq!(why(&scan, "memory/state.json"), "is not a memory/*.md file");
    assert_eq!(why(&scan, "memory/deep/"), "is not a memory/*.md file");
    assert!(why(&scan, "skills/README.md").contains("SKILL.md"));
}

#[test]
fn memory_md_in_lower_case_is_taken_when_the_usual_one_is_missing() {
    let scan = scan(folder(&[("memory.md", "old")]).path()).unwrap();
    assert_eq!(
        (paths(&scan), scan.files[0].content.as_str()),
        (vec!["MEMORY.md"], "old")
    );
    assert!(!scan.has_identity());
}

#[test]
fn links_are_never_followed() {
    let outside = folder(&[("secret.md", "SECRET"), ("skill/SKILL.md", "SECRET")]);
    let dir = folder(&[("AGENTS.md", "a"), ("skills/ok/SKILL.md", "ok")]);
    let (into, from) = (dir.path(), outside.path());
    symlink(from.join("secret.md"), into.join("SOUL.md")).unwrap();
    symlink(from, into.join("memory")).unwrap();
    symlink(from.join("skill"), into.join("skills/evil")).unwrap();
    symlink(from.join("secret.md"), into.join("skills/ok/extra.md")).unwrap();
    symlink(into.join("skills"), into.join("skills/ok/loop")).unwrap();
    let scan = scan(into).unwrap();
    assert_eq!(paths(&scan), ["AGENTS.md"]);
    assert_eq!(scan.skills.len(), 1);
    assert!(!format!("{scan:?}").contains("SECRET"));
    for skipped in [
        "SOUL.md",
        "memory",
        "skills/evil",
        "skills/ok/extra.md",
        "skills/ok/loop",
    ] {
        assert!(why(&scan, skipped).contains("not followed"), "{skipped}");
    }
}

#[test]
fn binary_and_too_large_files_are_skipped() {
    let dir = folder(&[("AGENTS.md", "a"), ("skills/big/SKILL.md", &"x".repeat(140_000))]);
    let at = dir.path();
    write(at, "SOUL.md", &[0xff, 0xfe, 0x41]);
    write(at, "USER.md", b"a\0b");
    write(at, "TOOLS.md", &vec![b'x'; 1_048_577]);
    write(at, "MEMORY.md", &vec![b'x'; 1_048_000]);
    write(at, "skills/none/README.md", b"x");
    for number in 0..256 {
        write(at, &format!("skills/many/{number}"), b"x");
    }
    write(at, "skills/many/SKILL.md", b"x");
    write(at, "skills/heavy/SKILL.md", b"x");
    write(at, "skills/heavy/a", &vec![b'x'; 5_000_000]);
    write(at, "skills/heavy/b", &vec![b'x'; 5_000_000]);
    let scan = scan(at).unwrap();
    assert_eq!((paths(&scan), scan.skills.len()), (vec!["AGENTS.md"], 0));
    for (skipped, expected) in [
        ("SOUL.md", "not UTF-8"),
        ("USER.md", "not text"),
        ("TOOLS.md", "larger than 1024 KiB"),
        ("MEMORY.md", "too large for one message"),
        ("skills/big/", "SKILL.md larger"),
        ("skills/none/", "no usable SKILL.md"),
        ("skills/many/", "has 257 files"),
        ("skills/heavy/", "a skill has at most 8.0 MiB"),
    ] {
        assert!(
            why(&scan, skipped).contains(expected),
            "{skipped}: {}",
            why(&scan, skipped)
        );
    }
}

#[test]
fn names_that_could_lead_elsewhere_are_refused() {
    let dir = folder(&[("AGENTS.md", "a")]);
    for name in ["%2e%2e", "a\\b", "a\nb", "%252e", "a%2Fb"] {
        write(dir.path(), &format!("memory/{name}.md"), b"x");
        write(dir.path(), &format!("skills/{name}/SKILL.md"), b"x");
    }
    let scan = scan(dir.path()).unwrap();
    assert_eq!(
        (paths(&scan), scan.skills.len(), scan.skipped.len()),
        (vec!["AGENTS.md"], 0, 10)
    );
}

#[test]
fn a_pipe_is_not_waited_for_and_a_file_is_refused_as_folder() {
    let dir = folder(&[("AGENTS.md", "a")]);
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        dir.path().join("SOUL.md"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    assert_eq!(paths(&scan(dir.path()).unwrap()), ["AGENTS.md"]);
    assert!(scan(&dir.path().join("AGENTS.md")).is_err());
    assert!(scan(&dir.path().join("nowhere")).is_err());
}
