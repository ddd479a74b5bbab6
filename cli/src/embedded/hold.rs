//! Holds the gateway still for a moment: its process is stopped (SIGSTOP), not ended, so that its files do not change while they are
//! copied. What is on disk then is what a kill at that moment would leave, and the gateway goes on as if nothing had been.
//!
//! Never leaves it stopped: a process of its own (`guard`) lets it go on when the holder ends in any way or takes too long. If both are
//! killed, the watchdog restarts the gateway.

use std::env;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::layout::Layout;
use super::lock::{self, Lock};
use super::poll;
use super::process::Process;
use super::state::{Found, PATIENCE, Phase, State};
use crate::exit::{Failure, OrFail, Outcome};

/// The first argument of the guard's process.
pub const GUARD: &str = "__let-gateway-go-on";
/// The longest hold. The watchdog counts a gateway as blocked after a minute, clients after some 30 seconds.
pub const LONGEST: Duration = Duration::from_secs(8);
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// What `work` returns while the gateway is still, or does not run and can't be started. `None`: it did not stay still, so what `work` has
/// seen may not fit together.
pub fn while_still<T>(layout: &Layout, work: impl FnOnce() -> Outcome<T>) -> Outcome<Option<T>> {
    // Neither started, stopped nor reloaded meanwhile.
    let _command_lock = Lock::take(&layout.command_lock(), PATIENCE)?;
    let Some(process) = running(layout)? else {
        return work().map(Some);
    };
    let Some(hold) = Hold::begin(process)? else {
        return Ok(None);
    };
    let done = work()?;
    Ok(hold.is_still().then_some(done))
}

/// The process that writes the state. `None`: there is none.
fn running(layout: &Layout) -> Outcome<Option<Process>> {
    let found = poll(PATIENCE, || {
        let is_supervised = lock::is_held(&layout.supervisor_lock());
        match State::read(&layout.state()) {
            Found::State(state) if is_supervised && state.phase == Phase::Ready => {
                // A process that this one can't see can't be held.
                state.workerd().filter(Process::is_alive).map(Some)
            }
            Found::State(state) if !is_supervised => Some(state.workerd().filter(Process::is_alive)),
            _ if !is_supervised => Some(None),
            // It starts, or starts again.
            _ => None,
        }
    });
    found.ok_or_else(|| {
        Failure::later(
            "The gateway's process is not ready or not visible here, so its state can't be copied.",
            "Look at it with `gsv status`, or stop it with `gsv down`; then run the command again.",
        )
    })
}

/// Ends when dropped.
struct Hold {
    process: Process,
    guard: Child,
}

impl Hold {
    /// `None`: the process ended meanwhile.
    fn begin(process: Process) -> Outcome<Option<Self>> {
        let next = "Check that the installation is complete.";
        let exe = env::current_exe().or_fail("find the gsv program", next)?;
        let guard = Command::new(exe)
            .args([GUARD, &process.pid.to_string(), &process.started, &process.boot_id])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in the terminal does not reach it.
            .process_group(0)
            .spawn()
            .or_fail("start the guard of the gateway", next)?;
        let hold = Self { process, guard };
        hold.process.pause();
        let is_still = poll(STOPS_WITHIN, || {
            (hold.process.is_paused() || !hold.process.is_alive()).then_some(())
        });
        if is_still.is_none() {
            return Err(Failure::later(
                format!(
                    "Process {} of the gateway does not stop for a moment.",
                    hold.process.pid
                ),
                "It may be waiting for a disk. Run the command again.",
            ));
        }
        Ok(hold.is_still().then_some(hold))
    }

    fn is_still(&self) -> bool {
        self.process.is_alive() && self.process.is_paused()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.process.resume();
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// The guard's process: lets the gateway go on when its stdin ends, or after the longest hold.
pub fn guard(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let mut text = || args.next().and_then(|arg| arg.into_string().ok());
    let (Some(pid), Some(started), Some(boot_id)) = (text().and_then(|pid| pid.parse().ok()), text(), text()) else {
        return ExitCode::from(2);
    };
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = sender.send(());
    });
    let _ = receiver.recv_timeout(LONGEST + Duration::from_secs(1));
    Process { pid, started, boot_id }.resume();
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn bk2_a_process_is_paused_and_goes_on() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id());
        assert!(!process.is_paused());
        process.pause();
        assert!(poll(STOPS_WITHIN, || process.is_paused().then_some(())).is_some());
        assert!(process.is_alive());
        process.resume();
        assert!(poll(STOPS_WITHIN, || (!process.is_paused()).then_some(())).is_some());
        assert!(process.end(Duration::from_secs(5)));
        child.wait().unwrap();
    }
}
