//! What a node starts with: `node.toml`, and a sandbox that its policy needs or that it had before.

use std::fs;

use serde_json::json;

use super::machine::{Machine, bash, end};

#[test]
fn sb11_a_policy_that_is_open_or_wrong_stops_the_node() {
    let machine = Machine::new();
    machine.policy("sandbox = \"off\"\n", 0o644);
    let open = machine.refused();
    assert!(open.contains("0644") && open.contains("chmod 600"), "{open}");
    machine.policy("\nsandbax = \"off\"\n", 0o600);
    let wrong = machine.refused();
    assert!(
        wrong.contains("node.toml") && wrong.contains("line 2") && wrong.contains("sandbax"),
        "{wrong}"
    );
    machine.policy("sandbox = \"workspace\"\n[roots]\nrw = [\"/\"]\n", 0o600);
    let wide = machine.refused();
    assert!(
        wide.contains("`roots.rw` in node.toml") && wide.contains("whole system"),
        "{wide}"
    );
    machine.policy("[roots]\nrw = [\"~/missing\"]\n", 0o600);
    let missing = machine.refused();
    assert!(missing.contains("missing does not exist"), "{missing}");
    // No tier is the reason, and the sandbox is no mistake.
    assert!(
        !missing.contains("can't enforce") && !missing.contains("off"),
        "{missing}"
    );
}

#[test]
fn sb11_a_policy_that_is_a_link_without_its_target_stops_the_node() {
    let machine = Machine::new();
    let file = machine.home.config_dir().join("node.toml");
    std::os::unix::fs::symlink("dotfiles/node.toml", &file).unwrap();
    for command in [&["node", "--workspace"][..], &["node", "sandbox", "--workspace"]] {
        let workspace = machine.workspace();
        let said = machine
            .home
            .gsv(command.iter().copied().chain([workspace.as_str()]))
            .failed(1)
            .stderr;
        assert!(
            said.contains("node.toml is a link to dotfiles/node.toml, which does not exist") && said.contains("`rm "),
            "{said}"
        );
    }
}

#[test]
fn sb12_off_is_no_sandbox() {
    let machine = Machine::new();
    machine.policy("sandbox = \"off\"\n", 0o600);
    let (child, node) = machine.start();
    assert_eq!(node.hello["nodeRuntime"]["sandbox"], json!({"profile": "off"}));
    end(child, node);
    assert!(!machine.home.root().join(".cache").exists());
    let tested = machine
        .home
        .gsv(["node", "sandbox", "--workspace", &machine.workspace()]);
    let shown = tested.stdout;
    assert!(shown.contains("possible"), "{shown}");
    assert!(!shown.contains("level") && !shown.contains("network"), "{shown}");
}

#[test]
fn sb12_without_a_policy_commands_run_in_the_profile_workspace() {
    let Some((machine, tier)) = Machine::confining() else {
        return;
    };
    let (child, mut node) = machine.start();
    let reported = &node.hello["nodeRuntime"]["sandbox"];
    assert_eq!(
        (&reported["profile"], &reported["tier"]),
        (&json!("workspace"), &json!(tier)),
        "{reported}"
    );
    bash(&mut node, "a/1", "echo x >in-work; echo x >~/elsewhere");
    assert!(machine.home.root().join("work/in-work").exists());
    assert!(!machine.home.root().join("elsewhere").exists());
    end(child, node);
}

#[test]
fn sb12_a_profile_that_nobody_named_and_that_cannot_be_had_is_reported_as_missing() {
    let machine = Machine::new();
    // A workspace that commands must not see can't be confined, with any tier.
    let keys = machine.home.root().join(".ssh");
    fs::create_dir_all(&keys).unwrap();
    let (child, mut node) = machine.start_in(keys.to_str().unwrap());
    let reported = &node.hello["nodeRuntime"]["sandbox"];
    assert_eq!(reported["profile"], "off", "{reported}");
    assert!(
        reported["missing"].as_str().is_some_and(|why| why.contains(".ssh")),
        "{reported}"
    );
    let done = bash(&mut node, "a/1", "echo x >~/elsewhere && echo done");
    assert!(done.to_string().contains("done"), "{done}");
    end(child, node);
}

#[test]
fn sb12_no_node_starts_without_a_sandbox_that_its_policy_needs_or_that_it_had_before() {
    let machine = Machine::new();
    let keys = machine.home.root().join(".ssh");
    fs::create_dir_all(&keys).unwrap();
    let refused = || {
        let run = machine.home.gsv(["node", "--workspace", keys.to_str().unwrap()]);
        run.failed(2).stderr
    };
    // A mistake in what only a sandbox can do is none that is passed over.
    for text in [
        "[roots]\nrw = [\"~/none\"]\n",
        "[roots]\nro = [\"/srv/none\"]\n",
        "caches = []\n",
        "escalation = false\n",
    ] {
        machine.policy(text, 0o600);
        let said = refused();
        assert!(said.contains("the node does not start"), "{text}: {said}");
    }
    machine.policy("", 0o600);
    let (child, node) = machine.start_in(keys.to_str().unwrap());
    end(child, node);
    let Some((machine, _)) = Machine::confining() else {
        return;
    };
    let (child, node) = machine.start();
    assert_eq!(node.hello["nodeRuntime"]["sandbox"]["profile"], "workspace");
    end(child, node);
    // What a command has done to the sandbox's own folder does not end it.
    let own = machine.home.root().join(".cache/gsv/node/lap/cache");
    for name in ["cargo", "npm", "xdg"] {
        fs::rename(own.join(name), own.join(format!("{name}-moved"))).unwrap();
        fs::write(own.join(name), "").unwrap();
    }
    let (child, node) = machine.start();
    assert_eq!(node.hello["nodeRuntime"]["sandbox"]["profile"], "workspace");
    end(child, node);
    // Nor does anything that keeps the machine from having it again: only the owner can say so.
    let keys = machine.home.root().join(".ssh");
    fs::create_dir_all(&keys).unwrap();
    let said = machine
        .home
        .gsv(["node", "--workspace", keys.to_str().unwrap()])
        .failed(2)
        .stderr;
    assert!(said.contains("It was enforced at an earlier start"), "{said}");
    machine.policy("sandbox = \"off\"\n", 0o600);
    let (child, node) = machine.start();
    end(child, node);
    machine.policy("", 0o600);
    let (child, node) = machine.start_in(keys.to_str().unwrap());
    assert_eq!(node.hello["nodeRuntime"]["sandbox"]["profile"], "off");
    end(child, node);
}
