//! What Bash and Process do in a sandbox, whatever enforces it.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use super::common::{Lab, tier};
use gsv_sandbox::{ConfineOptions, GateFiles, Tier};
use serde_json::json;
use tempfile::TempDir;

/// A command in the sandbox of a lab, started as a node does; its process has said its number, and waits at the gate.
struct Gated {
    supervisor: Child,
    folder: TempDir,
}

impl Gated {
    fn start(wrapper: &[OsString], command: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [input, output, never] = ["/dev/null", "output", "never"].map(|name| folder.path().join(name));
        std::fs::write(&output, "").unwrap();
        let gate = Some(GateFiles { input, output, never });
        let options = ConfineOptions {
            gate,
            ..ConfineOptions::default()
        };
        let mut supervisor = Command::new(env!("CARGO_BIN_EXE_gsv-tools-helper"))
            .arg("__supervise")
            .arg(folder.path())
            .args(["/dev/null", "--gated"])
            .args(wrapper)
            .args(options.words())
            .args(["/bin/sh", "-c", command])
            .current_dir(std::env::current_dir().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Ends with the line: the process has no other use for its standard output.
        let mut pid = String::new();
        supervisor.stdout.take().unwrap().read_to_string(&mut pid).unwrap();
        assert!(pid.trim().parse::<u32>().is_ok(), "{pid}");
        Self { supervisor, folder }
    }

    /// Writes `line` at the gate, ends it, and returns what `exit` and the output say.
    fn end(mut self, line: &str) -> [String; 2] {
        self.supervisor
            .stdin
            .take()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
        assert!(self.supervisor.wait().unwrap().success());
        ["exit", "output"].map(|name| std::fs::read_to_string(self.folder.path().join(name)).unwrap())
    }
}

fn wrapper() -> (Lab, Vec<OsString>) {
    let mut wrapper = Vec::new();
    let lab = Lab::with(|config| wrapper.clone_from(&config.sandbox.as_ref().unwrap().wrapper));
    (lab, wrapper)
}

#[test]
fn sb23_k15_a_command_in_a_sandbox_begins_only_with_the_line_at_its_gate() {
    let (_lab, wrapper) = wrapper();
    let command = "echo said; cat; exit 3";
    assert_eq!(Gated::start(&wrapper, command).end("go\n"), ["code 3\n", "said\n"]);
    for line in ["", "go", "gone\n", "\n"] {
        assert_eq!(Gated::start(&wrapper, command).end(line), ["never\n", ""], "{line:?}");
    }
}

#[test]
fn sb23_k15_a_start_that_was_given_up_says_nothing_in_the_folder_of_the_next_one() {
    let (_lab, wrapper) = wrapper();
    let mut given_up = Gated::start(&wrapper, "echo ran");
    let folder = given_up.folder.path().to_owned();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    drop(given_up.supervisor.stdin.take());
    given_up.supervisor.wait().unwrap();
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn sb23_why_a_sandbox_can_not_be_made_is_said_only_where_the_command_was_to_run() {
    let (_lab, mut wrapper) = wrapper();
    *wrapper.last_mut().unwrap() = "/nowhere/plan.json".into();
    let [exit, output] = Gated::start(&wrapper, "echo ran").end("go\n");
    assert_eq!(exit, "code 126\n");
    assert!(
        output.contains("its plan can't be read") && output.contains("was not run"),
        "{output}"
    );
    assert_eq!(Gated::start(&wrapper, "echo ran").end(""), ["never\n", ""]);
}

#[test]
fn sb10_sb23_a_program_that_does_not_exist_is_named_behind_the_gate() {
    let (_lab, wrapper) = wrapper();
    let folder = tempfile::tempdir().unwrap();
    let [input, output, never] = ["in", "output", "never"].map(|name| folder.path().join(name));
    for file in [&input, &output] {
        std::fs::write(file, "").unwrap();
    }
    let gate = Some(GateFiles {
        input,
        output: output.clone(),
        never: never.clone(),
    });
    let options = ConfineOptions {
        gate,
        ..ConfineOptions::default()
    };
    let (program, args) = wrapper.split_first().unwrap();
    let mut confined = Command::new(program)
        .args(args)
        .args(options.words())
        .arg("/nowhere/program")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    confined.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(confined.wait().unwrap().code(), Some(126));
    let said = std::fs::read_to_string(output).unwrap();
    assert!(
        said.starts_with("[GSV: /nowhere/program can't be started in the sandbox: No such file or directory")
            && said.contains("The command was not run.")
            && !said.contains("can't be set up"),
        "{said}"
    );
    assert!(!never.exists());
}

#[tokio::test]
async fn sb9_a_command_that_the_sandbox_stops_says_so() {
    let lab = Lab::new();
    let stopped = lab.ok("Bash", json!({"command": "echo x >/etc/gsv-canary"})).await;
    assert_eq!(stopped["status"], "failed");
    let note = stopped["note"].as_str().expect("a note");
    assert!(note.contains("sandbox") && note.contains("set to `off`"), "{note}");
    let other = lab.ok("Bash", json!({"command": "exit 3"})).await;
    assert_eq!(other.get("note"), None);
    let tools = serde_json::to_value(lab.tools.definitions()).unwrap();
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.contains("in a sandbox"), "{description}");
    let mut lab = lab;
    lab.ok(
        "Bash",
        json!({"command": "cat <spool/x; echo x >/etc/gsv-canary", "background": true}),
    )
    .await;
    lab.event().await;
    let tail = lab.event().await.output_tail.unwrap_or_default();
    assert!(tail.contains("[the sandbox of this node"), "{tail}");
}

#[tokio::test]
async fn sb21_a_command_that_reads_only_changes_nothing_and_has_no_hosts() {
    let lab = Lab::new();
    lab.ok("Bash", json!({"command": "echo here >kept"})).await;
    let reading = |command: &str| json!({"command": command, "sandbox": "read-only"});
    let read = lab.ok("Bash", reading("cat kept; echo \"[$HTTP_PROXY]\"")).await;
    assert_eq!(read["output"], "here\n[]\n", "{read}");
    for command in ["echo x >new", "rm kept", "chmod 777 kept", "echo x >>kept"] {
        let tried = lab.ok("Bash", reading(command)).await;
        assert_eq!(tried["status"], "failed", "{command}: {tried}");
        let note = tried["note"].as_str().unwrap_or_default();
        assert!(!note.contains("set to `off`"), "{note}");
    }
    let left = lab.ok("Bash", json!({"command": "ls; cat kept"})).await;
    assert_eq!(left["output"], "kept\nhere\n");
    let with_hosts = json!({"command": "true", "sandbox": "read-only", "hosts": ["example.org"]});
    assert_eq!(lab.reason("Bash", with_hosts).await, "tool.bad_args");
    let other = json!({"action": "list", "sandbox": "read-only"});
    assert_eq!(lab.reason("Process", other).await, "tool.bad_args");
}

#[tokio::test]
async fn sb4_a_command_sends_nothing_to_a_datagram_socket_of_another_program() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let lab = Lab::new();
    let other = std::os::unix::net::UnixDatagram::bind(lab.ws("d")).unwrap();
    other.set_nonblocking(true).unwrap();
    for send in ["a.sendto(b'x', 'd')", "a.connect('d'); a.send(b'x')"] {
        let command =
            format!("exec python3 -c \"from socket import *; a, b = socketpair(AF_UNIX, SOCK_DGRAM); {send}\"");
        for arguments in [
            json!({"command": command}),
            json!({"command": command, "sandbox": "read-only"}),
        ] {
            let tried = lab.ok("Bash", arguments).await;
            assert_eq!(tried["exitCode"], 1, "{send}: {tried}");
            let nothing = other.recv(&mut [0; 8]).map_err(|error| error.kind());
            assert_eq!(nothing, Err(std::io::ErrorKind::WouldBlock), "{send}: {tried}");
        }
    }
}

