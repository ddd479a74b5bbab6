//! [SB3] [SB4]: the table of attempts (`attempts.tsv`), line by line.

use std::process::Command;

use gsv_sandbox::{Profile, Tier};

use crate::scene::{Scene, has_python};

const ATTEMPTS: &str = include_str!("../attempts.tsv");

/// The shell's words for a line of the table. `None`: this machine can't try it.
fn attempt(line: &str, python: bool) -> Option<String> {
    let code = if let Some(number) = line.strip_prefix("call ") {
        // EPERM or ENOSYS; with these arguments the kernel itself would answer something else, or do nothing.
        std::env::consts::ARCH.ends_with("86_64").then(|| {
            format!(
                "import ctypes, os; l = ctypes.CDLL(None, use_errno=True); r = l.syscall({number}, 0, 0, 0, 0, 0, 0); os._exit(1 if r < 0 and ctypes.get_errno() in (1, 38) else 0)"
            )
        })?
    } else if let Some(code) = line.strip_prefix("py ") {
        code.to_owned()
    } else {
        return Some(line.to_owned());
    };
    python.then(|| format!("exec python3 -c \"{code}\""))
}

/// What an attempt tries it on, outside the sandbox.
struct Targets {
    victim: std::process::Child,
    tcp: std::net::TcpListener,
    udp: std::net::UdpSocket,
    abstract_name: String,
    _sockets: Vec<std::os::unix::net::UnixListener>,
    _datagrams: Vec<std::os::unix::net::UnixDatagram>,
}

impl Targets {
    fn new(scene: &Scene) -> Self {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
        let abstract_name = format!("gsv-attempt-{}", std::process::id());
        let named = SocketAddr::from_abstract_name(&abstract_name).and_then(|name| UnixListener::bind_addr(&name));
        // The path must fit into a socket's address.
        let sockets = [named, UnixListener::bind(scene.path("other/s"))];
        let named = SocketAddr::from_abstract_name(&abstract_name).and_then(|name| UnixDatagram::bind_addr(&name));
        let datagrams = [named, UnixDatagram::bind(scene.path("other/d"))];
        let victim = Command::new("sleep")
            .arg("600")
            .env("VICTIM_HAS", "SECRET")
            .current_dir(scene.path(""))
            .spawn();
        Self {
            victim: victim.unwrap(),
            tcp: std::net::TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: std::net::UdpSocket::bind("127.0.0.1:0").unwrap(),
            abstract_name,
            _sockets: sockets.into_iter().flatten().collect(),
            _datagrams: datagrams.into_iter().flatten().collect(),
        }
    }

    fn vars(&self) -> [(&'static str, String); 4] {
        [
            ("VICTIM", self.victim.id().to_string()),
            ("PORT", self.tcp.local_addr().unwrap().port().to_string()),
            ("UDP", self.udp.local_addr().unwrap().port().to_string()),
            ("ABSTRACT", self.abstract_name.clone()),
        ]
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

pub(crate) fn attempts(tier: Tier) {
    let python = has_python();
    let lines: Vec<&str> = ATTEMPTS.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() >= 120, "{} attempts", lines.len());
    for profile in [Profile::Workspace, Profile::Strict] {
        let scene = Scene::new(profile);
        let mut targets = Targets::new(&scene);
        let before = scene.outside();
        let mut tried = 0;
        let mut out = Vec::new();
        for line in &lines {
            let Some(script) = attempt(line, python) else { continue };
            tried += 1;
            let output = scene
                .command(tier, &script)
                .envs(targets.vars())
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(!text.contains("can't be set up"), "{line}: {text}");
            if output.status.success() || text.contains("SECRET") || scene.outside() != before {
                out.push(format!("{line}: {text}"));
            }
        }
        assert_eq!(targets.victim.try_wait().unwrap(), None, "the victim was ended");
        assert!(out.is_empty(), "{} got out:\n{}", profile.name(), out.join("\n"));
        println!("{tried} attempts in {} ({}): none got out", profile.name(), tier.name());
    }
}
