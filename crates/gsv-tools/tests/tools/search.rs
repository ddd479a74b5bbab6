//! Glob and Grep: what they find, in which order, what they leave out, and special files that must not block them.

use std::time::{Duration, SystemTime};

use crate::common::{Lab, strings};
use serde_json::{Value, json};

/// Matches as `path:line`.
fn places(found: &Value) -> Vec<String> {
    found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| format!("{}:{}", found["path"].as_str().unwrap(), found["line"]))
        .collect()
}

fn age(lab: &Lab, path: &str, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    std::fs::File::options()
        .write(true)
        .open(lab.ws(path))
        .unwrap()
        .set_modified(time)
        .unwrap();
}

#[tokio::test]
async fn p6_2_glob_is_newest_first() {
    let lab = Lab::new();
    for (path, seconds) in [("src/a.rs", 30), ("src/deep/b.rs", 10), ("c.rs", 20), ("d.txt", 1)] {
        lab.put(path, "x");
        age(&lab, path, seconds);
    }
    let found = lab.ok("Glob", json!({"pattern": "*.rs"})).await;
    assert_eq!(
        found,
        json!({"pattern": "*.rs", "basePath": ".", "matches": ["src/deep/b.rs", "c.rs", "src/a.rs"], "count": 3, "truncated": false})
    );
    for (pattern, path, want) in [
        ("src/*.rs", ".", vec!["src/a.rs"]),
        ("src/**/*.rs", ".", vec!["src/deep/b.rs", "src/a.rs"]),
        ("**/*.{rs,txt}", ".", vec!["d.txt", "src/deep/b.rs", "c.rs", "src/a.rs"]),
        ("src/", ".", vec!["src/deep/b.rs", "src/a.rs"]),
        ("*.rs", "src", vec!["src/deep/b.rs", "src/a.rs"]),
        ("deep/*", "src", vec!["src/deep/b.rs"]),
        ("./[cd].*", ".", vec!["d.txt", "c.rs"]),
        ("*.none", ".", vec![]),
    ] {
        let found = lab.ok("Glob", json!({"pattern": pattern, "path": path})).await;
        assert_eq!(strings(&found["matches"]), want, "{pattern} in {path}");
        assert_eq!(found["basePath"], path);
    }
    let absolute = format!("{}/src/*.rs", lab.ws("").canonicalize().unwrap().display());
    assert_eq!(lab.ok("Glob", json!({"pattern": absolute})).await["count"], 1);
    let cut = lab.ok("Glob", json!({"pattern": "*", "limit": 2})).await;
    assert_eq!(
        (strings(&cut["matches"]), &cut["truncated"]),
        (vec!["d.txt", "src/deep/b.rs"], &json!(true))
    );
    let whole = lab.ok("Glob", json!({"pattern": "*", "limit": 4})).await;
    assert_eq!((&whole["count"], &whole["truncated"]), (&json!(4), &json!(false)));
    lab.put("other/src/e.rs", "");
    let found = lab.ok("Glob", json!({"pattern": "src/*.rs"})).await;
    assert_eq!(
        strings(&found["matches"]),
        ["src/a.rs"],
        "a pattern with a slash begins at the folder"
    );
    for pattern in ["../*", "/etc/*", "src/../../*"] {
        assert_eq!(
            lab.reason("Glob", json!({"pattern": pattern})).await,
            "path.outside_workspace"
        );
    }
    assert_eq!(
        lab.reason("Glob", json!({"pattern": "*", "path": "c.rs"})).await,
        "path.not_a_file"
    );
}

