//! Helpers for tests of the built binary: a home for each test, and `gsv` in it.

pub mod channels;
pub mod editor;
pub mod fake_gateway;
pub mod play;
pub mod runtime;
pub mod service_world;
pub mod services;
pub mod terminal;

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A test that takes longer has failed.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub struct Home {
    dir: tempfile::TempDir,
    /// The time zone of the person.
    pub zone: &'static str,
}

#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The JSON on stdout.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("stdout is not JSON ({error}): {self:?}"))
    }

    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    #[track_caller]
    pub fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

impl Home {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            zone: "UTC",
        }
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn config_dir(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    pub fn config_file(&self) -> PathBuf {
        self.config_dir().join("config.toml")
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn write_config(&self, text: &str) {
        fs::create_dir_all(self.config_dir()).unwrap();
        fs::write(self.config_file(), text).unwrap();
        fs::set_permissions(self.config_file(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A file of the embedded gateway, as an earlier start left it.
    pub fn write_state(&self, name: &str, text: &str) {
        let dir = self.state().join("gateway");
        fs::create_dir_all(&dir).unwrap();
        for dir in [&self.state(), &dir] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
        }
        // Replaced in one step, as the gateway does it: a reader sees the old text or the new one.
        let (draft, file) = (dir.join("draft"), dir.join(name));
        fs::write(&draft, text).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(draft, file).unwrap();
    }

    /// A file of a node, as its last start left it.
    pub fn write_node(&self, id: &str, name: &str, text: &str) {
        let nodes = self.state().join("node");
        let dir = nodes.join(id);
        fs::create_dir_all(&dir).unwrap();
        for dir in [&self.state(), &nodes, &dir] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let file = dir.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// `gsv` without the settings of this machine.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gsv"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("GSV_HOME", self.state())
            .env("GSV_CONFIG_DIR", self.config_dir())
            .env("TZ", self.zone)
            .stdin(Stdio::null());
        command
    }

    pub fn gsv<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        finish(start(self.command().args(args)))
    }

    /// With one variable more.
    pub fn gsv_with<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, variable: &str, value: &str) -> Run {
        finish(start(self.command().env(variable, value).args(args)))
    }

    pub fn gsv_with_stdin<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &str) -> Run {
        let mut child = start(self.command().args(args).stdin(Stdio::piped()));
        // A command may end before it has read its input; its output decides.
        if let Err(error) = child.stdin.take().unwrap().write_all(input.as_bytes()) {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
        }
        finish(child)
    }
}

/// Starts a program whose output the test reads.
pub fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

pub fn finish(child: Child) -> Run {
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Polls until `ask` gives a value, and panics after the deadline.
#[track_caller]
pub fn wait_for<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    try_wait_for(ask).unwrap_or_else(|| panic!("{what} did not happen"))
}

/// Polls until `ask` gives a value. `None` after the deadline.
pub fn try_wait_for<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = ask() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
