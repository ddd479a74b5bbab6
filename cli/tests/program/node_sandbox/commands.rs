//! What a command of a node may do in its sandbox.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::machine::{Machine, bash, call, end};

#[test]
fn sb13_a_command_leaves_the_sandbox_only_when_its_call_says_so() {
    let Some((machine, _)) = Machine::confining() else {
        return;
    };
    let (child, mut node) = machine.start();
    let outside = json!({"command": "cat >~/elsewhere", "sandbox": "off", "background": true});
    let started = call(&mut node, "a/1", "Bash", &outside);
    let id = started["result"]["sessionId"]
        .as_str()
        .unwrap_or_else(|| panic!("{started}"));
    let submit = |extra: Value| {
        let mut args = json!({"action": "submit", "sessionId": id, "data": "typed"});
        args.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        args
    };
    let refused = call(&mut node, "a/2", "Process", &submit(json!({})));
    assert!(refused.to_string().contains("outside the sandbox"), "{refused}");
    let sent = call(&mut node, "a/3", "Process", &submit(json!({"sandbox": "off"})));
    assert!(sent["result"]["written"].as_u64().is_some(), "{sent}");
    // The input is in the pipe: the command may not have begun to read it.
    let deadline = Instant::now() + Duration::from_secs(20);
    let elsewhere = machine.home.root().join("elsewhere");
    while !fs::read_to_string(&elsewhere).is_ok_and(|text| text == "typed\n") {
        assert!(Instant::now() < deadline, "the command has not written what was typed");
        thread::sleep(Duration::from_millis(10));
    }
    call(&mut node, "a/4", "Process", &json!({"action": "kill", "sessionId": id}));
    end(child, node);
}

#[test]
fn sb13_the_owner_of_the_machine_can_forbid_that() {
    let Some((machine, _)) = Machine::confining() else {
        return;
    };
    machine.policy("escalation = false\n", 0o600);
    let (child, mut node) = machine.start();
    let tools = node.hello["tools"].to_string();
    assert!(tools.contains("in a sandbox") && !tools.contains("`off`"), "{tools}");
    let outside = json!({"command": "echo x >~/elsewhere", "sandbox": "off"});
    let refused = call(&mut node, "a/1", "Bash", &outside);
    assert!(refused.to_string().contains("escalation"), "{refused}");
    assert!(!machine.home.root().join("elsewhere").exists());
    end(child, node);
}

#[test]
fn sb9_sb17_where_the_owner_wants_no_hosts_a_refusal_names_that_setting_and_no_command_outside() {
    let Some((machine, _)) = Machine::confining() else {
        return;
    };
    machine.policy("network = \"none\"\n", 0o600);
    let (child, mut node) = machine.start();
    let fetch = "echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6";
    let noted = bash(&mut node, "a/1", fetch).to_string();
    let asks = json!({"command": "true", "sandbox": "workspace+net", "hosts": ["example.org"]});
    let refused = call(&mut node, "a/2", "Bash", &asks).to_string();
    for said in [noted, refused] {
        assert!(
            said.contains("change `network = \\\"none\\\"` in node.toml") && !said.contains("`off`"),
            "{said}"
        );
    }
    end(child, node);
}

#[test]
fn s12_sb12_commands_of_a_node_run_in_the_profile_of_its_policy_and_the_level_is_reported() {
    let Some((machine, tier)) = Machine::confining() else {
        return;
    };
    let root = machine.home.root();
    for folder in ["data", "cache", "elsewhere", ".ssh"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join(".ssh/id"), "PRIVATE").unwrap();
    machine.policy(
        "sandbox = \"workspace\"\nenv = [\"MINE\"]\ncaches = [\"~/cache\"]\n[roots]\nrw = [\"~/data\"]\n",
        0o600,
    );
    // [SB5] What is listed may be written, but for what is protected in it.
    fs::create_dir_all(root.join("data/.git/hooks")).unwrap();
    fs::write(root.join("data/.envrc"), "mine").unwrap();
    let sandbox = ["node", "sandbox", "--workspace", &machine.workspace()];
    let shown = machine.home.gsv(sandbox).ok().stdout;
    let line = shown.lines().find(|line| line.starts_with("writes")).unwrap();
    assert!(
        line.contains("/work, ") && line.contains("/data, package caches"),
        "{line}"
    );
    let is_protected = tier != "landlock";
    assert_eq!(line.contains("not the git hooks"), is_protected, "{line}");
    let (child, mut node) = machine.start();
    let reported = &node.hello["nodeRuntime"]["sandbox"];
    assert_eq!(
        (&reported["profile"], &reported["tier"]),
        (&json!("workspace"), &json!(tier)),
        "{reported}"
    );
    bash(&mut node, "a/0", "echo other >~/data/.envrc");
    let envrc = fs::read_to_string(root.join("data/.envrc")).unwrap();
    assert_eq!(envrc == "mine", is_protected, "{envrc}");
    let done = bash(
        &mut node,
        "a/1",
        "echo x >in-work && echo x >~/data/d && echo x >~/cache/c && echo \"[$MINE][$API_KEY]\"",
    );
    assert!(done.to_string().contains("[passed on][]"), "{done}");
    for file in ["work/in-work", "data/d", "cache/c"] {
        assert!(root.join(file).exists(), "{file}");
    }
    let stopped = bash(&mut node, "a/2", "cat ~/.ssh/id; echo x >~/elsewhere/e").to_string();
    assert!(
        !stopped.contains("PRIVATE") && stopped.contains("the sandbox of this node"),
        "{stopped}"
    );
    let config = machine.home.config_file();
    let own = bash(
        &mut node,
        "a/3",
        &format!("cat {}; ls {}", config.display(), machine.home.state().display()),
    );
    assert!(
        !own.to_string().contains("gsv_node_a_lap") && !own.to_string().contains("ledger"),
        "{own}"
    );
    assert!(!root.join("elsewhere/e").exists());
    end(child, node);
}

#[test]
fn sb12_strict_reads_only_what_the_policy_names() {
    let Some((machine, _)) = Machine::confining() else {
        return;
    };
    let root = machine.home.root();
    for folder in ["reference", "other"] {
        fs::create_dir_all(root.join(folder)).unwrap();
        fs::write(root.join(folder).join("file"), format!("from {folder}")).unwrap();
    }
    machine.policy("sandbox = \"strict\"\n[roots]\nro = [\"~/reference\"]\n", 0o600);
    let (child, mut node) = machine.start();
    assert_eq!(node.hello["nodeRuntime"]["sandbox"]["profile"], "strict");
    let read = bash(&mut node, "a/1", "cat ~/reference/file ~/other/file").to_string();
    assert!(
        read.contains("from reference") && !read.contains("from other"),
        "{read}"
    );
    end(child, node);
}

#[cfg(target_os = "linux")]
#[test]
fn sb19_a_command_beyond_the_limits_of_the_policy_is_ended_and_the_node_goes_on() {
    let machine = Machine::new();
    machine.policy("sandbox = \"off\"\n[limits]\nprocesses = 20\n", 0o600);
    let (child, mut node) = machine.start();
    let many = "for n in 1 2 3 4 5 6; do for m in 1 2 3 4 5 6; do setsid sleep 60 & done; done; wait";
    let ended = bash(&mut node, "a/1", many).to_string();
    assert!(
        ended.contains("limit.processes: ") && ended.contains("more than 20 processes"),
        "{ended}"
    );
    let next = bash(&mut node, "a/2", "echo alive").to_string();
    assert!(next.contains("alive") && !next.contains("limit."), "{next}");
    end(child, node);
}