#[tokio::test]
async fn p6_2_ignored_hidden_and_binary_files_are_left_out() {
    let lab = Lab::new();
    lab.put(".gitignore", "*.log\n/target/\nsub/skip.txt\n");
    lab.put("sub/.gitignore", "!keep.log\ninner.txt\n");
    lab.put("sub/.ignore", "other.txt\n");
    for path in [
        "a.txt",
        "a.log",
        "target/t.txt",
        "sub/keep.log",
        "sub/skip.txt",
        "sub/inner.txt",
        "sub/other.txt",
        "sub/b.txt",
        ".hidden/h.txt",
        ".env",
        ".git/config",
    ] {
        lab.put(path, "needle\n");
    }
    lab.put("binary", "needle\n\0\n");
    lab.put("late-binary", "needle\n".to_owned() + &"x".repeat(200_000) + "\n\0\n");
    lab.put(
        "utf16",
        [0xFF, 0xFE]
            .into_iter()
            .chain("needle\n".encode_utf16().flat_map(u16::to_le_bytes))
            .collect::<Vec<u8>>(),
    );
    let grep = |args: Value| {
        let lab = &lab;
        async move { places(&lab.ok("Grep", args).await) }
    };
    assert_eq!(
        grep(json!({"pattern": "needle"})).await,
        ["a.txt:1", "sub/b.txt:1", "sub/keep.log:1", "utf16:1"]
    );
    assert_eq!(
        grep(json!({"pattern": "needle", "path": "sub"})).await,
        ["sub/b.txt:1", "sub/keep.log:1"],
        "the workspace's rules hold below it"
    );
    assert_eq!(
        grep(json!({"pattern": "needle", "hidden": true})).await,
        [
            ".env:1",
            ".hidden/h.txt:1",
            "a.txt:1",
            "sub/b.txt:1",
            "sub/keep.log:1",
            "utf16:1"
        ]
    );
    assert_eq!(
        grep(json!({"pattern": "needle", "path": "target"})).await,
        ["target/t.txt:1"],
        "asked for by name"
    );
    assert_eq!(
        grep(json!({"pattern": "needle", "path": ".hidden"})).await,
        [".hidden/h.txt:1"]
    );
    assert_eq!(grep(json!({"pattern": "needle", "path": "a.log"})).await, ["a.log:1"]);
    let found = lab.ok("Glob", json!({"pattern": "**/*"})).await;
    let mut found = strings(&found["matches"]);
    found.sort_unstable();
    assert_eq!(
        found,
        ["a.txt", "binary", "late-binary", "sub/b.txt", "sub/keep.log", "utf16"]
    );
}

#[tokio::test]
async fn p6_2_rules_above_the_workspace_do_not_reach_into_it() {
    let lab = Lab::new();
    std::fs::write(lab.dir.path().join(".gitignore"), "*\n").unwrap();
    lab.put("a.txt", "needle");
    assert_eq!(lab.ok("Grep", json!({"pattern": "needle"})).await["count"], 1);
}

#[tokio::test]
async fn p6_2_grep_sorts_by_path_then_line_and_is_the_same_every_time() {
    let lab = Lab::new();
    for dir in 0..12 {
        for file in 0..6 {
            lab.put(&format!("d{dir}/f{file}.txt"), "x\nhit\nx\nhit\n");
        }
    }
    lab.put("d1.txt", "hit\n");
    let mut all: Vec<(std::path::PathBuf, u64)> = (0..12)
        .flat_map(|dir| (0..6).flat_map(move |file| [2, 4].map(|line| (format!("d{dir}/f{file}.txt").into(), line))))
        .collect();
    all.push(("d1.txt".into(), 1));
    all.sort();
    let want: Vec<String> = all
        .iter()
        .map(|(path, line)| format!("{}:{line}", path.display()))
        .collect();
    for limit in [1, 7, 99, 100] {
        for _ in 0..8 {
            let found = lab.ok("Grep", json!({"pattern": "^hit$", "limit": limit})).await;
            assert_eq!(places(&found), want[..limit]);
            assert_eq!((&found["count"], &found["truncated"]), (&json!(limit), &json!(true)));
        }
    }
    let found = lab.ok("Grep", json!({"pattern": "hit", "path": "d3"})).await;
    assert_eq!(
        (&found["count"], &found["truncated"], &found["basePath"]),
        (&json!(12), &json!(false), &json!("d3"))
    );
    let files = lab
        .ok("Grep", json!({"pattern": "hit", "filesOnly": true, "path": "d3"}))
        .await;
    assert_eq!(files["count"], 6);
}

