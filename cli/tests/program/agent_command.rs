//! `gsv` inside a command of the agent: it says that it has no authority, and has none in a sandbox, whatever the command does with the mark.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::{Home, signal};
use serde_json::{Value, json};

const GSV: &str = env!("CARGO_BIN_EXE_gsv");
const OWNERS: &str = "gsv_admin_owner00000_5ec7e70000000000000000000000000000000000000000000000000000005ec7e7";
const SENTENCE: &str = "This command runs inside an agent's command and has no authority.";

/// A node that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A node of the built program, and what its commands could reach.
struct Machine {
    home: Home,
    node: Connection,
    child: Running,
    /// Where a client of the owner would connect. Nothing may come here.
    trap: TcpListener,
    calls: u32,
}

impl Machine {
    /// `None`: this system has no such tier. `off` needs none.
    fn start(tier: &str) -> Option<Self> {
        let (gateway, home) = (FakeGateway::new(), Home::new());
        let trap = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        trap.set_nonblocking(true).unwrap();
        home.write_config(&format!(
            "url = \"{}\"\ntoken = \"{OWNERS}\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
            gateway.url()
        ));
        let policy = home.config_dir().join("node.toml");
        let profile = if tier == "off" { "off" } else { "workspace" };
        fs::write(&policy, format!("sandbox = \"{profile}\"\n")).unwrap();
        fs::set_permissions(policy, fs::Permissions::from_mode(0o600)).unwrap();
        let workspace = home.root().join("work");
        fs::create_dir_all(&workspace).unwrap();
        // Landlock is used where bubblewrap is not in the path.
        let path = if tier == "landlock" {
            without_bubblewrap(&home.root().join("bin"))
        } else {
            std::env::var_os("PATH").unwrap()
        };
        if tier != "off" {
            let shown = home
                .command()
                .env("PATH", &path)
                .args(["node", "sandbox", "--json", "--workspace"])
                .arg(&workspace)
                .output()
                .unwrap();
            let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
            if shown["tier"] != tier {
                eprintln!("skipped: this machine does not have {tier}: {shown}");
                return None;
            }
        }
        let child = home
            .command()
            .env("PATH", path)
            .env("GSV_TOKEN", "gsv_node_a_lap")
            .env("GSV_URL", gateway.url())
            .args(["node", "--id", "lap", "--workspace"])
            .arg(&workspace)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let node = gateway.accept();
        Some(Self {
            home,
            node,
            child: Running(child),
            trap,
            calls: 0,
        })
    }

