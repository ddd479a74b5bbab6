//! Completions that know what the gateway has.

use std::fs;
use std::process::Command;
use std::thread;

use crate::common::Home;
use crate::common::fake_gateway::FakeGateway;
use crate::common::play::played;
use serde_json::json;

fn sessions() -> serde_json::Value {
    let entry = |key: &str| json!({"sessionKey": key, "createdAt": 1, "lastActiveAt": 2});
    // The last name would be a command of the shell.
    let sessions = [
        entry("agent:main:main"),
        entry("agent:main:cli:dm:boat"),
        entry("agent:x:$(reboot)"),
    ];
    json!({"sessions": sessions, "count": 3})
}

#[test]
fn ct9_names_come_from_the_gateway_and_values_never() {
    let run = played(&["--complete", "--", "gsv", "chat", "-s", "agent:main"], |connection| {
        let request = connection.expect("sessions.list");
        connection.answer(&request, &sessions());
    });
    assert_eq!(run.ok().stdout, "agent:main:cli:dm:boat\nagent:main:main\n");
    let all = played(&["--complete", "--", "gsv", "session", "get", ""], |connection| {
        let request = connection.expect("sessions.list");
        connection.answer(&request, &sessions());
    });
    assert!(!all.ok().stdout.contains("reboot"));
    let run = played(&["--complete", "--", "gsv", "config", "get", "api"], |connection| {
        let request = connection.expect("config.get");
        connection.answer(
            &request,
            &json!({"config": {"apiKeys": {"anthropic": "sk-secret"}, "model": {"id": "x"}}}),
        );
    });
    assert_eq!(run.ok().stdout, "apiKeys\napiKeys.anthropic\n");
    let run = played(&["--complete", "--", "gsv", "model", "use", "anth"], |connection| {
        let request = connection.expect("models.list");
        assert_eq!(request.params, json!({}));
        connection.error(&request, 500, "internal", "No.");
    });
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("", "", Some(0)));
}

#[test]
fn ct9_without_a_gateway_it_is_silent_and_starts_none() {
    let home = Home::new();
    let run = home.gsv(["--complete", "--", "gsv", "chat", "-s", ""]).ok();
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    assert!(!home.state().join("gateway").exists());
    // Something that does not answer is not waited for.
    let silent = FakeGateway::new();
    let run = silent
        .home()
        .gsv(["--complete", "--", "gsv", "nodes", "forget", ""])
        .ok();
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    let local = home
        .gsv(["--complete", "--", "gsv", "local-config", "set", "chat."])
        .ok();
    assert_eq!(
        local.stdout,
        "chat.enter\nchat.notify\nchat.notifyAfter\nchat.thoughts\n"
    );
}

#[test]
fn ct9_machines_are_offered_for_copies_beside_the_files_of_the_folder() {
    let node =
        |id: &str| json!({"nodeId": id, "online": true, "hostCapabilities": [], "toolCapabilities": {}, "tools": []});
    let gateway = FakeGateway::new();
    let home = gateway.home();
    fs::write(home.root().join("lantern.txt"), "x").unwrap();
    fs::create_dir(home.root().join("lab")).unwrap();
    let mut command = home.command();
    command
        .args(["--complete", "--", "gsv", "cp", "la"])
        .current_dir(home.root());
    let run = crate::common::start(&mut command);
    let mut connection = gateway.accept();
    let request = connection.expect("nodes.list");
    connection.answer(&request, &json!({"nodes": [node("laptop"), node("desk")], "count": 2}));
    assert_eq!(crate::common::finish(run).ok().stdout, "lab/\nlantern.txt\nlaptop:\n");
    // The nodes of this machine are known here.
    let home = Home::new();
    home.write_config("url = \"wss://gsv.example:1\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_b\"\n");
    fs::create_dir_all(home.state().join("node/box")).unwrap();
    let own = home.gsv(["--complete", "--", "gsv", "node", "forget", "--id", ""]).ok();
    assert_eq!(own.stdout, "box\nlap\n");
}

#[test]
fn ct9_a_command_of_the_agent_gets_no_names() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command
        .args(["--complete", "--", "gsv", "local-config", "get", ""])
        .env("GSV_COMMAND", "x");
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn ct9_the_script_of_bash_offers_names_with_colons_and_else_what_it_knows() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let script = home.root().join("gsv.bash");
    fs::write(&script, home.gsv(["completions", "bash"]).ok().stdout).unwrap();
    let bin = home.root().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gsv"), bin.join("gsv")).unwrap();
    let offered = |line: &str, words: &str, at: usize| {
        let text = format!(
            "PATH={}:$PATH; source {}; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({words}); COMP_CWORD={at}; _gsv_names gsv '' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            bin.display(),
            script.display()
        );
        let plain = home.command();
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(text);
        for (name, value) in plain.get_envs() {
            bash.env(name, value.unwrap_or_default());
        }
        String::from_utf8(bash.output().unwrap().stdout).unwrap()
    };
    thread::scope(|scope| {
        let run = scope.spawn(|| offered("gsv chat -s agent:main:", "gsv chat -s agent : main :", 6));
        let mut connection = gateway.accept();
        let request = connection.expect("sessions.list");
        connection.answer(&request, &sessions());
        // A colon ends a word of the shell: what stands before it is there already.
        assert_eq!(run.join().unwrap(), "cli:dm:boat\nmain\n");
    });
    let known = offered("gsv chat --ap", "gsv chat --ap", 2);
    assert!(known.contains("--approve"), "{known}");
    // The other shells have the call, too.
    for shell in ["zsh", "fish"] {
        let script = home.gsv(["completions", shell]).ok();
        assert!(script.stdout.contains("command gsv --complete --"), "{shell}");
    }
}