#[tokio::test]
async fn p6_2_grep_options() {
    let lab = Lab::new();
    lab.put("a.rs", "one\nTwo\nthree\ntwo\nfive\r\nsix\n");
    lab.put("b.ts", "two\n");
    lab.put("src/c.tsx", "two\n");
    let found = lab
        .ok(
            "Grep",
            json!({"pattern": "two", "path": "a.rs", "context": 1, "ignoreCase": true}),
        )
        .await;
    assert_eq!(
        found["matches"],
        json!([
            {"path": "a.rs", "line": 2, "content": "Two", "before": ["one"], "after": ["three"]},
            {"path": "a.rs", "line": 4, "content": "two", "before": ["three"], "after": ["five"]}
        ])
    );
    let found = lab
        .ok("Grep", json!({"pattern": "t", "path": "a.rs", "before": 2, "after": 0}))
        .await;
    assert_eq!(
        found["matches"][1],
        json!({"path": "a.rs", "line": 4, "content": "two", "before": ["Two", "three"]})
    );
    for (include, want) in [
        ("*.rs", vec!["a.rs:4"]),
        ("*.{ts,tsx}", vec!["b.ts:1", "src/c.tsx:1"]),
        ("src/**", vec!["src/c.tsx:1"]),
        ("/etc/*", vec![]),
    ] {
        match lab.call("Grep", json!({"pattern": "two", "include": include})).await {
            Ok(found) => assert_eq!(places(&found), want, "{include}"),
            Err(error) => assert_eq!((error.reason(), want.len()), ("path.outside_workspace", 0)),
        }
    }
}

#[tokio::test]
async fn th16_grep_limits_hold() {
    let lab = Lab::new();
    lab.put("long", "a".repeat(100_000) + "needle" + &"ä".repeat(100_000) + "\n");
    let found = lab.ok("Grep", json!({"pattern": "needle"})).await;
    let content = found["matches"][0]["content"].as_str().unwrap();
    assert!(
        content.contains("needle")
            && content.starts_with('…')
            && content.ends_with('…')
            && !content.contains('\u{FFFD}')
    );
    assert!(content.chars().count() <= 500);
    lab.put("fits", "b".repeat(5 * 1024 * 1024 - 7) + "\nneedle");
    lab.put("large", "b".repeat(5 * 1024 * 1024 - 6) + "\nneedle");
    let found = lab.ok("Grep", json!({"pattern": "needle"})).await;
    assert_eq!(places(&found), ["fits:2", "long:1"]);
    assert_eq!(found["skippedLargeFiles"], 1);
    // Exponential for a backtracking engine.
    lab.put("evil", "a".repeat(4000) + "!\n");
    assert_eq!(
        lab.ok("Grep", json!({"pattern": "^(a+)+$", "include": "evil"})).await["count"],
        0
    );
}

