//! What `gsv node sandbox` shows.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::machine::{Machine, Running, bash, end};

#[test]
fn sb1_the_sandbox_command_shows_each_tier_and_what_is_missing() {
    let machine = Machine::new();
    let run = machine
        .home
        .gsv(["node", "sandbox", "--json", "--workspace", &machine.workspace()]);
    let found = run.json();
    assert_eq!(
        (&found["configured"], &found["tested"]),
        (&Value::Null, &json!("workspace"))
    );
    let tiers = found["tiers"].as_array().unwrap();
    assert_eq!(tiers.len(), 3, "{found}");
    for tier in tiers {
        assert!(
            tier["holds"] == json!(true) || tier["why"].as_str().is_some_and(|why| !why.is_empty()),
            "{tier}"
        );
    }
    assert_eq!(run.code, Some(i32::from(found["tier"].is_null())));
    // [SB19] Only Linux tells what a command uses.
    let limits = &found["limits"];
    if cfg!(target_os = "linux") {
        assert_eq!(limits["processes"], 4096, "{found}");
        assert!(limits["memoryMib"].as_u64().is_some_and(|mib| mib > 0), "{found}");
    } else {
        assert!(limits.is_null(), "{found}");
    }
    // [SB14] Hosts are shown only where a tier lets commands through to them.
    let has_hosts = found["tier"] == json!("bubblewrap");
    assert_eq!(found["network"], if has_hosts { json!([]) } else { Value::Null });
    let net = [
        "node",
        "sandbox",
        "--json",
        "--profile",
        "workspace+net",
        "--workspace",
        &machine.workspace(),
    ];
    let run = machine.home.gsv(net);
    assert_eq!(run.code, Some(i32::from(!has_hosts)));
    let text = run.json()["tiers"].to_string();
    assert!(text.contains("can't let commands reach single hosts"), "{text}");
    machine
        .home
        .gsv(["node", "sandbox", "--profile", "everything"])
        .failed(2);
}

#[test]
fn sb14_a_list_of_hosts_that_opens_the_gateway_is_warned_about() {
    let Some((machine, tier)) = Machine::confining() else {
        return;
    };
    if tier != "bubblewrap" {
        return;
    }
    let port = machine.gateway.port;
    let workspace = machine.workspace();
    let sandbox = || {
        machine
            .home
            .gsv(["node", "sandbox", "--json", "--workspace", &workspace])
            .ok()
    };
    for (policy, words) in [
        (format!("network = [\"localhost:{port}\"]\n"), Some("when you allow it")),
        (
            format!("sandbox = \"workspace+net\"\nnetwork = [\"127.0.0.1:{port}\"]\n"),
            Some("every command of the agent can"),
        ),
        (format!("escalation = false\nnetwork = [\"localhost:{port}\"]\n"), None),
        ("network = [\"localhost:1\"]\n".to_owned(), None),
    ] {
        machine.policy(&policy, 0o600);
        let run = sandbox();
        let said = &run.json()["opensGateway"];
        match words {
            None => assert!(
                said.is_null() && !run.stderr.contains("the gateway"),
                "{policy}: {run:?}"
            ),
            Some(words) => {
                let said = said.as_str().unwrap();
                assert!(
                    said.contains(words) && said.contains("have no token"),
                    "{policy}: {said}"
                );
                assert!(run.stderr.contains(said), "{run:?}");
            }
        }
        // The node says the same when it starts.
        let mut child = machine
            .home
            .command()
            .args(["node", "--workspace", &workspace])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let child = Running(child);
        let node = machine.gateway.accept();
        end(child, node);
        let mut said = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        assert_eq!(
            words.is_some_and(|words| said.contains(words)),
            words.is_some(),
            "{policy}: {said}"
        );
        assert_eq!(
            said.contains("which is the gateway"),
            words.is_some(),
            "{policy}: {said}"
        );
    }
}

#[test]
fn sb5_what_a_command_may_create_although_it_would_be_protected_is_named() {
    let Some((machine, tier)) = Machine::confining() else {
        return;
    };
    let sandbox = ["node", "sandbox", "--workspace", &machine.workspace()];
    let shown = machine.home.gsv(sandbox).ok().stdout;
    for named in [".envrc", "a repository with hooks in a folder that has none"] {
        assert!(shown.contains(named), "{named}: {shown}");
    }
    let work = machine.home.root().join("work");
    fs::create_dir_all(work.join("old/.git/objects")).unwrap();
    fs::write(work.join("old/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let (child, mut node) = machine.start();
    let creates = "mkdir -p new/.git/hooks && echo x >new/.git/hooks/pre-commit; echo x >.envrc; mkdir -p old/.git/hooks && echo x >old/.git/hooks/pre-commit";
    bash(&mut node, "a/1", creates);
    end(child, node);
    // As it is said.
    assert!(work.join("new/.git/hooks/pre-commit").exists() && work.join(".envrc").exists());
    // A repository that is there keeps its hooks, where the tier can protect files.
    assert_eq!(work.join("old/.git/hooks/pre-commit").exists(), tier == "landlock");
}

#[test]
fn sb22_the_tested_folder_is_that_of_this_machines_node_and_is_named() {
    let machine = Machine::new();
    let sandbox = |more: &[&str]| {
        let mut command = machine.home.command();
        command
            .current_dir(machine.home.root())
            .args(["node", "sandbox", "--json"]);
        command.args(more).output().unwrap()
    };
    // The current folder has GSV's own folders, and no node was started yet: a first start would take `~/gsv`.
    let first = sandbox(&[]);
    let shown: Value = serde_json::from_slice(&first.stdout).unwrap();
    let own = shown["workspace"].as_str().unwrap();
    assert!(own.ends_with("/gsv"), "{own}");
    let refused = sandbox(&["--workspace", "."]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("GSV's own files") && said.contains("gsv node sandbox --workspace DIR"),
        "{said}"
    );
    // Any other current folder is taken, as the help of `gsv node` and docs/getting-started.md say.
    let mut here = machine.home.command();
    here.current_dir(machine.workspace())
        .args(["node", "sandbox", "--json"]);
    let here = here.output().unwrap();
    let shown: Value = serde_json::from_slice(&here.stdout).unwrap();
    let work = fs::canonicalize(machine.workspace()).unwrap();
    assert_eq!(shown["workspace"], json!(work));
    let said = String::from_utf8_lossy(&here.stderr).into_owned();
    assert!(said.contains("the current folder"), "{said}");
    let (node, connection) = machine.start();
    end(node, connection);
    let tested = |more: &[&str]| -> Value {
        let shown: Value = serde_json::from_slice(&sandbox(more).stdout).unwrap();
        shown["workspace"].clone()
    };
    let real = |folder: &str| json!(fs::canonicalize(machine.home.root().join(folder)).unwrap());
    assert_eq!(tested(&[]), real("work"));
    fs::create_dir_all(machine.home.root().join("other")).unwrap();
    assert_eq!(tested(&["--workspace", "other"]), real("other"));
}
