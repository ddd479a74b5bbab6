//! Private folders: no file tool reaches them, by any name and by either resolver.

use std::os::unix::fs::symlink;

use crate::common::{Lab, strings};
use gsv_tools::beneath::{Resolver, Scope, overlaps};
use serde_json::{Value, json};

const SECRET: &str = "THE-SECRET";

/// A workspace with the private folder `own` in it.
fn lab(resolver: Resolver, scope: Scope) -> Lab {
    let lab = Lab::with(|config| {
        config.resolver = resolver;
        config.scope = scope;
        let own = config.workspace.join("own");
        std::fs::create_dir_all(own.join("deep")).unwrap();
        config.private = vec![own, config.workspace.join("made later")];
    });
    lab.put("own/secret.txt", SECRET);
    lab.put("own/deep/secret.txt", SECRET);
    lab.put("a.txt", "plain");
    symlink("own", lab.ws("alias")).unwrap();
    symlink("own/deep", lab.ws("alias-deep")).unwrap();
    symlink("own/secret.txt", lab.ws("link.txt")).unwrap();
    std::fs::hard_link(lab.ws("own/secret.txt"), lab.ws("hard.txt")).unwrap();
    std::fs::hard_link(lab.ws("a.txt"), lab.ws("plain-link.txt")).unwrap();
    lab
}

fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({"path": path})),
        ("Edit", json!({"path": path, "oldString": SECRET, "newString": "x"})),
        ("Grep", json!({"pattern": "THE", "path": path})),
    ]
}

#[tokio::test]
async fn f19_s11_no_file_tool_reaches_a_private_folder_by_any_name() {
    for resolver in [Resolver::Auto, Resolver::Walk] {
        for scope in [Scope::Workspace, Scope::Anywhere] {
            let lab = lab(resolver, scope);
            let absolute = lab.ws("own/secret.txt").canonicalize().unwrap();
            let mut refused = Vec::new();
            for path in [
                "own/secret.txt",
                "own/deep/secret.txt",
                "own/deep/../secret.txt",
                "alias/secret.txt",
                "alias-deep/secret.txt",
                "alias-deep/../own/secret.txt",
                "link.txt",
                "hard.txt",
                absolute.to_str().unwrap(),
            ] {
                refused.extend(calls(path));
            }
            refused.extend([
                ("Write", json!({"path": "own/new.txt", "content": "x"})),
                ("Write", json!({"path": "own/new/new.txt", "content": "x"})),
                ("Write", json!({"path": "alias/secret.txt", "content": "x"})),
                ("Delete", json!({"path": "own/secret.txt"})),
                ("Delete", json!({"path": "alias-deep/secret.txt"})),
                ("Glob", json!({"pattern": "*", "path": "own"})),
                ("Glob", json!({"pattern": "*", "path": "alias-deep"})),
                ("Grep", json!({"pattern": "THE", "path": "own/deep"})),
                ("Bash", json!({"command": "cat *", "workdir": "own"})),
            ]);
            for (tool, args) in refused {
                let error = lab.call(tool, args.clone()).await.expect_err(&format!("{tool} {args}"));
                assert_eq!(error.reason(), "path.outside_workspace", "{tool} {args}: {error}");
                assert!(error.to_string().contains("GSV itself"), "{error}");
            }
            assert!(!lab.ws("own/new").exists());
            assert_eq!(lab.get("own/secret.txt"), SECRET);
            let found = lab.ok("Grep", json!({"pattern": "THE|plain"})).await;
            assert_eq!(found["count"], 2, "{found}");
            let found = lab
                .ok("Glob", json!({"pattern": "**/secret.txt", "hidden": true}))
                .await;
            assert_eq!(strings(&found["matches"]), Vec::<&str>::new());
            lab.put("other/deep/b.txt", "plain");
            let found = lab.ok("Glob", json!({"pattern": "*.txt", "path": "other"})).await;
            assert_eq!(strings(&found["matches"]), ["other/deep/b.txt"]);
            // Other files with several names stay usable.
            lab.ok("Read", json!({"path": "plain-link.txt"})).await;
        }
    }
}

#[tokio::test]
async fn f19_a_private_folder_stays_private_when_it_is_renamed_or_made_later() {
    let lab = lab(Resolver::Auto, Scope::Workspace);
    std::fs::rename(lab.ws("own"), lab.ws("moved")).unwrap();
    lab.put("made later/secret.txt", SECRET);
    for path in ["moved/secret.txt", "made later/secret.txt"] {
        assert_eq!(
            lab.reason("Read", json!({"path": path})).await,
            "path.outside_workspace",
            "{path}"
        );
    }
}

#[tokio::test]
async fn f19_s11_a_file_with_several_names_is_refused_when_the_private_folders_cannot_be_seen_whole() {
    for unreadable in [false, true] {
        let lab = Lab::with(|config| {
            let own = config.workspace.join("own");
            std::fs::create_dir_all(&own).unwrap();
            for n in 0..20 {
                std::fs::write(own.join(format!("{n}.txt")), SECRET).unwrap();
            }
            if unreadable {
                // A file as a folder can't be listed.
                config.private = vec![own.join("0.txt")];
            } else {
                config.private = vec![own];
                config.private_entries = 19;
            }
        });
        lab.put("a.txt", "plain");
        lab.put("b.txt", "plain");
        for n in 0..20 {
            std::fs::hard_link(lab.ws(&format!("own/{n}.txt")), lab.ws(&format!("hard-{n}.txt"))).unwrap();
        }
        std::fs::hard_link(lab.ws("a.txt"), lab.ws("plain-link.txt")).unwrap();
        for path in ["plain-link.txt", "hard-0.txt", "hard-19.txt"] {
            for (tool, args) in calls(path) {
                let error = lab.call(tool, args.clone()).await.expect_err(&format!("{tool} {args}"));
                assert_eq!(error.reason(), "path.outside_workspace", "{tool} {args}: {error}");
            }
        }
        let error = lab.call("Read", json!({"path": "plain-link.txt"})).await.unwrap_err();
        assert!(error.to_string().contains("copy it with `cp`"), "{error}");
        lab.ok("Read", json!({"path": "b.txt"})).await;
        let found = lab.ok("Grep", json!({"pattern": "THE|plain"})).await;
        assert_eq!(found["count"], 1, "{found}");
        assert!(found.to_string().contains("b.txt"), "{found}");
        assert!(found["skippedLinkedFiles"].as_u64().unwrap() >= 2, "{found}");
    }
}

#[test]
fn f19_overlapping_folders_are_found_by_any_name() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    std::fs::create_dir_all(path("home/state")).unwrap();
    std::fs::create_dir_all(path("work/deep")).unwrap();
    symlink("home", path("alias")).unwrap();
    for (workspace, folder, want) in [
        ("home", "home/state", true),
        ("home", "home", true),
        ("home/state", "home", true),
        ("alias", "home/state", true),
        ("home", "alias/state", true),
        ("home", "home/made/later", true),
        ("work", "home", false),
        ("work/deep", "home/state", false),
        ("work", "home/made/later", false),
        ("home/state", "home/state-2", false),
    ] {
        assert_eq!(
            overlaps(&path(workspace), &path(folder)).unwrap(),
            want,
            "{workspace} {folder}"
        );
    }
}