#[tokio::test]
async fn f20_s11_ignore_files_outside_the_workspace_do_not_change_results() {
    let lab = Lab::new();
    let outside = lab.dir.path().join("outside");
    std::fs::create_dir_all(outside.join("info")).unwrap();
    let target = outside.join("patterns");
    for path in [
        "out/key-1.txt",
        "inner/key-1.txt",
        "inner/b.txt",
        "worktree/key-1.txt",
        "repo/key-1.txt",
    ] {
        lab.put(path, "needle\n");
    }
    lab.put("shared.gitignore", "key-*\n");
    // A link inside the workspace counts, a link out of it closes its directory.
    std::os::unix::fs::symlink("../shared.gitignore", lab.ws("inner/.gitignore")).unwrap();
    std::os::unix::fs::symlink(&target, lab.ws("out/.gitignore")).unwrap();
    // A worktree's `.git` file names a folder outside, and `.git` may be a link to one.
    lab.put("worktree/.git", format!("gitdir: {}\n", outside.display()));
    std::fs::write(outside.join("commondir"), "./\n").unwrap();
    std::os::unix::fs::symlink(&outside, lab.ws("repo/.git")).unwrap();
    let mut seen = Vec::new();
    for lines in ["key-*\n", "nothing\n"] {
        std::fs::write(&target, lines).unwrap();
        std::fs::write(outside.join("info/exclude"), lines).unwrap();
        let found = lab.ok("Grep", json!({"pattern": "needle"})).await;
        let glob = lab.ok("Glob", json!({"pattern": "*.txt"})).await;
        let mut names: Vec<String> = strings(&glob["matches"]).into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        seen.push((places(&found), names, glob["skippedDirectories"].clone()));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(
        seen[0],
        (
            ["inner/b.txt:1", "repo/key-1.txt:1", "worktree/key-1.txt:1"]
                .map(str::to_owned)
                .to_vec(),
            ["inner/b.txt", "repo/key-1.txt", "worktree/key-1.txt"]
                .map(str::to_owned)
                .to_vec(),
            json!(1)
        )
    );
    std::fs::remove_file(&target).unwrap();
    let found = lab.ok("Grep", json!({"pattern": "needle"})).await;
    assert_eq!(places(&found), seen[0].0, "whether the file exists makes no difference");
}

#[tokio::test]
async fn w26_special_files_do_not_hang_a_search() {
    let lab = Lab::new();
    lab.put("a.txt", "needle\n");
    let fifo = |name: &str| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            lab.ws(name),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
    };
    fifo("fifo");
    for name in ["evil", "worse", "big"] {
        lab.put(&format!("{name}/b.txt"), "needle\n");
    }
    // A hostile repository may contain ignore files that never end.
    std::os::unix::fs::symlink("/dev/zero", lab.ws("evil/.gitignore")).unwrap();
    fifo("worse/.ignore");
    std::fs::File::create(lab.ws("big/.gitignore"))
        .unwrap()
        .set_len(1 << 32)
        .unwrap();
    for tool in ["Grep", "Glob"] {
        let found = lab
            .ok(tool, json!({"pattern": if tool == "Grep" { "needle" } else { "*" }}))
            .await;
        assert_eq!(
            (&found["count"], &found["skippedDirectories"]),
            (&json!(1), &json!(3)),
            "{found}"
        );
        let found = lab.ok(tool, json!({"pattern": "b", "path": "evil"})).await;
        assert_eq!(found["count"], 0);
    }
}

#[tokio::test]
async fn w26_more_matches_than_the_limit_in_one_file_are_cut_visibly() {
    let lab = Lab::new();
    lab.put("a", "needle\n".repeat(3));
    let found = lab.ok("Grep", json!({"pattern": "needle", "limit": 2})).await;
    assert_eq!((&found["count"], &found["truncated"]), (&json!(2), &json!(true)));
    let found = lab.ok("Grep", json!({"pattern": "needle", "limit": 3})).await;
    assert_eq!((&found["count"], &found["truncated"]), (&json!(3), &json!(false)));
    for nothing in [
        "timedOut",
        "skippedLargeFiles",
        "skippedLinkedFiles",
        "skippedDirectories",
    ] {
        assert_eq!(found.get(nothing), None);
    }
}

#[tokio::test]
async fn w26_a_large_file_that_is_named_is_not_searched_and_counted() {
    let lab = Lab::new();
    lab.put("large", "b".repeat(5 * 1024 * 1024 - 6) + "\nneedle");
    let found = lab.ok("Grep", json!({"pattern": "needle", "path": "large"})).await;
    assert_eq!((&found["count"], &found["skippedLargeFiles"]), (&json!(0), &json!(1)));
    lab.put("fits", "b".repeat(5 * 1024 * 1024 - 7) + "\nneedle");
    let found = lab.ok("Grep", json!({"pattern": "needle", "path": "fits"})).await;
    assert_eq!((&found["count"], found.get("skippedLargeFiles")), (&json!(1), None));
}

