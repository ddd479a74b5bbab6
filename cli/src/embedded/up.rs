//! `gsv up`: prepares the state folder, starts the supervisor and waits until the gateway answers.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::bootstrap::{Bootstrap, NewToken};
use super::layout::Layout;
use super::lock::{self, Lock};
use super::runtime::Runtime;
use super::state::{Found, Phase, State};
use super::supervisor::Report;
use super::{configure, log, ports, url};
use crate::config::{Config, Key};
use crate::exit::{Failure, OrFail, Outcome};

/// Longer than the supervisor's own bound for a start, so that its reason arrives.
const PATIENCE: Duration = Duration::from_secs(40);
const LOG_LINES: usize = 12;
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// `None`: the default, or the one that is running.
    pub port: Option<u16>,
    pub new_token: bool,
}

/// What became of the local config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// Nothing had to change.
    Kept,
    /// Address and token of this gateway were stored. A token that was there before is in the backup.
    Stored { backup: Option<PathBuf> },
    /// It belongs to another gateway and was left alone; here is the token, this once.
    Elsewhere { url: String, token: String },
    /// There is no token in it, and only the hash of the first one is known.
    TokenLost,
}

#[derive(Debug)]
pub struct Started {
    pub port: u16,
    pub pid: Option<u32>,
    pub version: String,
    pub already_running: bool,
    pub took: Duration,
    pub login: Login,
    /// What is wrong, and stopped nothing.
    pub warnings: Vec<String>,
}

/// What has to be in place before the supervisor starts, in either mode.
#[derive(Debug)]
pub struct Prepared {
    pub port: u16,
    pub runtime: Runtime,
    pub login: Login,
    pub warnings: Vec<String>,
    turn: Lock,
}

impl Prepared {
    /// The lock that keeps another `up` or `down` waiting, for a caller that runs the supervisor itself.
    pub fn into_turn(self) -> Lock {
        self.turn
    }
}

impl Started {
    /// What is known before the supervisor has said anything.
    pub fn preparing(prepared: &Prepared) -> Self {
        Self {
            port: prepared.port,
            pid: None,
            version: prepared.runtime.manifest.version.clone(),
            already_running: false,
            took: Duration::ZERO,
            login: prepared.login.clone(),
            warnings: prepared.warnings.clone(),
        }
    }
}

pub enum Preparation {
    Running(Started),
    Ready(Prepared),
}

pub fn prepare(layout: &Layout, request: Request) -> Outcome<Preparation> {
    layout.ensure()?;
    let turn = Lock::take(&layout.turn_lock(), PATIENCE)?;
    if lock::is_held(&layout.supervisor_lock()) {
        return running(layout, request).map(Preparation::Running);
    }
    let runtime = Runtime::find(layout)?;
    let port = request.port.unwrap_or(super::DEFAULT_PORT);
    if let Found::State(state) = State::read(&layout.state())
        && let Some(orphan) = state.workerd()
    {
        // Its supervisor was killed. Nobody would restart it, so it makes room for one that is watched.
        orphan.end(ORPHAN_GRACE);
    }
    let _ = fs::remove_file(layout.state());
    ports::ensure_free(port)?;
    let (bootstrap, login) = login(layout, port, request.new_token)?;
    let warnings = configure::write(layout, &runtime, port, &bootstrap)?;
    Ok(Preparation::Ready(Prepared {
        port,
        runtime,
        login,
        warnings,
        turn,
    }))
}

