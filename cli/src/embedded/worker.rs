//! One workerd process: starts it, copies its output into the log, and stops it. Never restarts it.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::cluster;
use super::compiled::{self, Chosen, Configuration};
use super::layout::Layout;
use super::log::Log;
use super::process::Process;
use super::runtime::Runtime;
use super::sealing_key::{self, SealingKeys};
use super::times::Times;
use crate::exit::{OrFail, Outcome};

/// For the last output after the end of the process.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);
const LINE_BYTES: u64 = 64 * 1024;
const SOURCE: &str = "workerd";
const KILL_SIGNAL: i32 = 9;

#[derive(Clone)]
pub struct SharedLog(Arc<Mutex<Log>>);

impl SharedLog {
    pub fn new(log: Log) -> Self {
        Self(Arc::new(Mutex::new(log)))
    }

    pub fn line(&self, source: &str, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).line(source, text);
    }
}

pub struct Worker {
    child: Child,
    /// For its end, from the request to it.
    grace: Duration,
    output: [JoinHandle<()>; 2],
}

impl Worker {
    pub async fn start(
        layout: &Layout,
        runtime: &Runtime,
        keys: Option<&SealingKeys>,
        log: &SharedLog,
    ) -> Outcome<Self> {
        // workerd does not listen on the file that another process left.
        let _ = std::fs::remove_file(layout.remote_socket());
        let Chosen { configuration, problem } = compiled::current(layout, runtime).await;
        if let Some(problem) = problem {
            log.line(
                SOURCE,
                &format!("the configuration was not compiled, so it is read as text: {problem}"),
            );
        }
        let mut child = command(layout, runtime, &configuration, keys).spawn().or_fail(
            format_args!("start {}", runtime.workerd().display()),
            "It needs Linux with glibc 2.27 or newer, or macOS, on 64 bits. Install the runtime again.",
        )?;
        let output = [
            tokio::spawn(copy_lines(child.stdout.take(), log.clone(), SOURCE)),
            tokio::spawn(copy_lines(child.stderr.take(), log.clone(), SOURCE)),
        ];
        Ok(Self {
            child,
            grace: Times::of(layout).stop,
            output,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Waits for the end of the process. May be cancelled.
    pub async fn wait(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Writes the last output, and gives the cause of the end in words.
    pub async fn died(self, status: Option<ExitStatus>) -> String {
        flush(self.output).await;
        let (code, signal) = status.map_or((None, None), |status| (status.code(), status.signal()));
        match (code, signal) {
            (Some(code), _) => format!("ended with status {code}"),
            (None, Some(KILL_SIGNAL)) => "was killed (signal 9; by hand, or out of memory)".to_owned(),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended".to_owned(),
        }
    }

    /// Kills a process that can't obey a request to end.
    pub async fn kill(mut self) {
        // It has ended already.
        let _ = self.child.kill().await;
        flush(self.output).await;
    }

    pub async fn stop(mut self) {
        if let Some(pid) = self.child.id() {
            Process::of(pid).terminate();
        }
        if timeout(self.grace, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        flush(self.output).await;
    }
}

fn command(layout: &Layout, runtime: &Runtime, configuration: &Configuration, keys: Option<&SealingKeys>) -> Command {
    let mut command = Command::new(runtime.workerd());
    command
        .arg("serve")
        // For the Worker loader (`capnp.rs`). The version of workerd is fixed with the program.
        .arg("--experimental")
        .args(cluster::arguments(layout));
    match configuration {
        Configuration::Text(path) => command.arg(path),
        Configuration::Compiled(path) => command.arg("--binary").arg(path),
    };
    command
        .current_dir(layout.gateway())
        .env_remove("GSV_TOKEN")
        .env_remove(sealing_key::GATEWAY)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for variable in cluster::variables() {
        command.env_remove(variable);
    }
    command.envs(sealing_key::environment(layout, keys));
    command
}

async fn flush(output: [JoinHandle<()>; 2]) {
    for copying in output {
        let _ = timeout(OUTPUT_GRACE, copying).await;
    }
}

/// Copies a stream of a process into the log, line by line.
pub async fn copy_lines(stream: Option<impl AsyncRead + Unpin>, log: SharedLog, source: &'static str) {
    let Some(stream) = stream else { return };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader).take(LINE_BYTES).read_until(b'\n', &mut line).await {
        log.line(source, &String::from_utf8_lossy(&line));
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::runtime::Manifest;

    #[test]
    fn cl3_workerd_gets_no_token_and_no_keys_of_a_bucket() {
        let manifest: Manifest = serde_json::from_str(r#"{"version":"1","compatibilityDate":"2026-11-01"}"#).unwrap();
        let runtime = Runtime {
            dir: "/r".into(),
            manifest,
        };
        let configuration = Configuration::Text("/h/gateway/config.capnp".into());
        let command = command(&Layout { home: "/h".into() }, &runtime, &configuration, None);
        let value = |name: &str| {
            command
                .as_std()
                .get_envs()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.map(ToOwned::to_owned))
        };
        assert_eq!(value("GSV_TOKEN"), Some(None), "it is removed");
        for variable in cluster::variables() {
            assert_eq!(value(variable), Some(None), "[CL3] {variable} is removed");
        }
    }
}