#[tokio::test]
async fn w26_five_lines_of_context_are_shown() {
    let lab = Lab::new();
    lab.put("a", "1\n2\n3\n4\n5\n6\nneedle\n");
    let found = lab.ok("Grep", json!({"pattern": "needle", "context": 5})).await;
    assert_eq!(found["matches"][0]["before"], json!(["2", "3", "4", "5", "6"]));
}

#[tokio::test]
async fn f20_a_workspace_whose_ignore_file_can_not_be_used_is_left_out_and_counted() {
    let lab = Lab::new();
    lab.put("sub/a.txt", "needle\n");
    std::os::unix::fs::symlink("/dev/zero", lab.ws(".gitignore")).unwrap();
    let found = lab.ok("Glob", json!({"pattern": "*.txt"})).await;
    assert_eq!((&found["count"], &found["skippedDirectories"]), (&json!(0), &json!(1)));
    let found = lab.ok("Glob", json!({"pattern": "*.txt", "path": "sub"})).await;
    assert_eq!((&found["count"], &found["skippedDirectories"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn f20_an_ignore_file_of_one_mebibyte_is_read() {
    let lab = Lab::new();
    lab.put("sub/a.txt", "");
    lab.put("sub/b.txt", "");
    let rule = "a.txt\n#";
    for (bytes, want) in [(1024 * 1024, json!(1)), (1024 * 1024 + 1, json!(0))] {
        lab.put("sub/.gitignore", rule.to_owned() + &"x".repeat(bytes - rule.len()));
        assert_eq!(
            lab.ok("Glob", json!({"pattern": "*.txt"})).await["count"],
            want,
            "{bytes}"
        );
    }
}

#[tokio::test]
async fn w26_a_glob_has_1_to_1024_bytes_and_no_nul() {
    let lab = Lab::new();
    lab.put("a", "");
    for pattern in [String::new(), "x".repeat(1025), "a\0b".to_owned()] {
        assert_eq!(lab.reason("Glob", json!({"pattern": pattern})).await, "tool.bad_args");
    }
    assert_eq!(lab.ok("Glob", json!({"pattern": "x".repeat(1024)})).await["count"], 0);
    assert_eq!(lab.ok("Glob", json!({"pattern": "a"})).await["count"], 1);
}

#[tokio::test]
async fn f20_a_search_below_a_folder_looks_at_no_other_folder() {
    let lab = Lab::new();
    lab.put(".gitignore", "nothing\n");
    lab.put("a/deep/b.txt", "needle\n");
    lab.put("other/b.txt", "needle\n");
    std::os::unix::fs::symlink("/dev/zero", lab.ws("other/.gitignore")).unwrap();
    let found = lab.ok("Glob", json!({"pattern": "*.txt", "path": "a/deep"})).await;
    assert_eq!((&found["count"], found.get("skippedDirectories")), (&json!(1), None));
}

#[tokio::test]
async fn p6_2_a_file_with_the_name_of_gits_store_is_found() {
    let lab = Lab::new();
    lab.put("worktree/.git", "gitdir: needle\n");
    lab.put("main/.git/HEAD", "needle\n");
    let found = lab.ok("Glob", json!({"pattern": "**/*", "hidden": true})).await;
    assert_eq!(strings(&found["matches"]), ["worktree/.git"]);
    let found = lab.ok("Grep", json!({"pattern": "needle", "hidden": true})).await;
    assert_eq!(places(&found), ["worktree/.git:1"]);
}

#[tokio::test]
async fn p6_2_a_match_has_only_the_context_that_was_asked_for() {
    let lab = Lab::new();
    lab.put("a.txt", "one\nneedle\nthree\n");
    for (asked, before, after) in [
        (json!({"pattern": "needle"}), None, None),
        (json!({"pattern": "needle", "before": 1}), Some(json!(["one"])), None),
        (json!({"pattern": "needle", "after": 1}), None, Some(json!(["three"]))),
    ] {
        let found = lab.ok("Grep", asked.clone()).await["matches"][0].clone();
        assert_eq!(
            (found.get("before"), found.get("after")),
            (before.as_ref(), after.as_ref()),
            "{asked}"
        );
    }
}
