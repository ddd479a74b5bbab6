//! `gsv down`: ends the supervisor and workerd, also when the state folder is gone. Safe to repeat. Signals only processes that are
//! certainly ours.

use std::fs;
use std::time::Duration;

use super::layout::Layout;
use super::lock::{self, Lock};
use super::process::Process;
use super::record;
use super::state::{Found, State};
use super::times::Times;
use crate::exit::{Failure, Outcome};

const PATIENCE: Duration = Duration::from_secs(45);
/// The supervisor needs a second for its log, and another one for a backup, after the end of workerd.
const GRACE: Duration = Duration::from_secs(4);
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

/// Returns whether anything was running.
pub fn stop(layout: &Layout) -> Outcome<bool> {
    let was_running = layout.exists() && stop_here(layout)?;
    // A gateway runs on when its state folder is removed.
    Ok(stop_left_over(layout)? || was_running)
}

/// Stops the gateway whose files are in the state folder.
fn stop_here(layout: &Layout) -> Outcome<bool> {
    let _command_lock = Lock::take(&layout.command_lock(), PATIENCE)?;
    let state = match State::read(&layout.state()) {
        Found::State(state) => Some(state),
        Found::Absent | Found::Damaged => None,
    };
    let mut was_running = false;
    if lock::is_held(&layout.supervisor_lock()) {
        was_running = true;
        let supervisor =
            lock::holder(&layout.supervisor_lock()).or_else(|| state.as_ref().map(|state| state.supervisor()));
        stop_supervisor(layout, supervisor)?;
    }
    if let Some(workerd) = state.and_then(|state| state.workerd())
        && workerd.is_alive()
    {
        was_running = true;
        if !workerd.end(ORPHAN_GRACE) {
            return Err(does_not_end(&workerd));
        }
    }
    let _ = fs::remove_file(layout.state());
    Ok(was_running)
}

fn stop_left_over(layout: &Layout) -> Outcome<bool> {
    let Some(state) = record::running(layout) else {
        record::remove(layout);
        return Ok(false);
    };
    for (process, grace) in [(Some(state.supervisor()), GRACE), (state.workerd(), ORPHAN_GRACE)] {
        if let Some(process) = process.filter(Process::is_alive)
            && !process.end(grace)
        {
            return Err(does_not_end(&process));
        }
    }
    record::remove(layout);
    Ok(true)
}

fn stop_supervisor(layout: &Layout, supervisor: Option<Process>) -> Outcome<()> {
    let Some(supervisor) = supervisor.filter(Process::is_alive) else {
        return Err(Failure::failed(
            "The gateway's supervisor runs, but its process is not known.",
            format!(
                "Find it with `fuser {}`, and kill it.",
                layout.supervisor_lock().display()
            ),
        ));
    };
    supervisor.terminate();
    let grace = GRACE + Times::of(layout).stop;
    if lock::wait_until_free(&layout.supervisor_lock(), grace) {
        return Ok(());
    }
    if supervisor.end(Duration::ZERO) {
        Ok(())
    } else {
        Err(does_not_end(&supervisor))
    }
}

fn does_not_end(process: &Process) -> Failure {
    Failure::failed(
        format!("Process {} does not end.", process.pid),
        format!("Look at it with `ps -p {}`; it may be waiting for a disk.", process.pid),
    )
}
