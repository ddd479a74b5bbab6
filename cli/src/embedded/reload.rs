//! Makes a running gateway take up a changed configuration: writes it anew and asks the supervisor to start workerd with it.
//! All that counts is on disk, so whatever was under way goes on. A configuration that does not work is taken back.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::bootstrap::Bootstrap;
use super::layout::Layout;
use super::lock::{self, Lock};
use super::runtime::Runtime;
use super::state::{Found, Phase, State};
use super::{configure, log};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths;

/// Longer than the supervisor's own bound for a start, so that its reason arrives.
const PATIENCE: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(5);
/// So many deaths in a row are the configuration's fault.
const MOST_DEATHS: u32 = 3;
const LOG_LINES: usize = 12;

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenUp {
    /// There is no gateway on this machine that runs; the next `gsv up` takes it up.
    NotRunning,
    /// The gateway is well again.
    Done {
        took: Duration,
        /// Channels that are enabled and do not run, and why.
        warnings: Vec<String>,
    },
}

/// Waits until the gateway is ready with the new configuration. When it can't be, the old one is back and the failure says
/// why.
pub fn take_up(layout: &Layout) -> Outcome<TakenUp> {
    if !layout.exists() {
        return Ok(TakenUp::NotRunning);
    }
    let _turn = Lock::take(&layout.turn_lock(), PATIENCE)?;
    if !lock::is_held(&layout.supervisor_lock()) {
        return Ok(TakenUp::NotRunning);
    }
    let began = Instant::now();
    let before = ready(layout, PATIENCE, |_| true)?;
    let runtime = match &before.runtime {
        Some(dir) if before.reloads.is_some() => Runtime::open(dir)?,
        _ => {
            return Err(Failure::failed(
                "The gateway that runs is of an older version and can't take up a change while it runs.",
                "Run `gsv down` and then `gsv up`.",
            ));
        }
    };
    let Some(bootstrap) = Bootstrap::read(&layout.bootstrap())? else {
        return Err(Failure::failed(
            format!("{} is gone.", layout.bootstrap().display()),
            "Run `gsv down` and then `gsv up --new-token`.",
        ));
    };
    let path = layout.config();
    let old = fs::read(&path).or_fail(
        format_args!("read {}", path.display()),
        "Run `gsv down` and then `gsv up`.",
    )?;
    let mark = log::end(&layout.log());
    let warnings = configure::write(layout, &runtime, before.port, &bootstrap)?;
    match restart(layout, &before) {
        Ok(_) => Ok(TakenUp::Done {
            took: began.elapsed(),
            warnings,
        }),
        Err(failure) => {
            let failure = failure.with_lines(log::tail_since(&layout.log(), mark, LOG_LINES));
            paths::write_private_file(&path, &old).or_fail(
                format_args!("write {}", path.display()),
                "Check that the disk is not full.",
            )?;
            if let Found::State(now) = State::read(&layout.state()) {
                restart(layout, &now)?;
            }
            Err(failure)
        }
    }
}

/// One new life of workerd, from the supervisor's `reloads` of `before` on.
fn restart(layout: &Layout, before: &State) -> Outcome<State> {
    before.supervisor().reload();
    ready(layout, PATIENCE, |state| state.reloads != before.reloads)
}

/// Waits for a state that is new enough and ready.
fn ready(layout: &Layout, patience: Duration, is_new: impl Fn(&State) -> bool) -> Outcome<State> {
    let began = Instant::now();
    let mut deaths = None;
    loop {
        if let Found::State(state) = State::read(&layout.state())
            && is_new(&state)
        {
            if state.phase == Phase::Ready {
                return Ok(*state);
            }
            let first = *deaths.get_or_insert(state.restarts);
            if state.phase == Phase::Failed || state.restarts >= first.saturating_add(MOST_DEATHS) {
                return Err(not_ready(layout));
            }
        }
        if began.elapsed() > patience || !lock::is_held(&layout.supervisor_lock()) {
            return Err(not_ready(layout));
        }
        thread::sleep(POLL);
    }
}

fn not_ready(layout: &Layout) -> Failure {
    Failure::failed(
        "The gateway is not ready with its new configuration.",
        format!("The whole log is {}.", layout.log().display()),
    )
}
