//! A machine with a node and its gateway.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::{Home, signal};

/// A node that ends with its test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Machine {
    pub gateway: FakeGateway,
    pub home: Home,
}

impl Machine {
    pub fn new() -> Self {
        let (gateway, home) = (FakeGateway::new(), Home::new());
        home.write_config(&format!(
            "url = \"{}\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
            gateway.url()
        ));
        fs::create_dir_all(home.root().join("work")).unwrap();
        Self { gateway, home }
    }

    pub fn policy(&self, text: &str, mode: u32) {
        let file = self.home.config_dir().join("node.toml");
        fs::write(&file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn workspace(&self) -> String {
        self.home.root().join("work").to_str().unwrap().to_owned()
    }

    /// With the machine's tier for the profile `workspace`; a machine that has none is said aloud.
    pub fn confining() -> Option<(Self, String)> {
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

    pub fn start(&self) -> (Running, Connection) {
        self.start_in(&self.workspace())
    }

    pub fn start_in(&self, workspace: &str) -> (Running, Connection) {
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

    pub fn refused(&self) -> String {
        self.home
            .gsv(["node", "--workspace", &self.workspace()])
            .failed(2)
            .stderr
    }
}

/// Runs one command on the node and returns its result.
pub fn bash(node: &mut Connection, id: &str, command: &str) -> Value {
    call(node, id, "Bash", &json!({"command": command}))
}

pub fn call(node: &mut Connection, id: &str, tool: &str, args: &Value) -> Value {
    node.event("tool.invoke", &json!({"callId": id, "tool": tool, "args": args}));
    loop {
        let request = node.request();
        node.answer(&request, &json!({"ok": true}));
        if request.method == "tool.result" {
            return request.params;
        }
    }
}

pub fn end(mut child: Running, node: Connection) {
    signal(&child.0, "-TERM");
    drop(node);
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}