    /// Runs a command of the agent and returns what it printed.
    fn bash(&mut self, command: &str) -> String {
        self.calls += 1;
        let id = format!("a/{}", self.calls);
        self.node.event(
            "tool.invoke",
            &json!({"callId": id, "tool": "Bash", "args": {"command": command}}),
        );
        loop {
            let request = self.node.request();
            self.node.answer(&request, &json!({"ok": true}));
            if request.method == "tool.result" {
                return request.params["result"]["output"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{request:?}"))
                    .to_owned();
            }
        }
    }

    fn end(mut self) {
        signal(&self.child.0, "-TERM");
        drop(self.node);
        self.child.0.wait().unwrap();
        assert_eq!(
            self.trap.accept().map(|_| ()).map_err(|error| error.kind()),
            Err(ErrorKind::WouldBlock),
            "a command reached the owner's gateway"
        );
    }
}

/// A folder with links to the system's programs, bubblewrap left out.
fn without_bubblewrap(folder: &Path) -> OsString {
    fs::create_dir(folder).unwrap();
    for program in fs::read_dir("/usr/bin").unwrap() {
        let program = program.unwrap();
        if program.file_name() != "bwrap" {
            symlink(program.path(), folder.join(program.file_name())).unwrap();
        }
    }
    folder.to_owned().into_os_string()
}

fn says_so(machine: &mut Machine) {
    let commands = [
        "status",
        "chat hello",
        "config set toolApproval.mode full",
        "config get --json",
        "token create --scope admin",
        "pair approve whatsapp 15550001111 --owner --yes",
        "approval allow K7Q2A",
        "local-config get token",
        "stop --all",
        "up",
        "down",
        "node --id other",
        "doctor",
    ];
    let together = commands
        .map(|words| format!("'{GSV}' {words}; echo \"status $?\""))
        .join("\n");
    let said = machine.bash(&format!("exec 2>&1\n{together}"));
    let count = |text: &str| said.matches(text).count();
    assert_eq!(count(SENTENCE), commands.len(), "{said}");
    assert_eq!(count("status 6\n"), commands.len(), "{said}");
    let named = machine.bash(&format!("'{GSV}' status --json 2>&1"));
    assert!(named.contains("auth.agent_command"), "{named}");
    let harmless = machine.bash(&format!(
        "'{GSV}' version; '{GSV}' status --help | head -n 1; echo \"status $?\""
    ));
    assert!(
        harmless.starts_with("gsv 0.") && harmless.contains("status 0"),
        "{harmless}"
    );
    let variables = machine.bash("env | grep -i ^GSV | cut -d= -f1 | sort | tr '\\n' ' '");
    assert_eq!(variables.trim(), "GSV GSV_COMMAND");
}

/// The mark is removed and the owner's folders are named, as an attacker would: there is no token, and no way to the gateway.
fn has_none(machine: &mut Machine) {
    let (config, state, port) = (
        machine.home.config_dir().display().to_string(),
        machine.home.state().display().to_string(),
        machine.trap.local_addr().unwrap().port(),
    );
    let free = format!(
        "env -u GSV -u GSV_COMMAND HOME='{}' GSV_CONFIG_DIR='{config}' GSV_HOME='{state}' '{GSV}'",
        machine.home.root().display()
    );
    for words in [
        "local-config get token",
        "status",
        "token create --scope admin",
        "chat hello",
    ] {
        let said = machine.bash(&format!("{free} {words} 2>&1; echo \"status $?\""));
        assert!(!said.contains(SENTENCE), "the mark was removed: {said}");
        assert!(
            !said.contains("5ec7e7") && !said.contains("status 0"),
            "{words}: {said}"
        );
    }
    // Even with a token, the gateway's port is out of reach.
    let said = machine.bash(&format!(
        "{free} -u ws://127.0.0.1:{port}/ws -t {OWNERS} status 2>&1; echo \"status $?\""
    ));
    assert!(!said.contains("status 0"), "{said}");
    for (what, looked) in [
        ("the token", format!("cat '{config}/config.toml'")),
        ("the key", format!("cat '{config}/secrets.key'")),
        ("the configuration", format!("ls -A '{config}'")),
        (
            "the state",
            format!("ls -A '{state}'; find '{state}' -type f -exec cat {{}} +"),
        ),
        (
            "the node's environment",
            "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep GSV_TOKEN".to_owned(),
        ),
    ] {
        let said = machine.bash(&format!("exec 2>/dev/null\n{looked}"));
        // The node explains a command that the sandbox has stopped.
        let printed = said.split('[').next().unwrap_or_default().trim().to_owned();
        assert_eq!(printed, "", "{what}: {said}");
    }
}

fn fill(home: &Home) {
    let key = home.config_dir().join("secrets.key");
    fs::write(&key, "ab".repeat(32)).unwrap();
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn sb18_with_bubblewrap_a_command_has_no_authority() {
    confined("bubblewrap");
}

#[test]
fn sb18_with_landlock_a_command_has_no_authority() {
    confined("landlock");
}

fn confined(tier: &str) {
    // Landlock shows commands nothing of a folder for temporary files, where a checkout may lie.
    if tier == "landlock"
        && ["/tmp", "/var/tmp"]
            .iter()
            .any(|hidden| Path::new(GSV).starts_with(hidden))
    {
        return eprintln!("skipped: commands do not see the program in {GSV}");
    }
    let Some(mut machine) = Machine::start(tier) else {
        return;
    };
    fill(&machine.home);
    says_so(&mut machine);
    has_none(&mut machine);
    machine.end();
}

#[test]
fn sb18_without_a_sandbox_gsv_refuses_and_doctor_says_what_a_command_can_do() {
    let mut machine = Machine::start("off").unwrap();
    says_so(&mut machine);
    let doctor = machine.home.gsv(["doctor", "--offline"]);
    assert!(
        doctor
            .stdout
            .contains("the agent's commands on this machine can do what you can, with your token too"),
        "{}",
        doctor.stdout
    );
    assert!(
        doctor.stdout.contains("Run the node as another user"),
        "{}",
        doctor.stdout
    );
    machine.end();
}

#[test]
fn sb18_outside_of_a_command_nothing_is_refused() {
    let (gateway, mark) = (FakeGateway::new(), "GSV_COMMAND");
    let home = gateway.home();
    let refused = home.command().env(mark, "/spool/x").arg("status").output().unwrap();
    assert_eq!(refused.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&refused.stderr).contains(SENTENCE));
    // An empty variable is no mark.
    for value in [None, Some("")] {
        let mut command = home.command();
        if let Some(value) = value {
            command.env(mark, value);
        }
        let mut child = command
            .arg("status")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(gateway.greet());
        let _ = child.kill();
        let _ = child.wait();
    }
}