/// Starts the supervisor, detached, and waits for its word.
pub fn start(layout: &Layout, prepared: Prepared) -> Outcome<Started> {
    let began = Instant::now();
    let mark = log::end(&layout.log());
    let next = "Check that the installation is whole.";
    let exe = env::current_exe().or_fail("find the gsv program", next)?;
    let errors = log::open(&layout.log()).or_fail("open the log", "Check that the disk is not full.")?;
    let mut child = Command::new(exe)
        .args(["up", "--supervise", "--port", &prepared.port.to_string()])
        .env("GSV_HOME", &layout.home)
        .env("GSV_RUNTIME_DIR", &prepared.runtime.dir)
        .env_remove("GSV_TOKEN")
        .env_remove("GSV_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .or_fail("start the supervisor", next)?;
    let report = child.stdout.take().and_then(|stdout| first_report(stdout, PATIENCE));
    let failure = |message: String| {
        let next = format!("The whole log is {}.", layout.log().display());
        Failure::failed(message, next).with_lines(log::tail_since(&layout.log(), mark, LOG_LINES))
    };
    match report {
        Some(Report::Ready { pid, version }) => Ok(Started {
            port: prepared.port,
            pid: Some(pid),
            version: version.unwrap_or(prepared.runtime.manifest.version),
            already_running: false,
            took: began.elapsed(),
            login: prepared.login,
            warnings: prepared.warnings,
        }),
        Some(Report::Failed { reason }) => {
            let _ = child.wait();
            Err(failure(reason))
        }
        None => {
            // Silent for too long, or gone without a word: either way it must not linger.
            let _ = child.kill();
            let _ = child.wait();
            Err(failure("The gateway did not start.".to_owned()))
        }
    }
}

fn first_report(stdout: ChildStdout, patience: Duration) -> Option<Report> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = sender.send(line);
    });
    serde_json::from_str(&receiver.recv_timeout(patience).ok()?).ok()
}

/// A second `up` changes nothing.
fn running(layout: &Layout, request: Request) -> Outcome<Started> {
    let began = Instant::now();
    let state = loop {
        match State::read(&layout.state()) {
            Found::State(state) if state.phase == Phase::Ready => break state,
            _ if began.elapsed() > PATIENCE || !lock::is_held(&layout.supervisor_lock()) => {
                return Err(Failure::failed(
                    "The gateway's supervisor runs, but the gateway is not ready.",
                    format!(
                        "Look into {}, then run `gsv down` and `gsv up`.",
                        layout.log().display()
                    ),
                ));
            }
            _ => thread::sleep(Duration::from_millis(5)),
        }
    };
    if let Some(port) = request.port.filter(|port| *port != state.port) {
        return Err(Failure::failed(
            format!("The gateway runs already, on port {}.", state.port),
            format!("To move it: `gsv down` and then `gsv up --port {port}`."),
        ));
    }
    if request.new_token {
        return Err(Failure::failed(
            "The gateway runs, and takes a new first token only when it starts.",
            "Run `gsv down` and then `gsv up --new-token`.",
        ));
    }
    Ok(Started {
        port: state.port,
        pid: state.workerd_pid,
        version: state.version,
        already_running: true,
        took: began.elapsed(),
        login: Login::Kept,
        warnings: Vec::new(),
    })
}

/// Finds or makes the first admin token, and brings the local config in line with this gateway.
fn login(layout: &Layout, port: u16, new_token: bool) -> Outcome<(Bootstrap, Login)> {
    let path = layout.bootstrap();
    let mut config = Config::load()?;
    let here = url(port);
    let elsewhere = config.get(Key::Url).filter(|url| !is_loopback(url)).map(str::to_owned);
    if !new_token && let Some(bootstrap) = Bootstrap::read(&path)? {
        if elsewhere.is_some() {
            return Ok((bootstrap, Login::Kept));
        }
        if config.get(Key::Token).is_none() {
            return Ok((bootstrap, Login::TokenLost));
        }
        if config.get(Key::Url) == Some(here.as_str()) {
            return Ok((bootstrap, Login::Kept));
        }
        config.set(Key::Url, &here)?;
        config.save()?;
        return Ok((bootstrap, Login::Stored { backup: None }));
    }
    let NewToken { token, bootstrap } = NewToken::generate()?;
    let login = if let Some(url) = elsewhere {
        Login::Elsewhere { url, token }
    } else {
        // It may be another state folder's; only its owner can tell, so it is not thrown away.
        let had_token = config.get(Key::Token).is_some();
        let backup = had_token.then(|| config.back_up()).transpose()?;
        config.set(Key::Url, &here)?;
        config.set(Key::Token, &token)?;
        // The token first, its hash second: whatever interrupts this, no token is ever lost for good.
        config.save()?;
        Login::Stored { backup }
    };
    bootstrap.write(&path)?;
    Ok((bootstrap, login))
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_recognised() {
        for url in [
            "ws://127.0.0.1:8787/ws",
            "http://localhost/",
            "ws://[::1]:1/ws",
            "ws://127.9.9.9",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "wss://gsv.example.workers.dev/ws",
            "ws://127.0.0.1.evil.com/",
            "ws://localhost.evil.com",
            "ws://[2001:db8::1]/",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