#[tokio::test]
async fn sb3_a_command_sees_no_folder_of_gsv() {
    let lab = Lab::new();
    let seen = lab
        .ok(
            "Bash",
            json!({"command": "ls ../spool ../spool/*; cat \"$GSV_COMMAND/meta.json\""}),
        )
        .await;
    assert!(!seen["output"].as_str().unwrap().contains("sessionId"), "{seen}");
    assert!(!seen["output"].as_str().unwrap().contains("meta.json\n"), "{seen}");
}

#[tokio::test]
async fn ta4_what_a_command_outside_the_sandbox_prints_is_read_only_as_such() {
    let lab = Lab::new();
    let outside = json!({"command": "echo from-outside; cat", "background": true, "sandbox": "off"});
    let id = lab.ok("Bash", outside).await["sessionId"].clone();
    for action in ["poll", "log", "write"] {
        let asked = json!({"action": action, "sessionId": id, "data": "x"});
        assert_eq!(lab.reason("Process", asked).await, "tool.bad_args", "{action}");
        let asked = json!({"action": action, "sessionId": id, "data": "x", "sandbox": "off"});
        lab.ok("Process", asked).await;
    }
    let list = lab.ok("Process", json!({"action": "list"})).await;
    assert_eq!(list["sessions"][0].get("tail"), None);
    let killed = lab.ok("Process", json!({"action": "kill", "sessionId": id})).await;
    assert!(
        killed.get("tail").is_none() && killed["status"] != "running",
        "{killed}"
    );
}

#[tokio::test]
async fn po13_a_deletion_through_a_link_that_an_earlier_command_made_is_refused() {
    let lab = Lab::new();
    lab.put("work/keep", "");
    lab.ok("Bash", json!({"command": "ln -s /usr/share \"$TMPDIR/l\""}))
        .await;
    let refused = |command: &'static str| lab.call("Bash", json!({"command": command}));
    let error = refused("rm -rf \"$TMPDIR/l/gsv-none\"").await.unwrap_err();
    assert_eq!(error.reason(), "tool.bad_args");
    let text = error.to_string();
    assert!(
        text.contains("$TMPDIR/l/gsv-none") && text.contains("delete the link itself"),
        "{text}"
    );
    if tier() == Some(Tier::Bubblewrap) {
        lab.ok("Bash", json!({"command": "ln -s \"$PWD/work\" /tmp/w"})).await;
        for command in ["rm -rf /tmp/w/*", "rm -rf /tmp/*/keep", "find $TMPDIR/w/ -delete"] {
            assert_eq!(
                refused(command).await.unwrap_err().reason(),
                "tool.bad_args",
                "{command}"
            );
        }
    }
    lab.ok("Bash", json!({"command": "rm -rf $TMPDIR/*"})).await;
    let left = lab.ok("Bash", json!({"command": "ls $TMPDIR; ls work"})).await;
    assert_eq!(left["output"], "keep\n");
}
