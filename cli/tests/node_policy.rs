//! node.toml and the sandbox of the built binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test that can't go on has failed; a skipped one says so"
)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::fake_gateway::{Connection, FakeGateway};
use common::{Home, signal};
use serde_json::{Value, json};

/// A node that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Machine {
    gateway: FakeGateway,
    home: Home,
}

impl Machine {
    fn new() -> Self {
        let (gateway, home) = (FakeGateway::new(), Home::new());
        home.write_config(&format!(
            "url = \"{}\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
            gateway.url()
        ));
        fs::create_dir_all(home.root().join("work")).unwrap();
        Self { gateway, home }
    }

    fn policy(&self, text: &str, mode: u32) {
        let file = self.home.config_dir().join("node.toml");
        fs::write(&file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn workspace(&self) -> String {
        self.home.root().join("work").to_str().unwrap().to_owned()
    }

    /// With the machine's tier for the profile `workspace`; a machine that has none is said aloud.
    fn confining() -> Option<(Self, String)> {
        let machine = Self::new();
        let run = machine
            .home
            .gsv(["node", "sandbox", "--json", "--workspace", &machine.workspace()]);
        let tier = run.json()["tier"].as_str().map(str::to_owned);
        if tier.is_none() {
            eprintln!("skipped: this machine has no tier: {}", run.json());
        }
        tier.map(|tier| (machine, tier))
    }

    fn start(&self) -> (Running, Connection) {
        self.start_in(&self.workspace())
    }

    fn start_in(&self, workspace: &str) -> (Running, Connection) {
        let child = self
            .home
            .command()
            .args(["node", "--workspace", workspace])
            .env("MINE", "passed on")
            .env("API_KEY", "secret")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        (Running(child), self.gateway.accept())
    }

    fn refused(&self) -> String {
        self.home
            .gsv(["node", "--workspace", &self.workspace()])
            .failed(2)
            .stderr
    }
}

/// Runs one command on the node and returns its result.
fn bash(node: &mut Connection, id: &str, command: &str) -> Value {
    call(node, id, "Bash", &json!({"command": command}))
}

fn call(node: &mut Connection, id: &str, tool: &str, args: &Value) -> Value {
    node.event("tool.invoke", &json!({"callId": id, "tool": tool, "args": args}));
    loop {
        let request = node.request();
        node.answer(&request, &json!({"ok": true}));
        if request.method == "tool.result" {
            return request.params;
        }
    }
}

fn end(mut child: Running, node: Connection) {
    signal(&child.0, "-TERM");
    drop(node);
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

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
    let port = machine.gateway.url().rsplit_once(':').unwrap().1.to_owned();
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
