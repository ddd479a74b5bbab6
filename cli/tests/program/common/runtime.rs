//! A runtime folder with a tiny Worker in place of the gateway, on the real workerd.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

use super::{Home, Run};

const WORKER: &str = r#"
import { DurableObject } from "cloudflare:workers";
export class Gateway extends DurableObject {
  count() {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS counter(n INTEGER)");
    this.ctx.storage.sql.exec("INSERT INTO counter VALUES(1)");
    return this.ctx.storage.sql.exec("SELECT count(*) AS n FROM counter").one().n;
  }
}
export class Session extends DurableObject {}
export const Remote = { fetch: (request) => new Response("for other machines") };
export default {
  async fetch(request, env) {
    const path = new URL(request.url).pathname;
    if (path === "/health") return Response.json({ ok: true, version: env.VERSION });
    if (path === "/env") return Response.json({ hash: env.BOOTSTRAP_TOKEN_HASH, environment: env.ENVIRONMENT, session: env.SESSION !== undefined, storage: env.STORAGE !== undefined });
    if (path === "/count") return Response.json({ n: await env.GATEWAY.getByName("singleton").count() });
    return new Response("not found", { status: 404 });
  },
};
"#;
const R2: &str = r#"
import { DurableObject } from "cloudflare:workers";
export class R2 extends DurableObject {}
export default { fetch() { return new Response(null, { status: 501 }); } };
"#;
pub const MANIFEST: &str = r#"{"version": "9.9.9", "compatibilityDate": "2026-11-01", "compatibilityFlags": []}"#;

pub fn workerd() -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules/@cloudflare");
    let found = [
        "workerd-linux-64",
        "workerd-linux-arm64",
        "workerd-darwin-64",
        "workerd-darwin-arm64",
    ]
    .iter()
    .map(|name| modules.join(name).join("bin/workerd"))
    .find(|path| path.is_file());
    found
        .expect("workerd is missing: run `npm ci` at the root of the repository first")
        .canonicalize()
        .unwrap()
}

/// A gateway for one test. Stopped when dropped.
pub struct Embedded {
    pub home: Home,
    pub runtime: PathBuf,
    pub port: u16,
}

impl Embedded {
    pub fn new() -> Self {
        let home = Home::new();
        let runtime = home.root().join("runtime-under-test");
        fs::create_dir(&runtime).unwrap();
        fs::write(runtime.join("worker.js"), WORKER).unwrap();
        fs::write(runtime.join("r2.js"), R2).unwrap();
        fs::write(runtime.join("manifest.json"), MANIFEST).unwrap();
        std::os::unix::fs::symlink(workerd(), runtime.join("workerd")).unwrap();
        Self {
            home,
            runtime,
            port: free_port(),
        }
    }

    /// Replaces workerd by a script.
    pub fn replace_workerd(&self, script: &str) {
        fs::remove_file(self.runtime.join("workerd")).unwrap();
        fs::write(self.runtime.join("workerd"), script).unwrap();
        fs::set_permissions(self.runtime.join("workerd"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn command(&self) -> std::process::Command {
        let mut command = self.home.command();
        command.env("GSV_RUNTIME_DIR", &self.runtime);
        command
    }

    pub fn gsv(&self, args: &[&str]) -> Run {
        super::finish(super::start(self.command().args(args)))
    }

    pub fn up(&self) -> Run {
        self.gsv(&["up", "--port", &self.port.to_string()])
    }

    pub fn state_file(&self) -> PathBuf {
        self.home.state().join("gateway/state.json")
    }

    pub fn state(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&fs::read(self.state_file()).ok()?).ok()
    }

    pub fn pid(&self, name: &str) -> Option<u64> {
        self.state()?.get(name)?.as_u64()
    }

    /// The body of a GET, or `None` without an answer with status 200.
    pub fn get(&self, path: &str) -> Option<serde_json::Value> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(
            socket,
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        )
        .ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then_some(())?;
        serde_json::from_str(body).ok()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.gsv(&["down"]);
    }
}

const FIRST_PORT: u16 = 10_240;
const PORTS: u16 = 20_000;

/// A port that has no listener and that no other test of this process gets. It is below the ports that systems give to outgoing
/// connections: a connection could take such a port while its gateway is stopped, and one to a gateway that does not listen yet could
/// connect to itself. It is tried by a connection, because a child that another test starts at this moment would keep a listener.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    static FIRST: LazyLock<u16> = LazyLock::new(|| {
        let mut random = [0; 2];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random).unwrap();
        u16::from_ne_bytes(random) % PORTS
    });
    loop {
        let offset = FIRST.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let port = FIRST_PORT + offset;
        if TcpStream::connect(("127.0.0.1", port)).is_err() {
            return port;
        }
    }
}

pub fn kill(pid: u64) {
    let status = std::process::Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

pub fn is_alive(pid: u64) -> bool {
    // A zombie has ended.
    std::process::Command::new("ps")
        .args(["-o", "state=", "-p", &pid.to_string()])
        .output()
        .is_ok_and(|output| matches!(output.stdout.first(), Some(state) if *state != b'Z'))
}
