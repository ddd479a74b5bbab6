//! [S11] [PO7]: a change through a link is refused when the link leads to what other programs run, or out of the workspace: the gateway's
//! policy has seen the path of the link only.

use std::os::unix::fs::symlink;

use crate::common::Lab;
use gsv_tools::beneath::{Resolver, Scope};
use serde_json::{Value, json};

fn calls(path: &str) -> [(&'static str, Value); 3] {
    [
        ("Write", json!({"path": path, "content": "evil"})),
        ("Edit", json!({"path": path, "oldString": "own", "newString": "evil"})),
        ("Delete", json!({"path": path})),
    ]
}

/// Only the machine knows what a configuration names, so no one was asked about such a path.
#[tokio::test]
async fn sb5_file_tools_do_not_change_what_a_git_configuration_names() {
    let lab = Lab::new();
    lab.put(
        ".git/config",
        "[core]\n hooksPath = githooks\n fsmonitor = sh tools/watch\n[include]\n path = ../more.cfg\n path = none.cfg\n",
    );
    lab.put("sub/.git/config", "[core]\n hooksPath = later/hooks\n");
    for path in [
        "githooks/pre-commit",
        "tools/watch",
        "more.cfg",
        "tools/other",
        "later/x",
    ] {
        lab.put(path, "own");
    }
    symlink("../githooks", lab.ws("tools/g")).unwrap();
    // A hook that is a link, as many projects have it.
    std::fs::create_dir_all(lab.ws("linked/.git/hooks")).unwrap();
    lab.put("linked/.git/config", "");
    symlink("../../check.sh", lab.ws("linked/.git/hooks/pre-commit")).unwrap();
    lab.put("linked/check.sh", "own");
    for path in [
        "githooks/pre-commit",
        "tools/watch",
        "more.cfg",
        "tools/g/pre-commit",
        "./githooks//pre-commit",
        "linked/check.sh",
    ] {
        for (tool, args) in calls(path) {
            let error = lab.call(tool, args).await.unwrap_err();
            assert_eq!(error.reason(), "path.invalid", "{tool} {path}: {error}");
            assert!(error.to_string().contains("a setting of git names it"), "{error}");
        }
    }
    for path in ["githooks/new", "sub/later/hooks/pre-push", ".git/none.cfg"] {
        let error = lab
            .call("Write", json!({"path": path, "content": "x"}))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("a setting of git names it"),
            "{path}: {error}"
        );
    }
    assert_eq!(std::fs::read_to_string(lab.ws("githooks/pre-commit")).unwrap(), "own");
    for path in ["tools/other", "later/x"] {
        lab.call("Write", json!({"path": path, "content": "new"}))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn s11_po7_no_link_makes_a_protected_file_look_like_an_ordinary_one() {
    for resolver in [Resolver::Auto, Resolver::Walk] {
        let lab = Lab::with(|config| config.resolver = resolver);
        lab.put(".git/hooks/pre-commit", "own");
        lab.put("sub/.git/hooks/pre-commit", "own");
        lab.put(".envrc", "own");
        lab.put("docs/a.md", "own");
        for (to, name) in [
            (".git", "g"),
            (".git/hooks", "h"),
            ("sub", "s"),
            ("docs", "d"),
            ("g", "gg"),
        ] {
            symlink(to, lab.ws(name)).unwrap();
        }
        symlink("../.git/hooks/pre-commit", lab.ws("docs/hook")).unwrap();
        symlink(".envrc", lab.ws("settings")).unwrap();
        for path in [
            "g/hooks/pre-commit",
            "h/pre-commit",
            "gg/hooks/pre-commit",
            "docs/../g/hooks/pre-commit",
        ] {
            for (tool, args) in calls(path) {
                let error = lab.call(tool, args).await.unwrap_err();
                assert_eq!(error.reason(), "path.invalid", "{tool} {path}: {error}");
                assert!(error.to_string().contains(".git/hooks"), "{error}");
            }
        }
        // A new file, and links to files; a link itself can be removed.
        assert_eq!(
            lab.reason("Write", json!({"path": "h/post-merge", "content": "x"}))
                .await,
            "path.invalid"
        );
        for path in ["docs/hook", "settings"] {
            let [write, edit, _] = calls(path);
            for (tool, args) in [write, edit] {
                assert_eq!(
                    lab.call(tool, args).await.unwrap_err().reason(),
                    "path.invalid",
                    "{tool} {path}"
                );
            }
        }
        for file in [".git/hooks/pre-commit", "sub/.git/hooks/pre-commit", ".envrc"] {
            assert_eq!(lab.get(file), "own");
        }
        lab.ok("Delete", json!({"path": "settings"})).await;
        // By their own names, and through links that lead to ordinary files.
        for path in [".git/hooks/pre-commit", "s/.git/hooks/pre-commit", ".envrc", "d/a.md"] {
            lab.ok("Write", json!({"path": path, "content": "new"})).await;
        }
        assert_eq!(
            (lab.get("sub/.git/hooks/pre-commit"), lab.get("docs/a.md")),
            ("new".into(), "new".into())
        );
    }
}

#[tokio::test]
async fn s11_po7_no_link_makes_a_file_of_git_look_like_an_ordinary_one() {
    for resolver in [Resolver::Auto, Resolver::Walk] {
        let lab = Lab::with(|config| config.resolver = resolver);
        let files = [
            "proj.git/config",
            "proj.git/HEAD",
            "proj.git/info/attributes",
            "proj.git/hooks/update",
            "proj.git/worktrees/main/commondir",
        ];
        for (number, file) in files.into_iter().enumerate() {
            lab.put(file, "own");
            let link = format!("link{number}");
            symlink(file, lab.ws(&link)).unwrap();
            let [write, edit, _] = calls(&link);
            for (tool, args) in [write, edit] {
                let error = lab.call(tool, args).await.unwrap_err();
                assert_eq!(error.reason(), "path.invalid", "{tool} {file}: {error}");
            }
            assert_eq!(lab.get(file), "own");
            // By its own name, which the policy has seen.
            lab.ok("Write", json!({"path": file, "content": "new"})).await;
        }
        symlink("proj.git/hooks", lab.ws("h")).unwrap();
        assert_eq!(
            lab.reason("Write", json!({"path": "h/post-update", "content": "x"}))
                .await,
            "path.invalid"
        );
        lab.put("src/hooks/useX.ts", "own");
        symlink("src/hooks", lab.ws("uses")).unwrap();
        lab.ok("Write", json!({"path": "uses/useX.ts", "content": "new"})).await;
    }
}

#[tokio::test]
async fn s11_po7_no_link_makes_a_file_outside_look_like_one_inside() {
    for resolver in [Resolver::Auto, Resolver::Walk] {
        let lab = Lab::with(|config| {
            config.resolver = resolver;
            config.scope = Scope::Anywhere;
        });
        let outside = tempfile::tempdir().unwrap();
        let outside = outside.path().canonicalize().unwrap();
        std::fs::write(outside.join("file"), "own").unwrap();
        symlink(&outside, lab.ws("out")).unwrap();
        for (tool, args) in calls("out/file") {
            assert_eq!(
                lab.call(tool, args).await.unwrap_err().reason(),
                "path.invalid",
                "{tool}"
            );
        }
        let named = outside.join("file");
        lab.ok("Write", json!({"path": named, "content": "new"})).await;
        assert_eq!(std::fs::read_to_string(named).unwrap(), "new");
    }
}
