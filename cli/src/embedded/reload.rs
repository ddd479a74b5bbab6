//! Makes a running gateway load a changed configuration: writes it, and asks the supervisor to restart workerd. All state is
//! on disk, so interrupted work continues. A configuration that does not work is replaced by the old one.

use std::fs;
use std::time::{Duration, Instant};

use super::bootstrap::Bootstrap;
use super::layout::Layout;
use super::lock::{self, Lock};
use super::runtime::Runtime;
use super::state::{Found, PATIENCE, Phase, State};
use super::{configure, log};
use crate::exit::{Failure, OrFail, Outcome};
use crate::private_file;

/// After this many crashes in a row the new configuration counts as broken.
const MAX_CRASHES: u32 = 3;
const LOG_LINES: usize = 12;
const START_AGAIN: &str = "Run `gsv down` and then `gsv up`.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// No gateway runs on this machine; the next `gsv up` loads the configuration.
    NotRunning,
    /// The gateway is ready with the new configuration.
    Done {
        took: Duration,
        /// Channels that are enabled and do not run, and why.
        warnings: Vec<String>,
    },
}

/// Waits until the gateway is ready with the new configuration. On a failure the old configuration is back in use.
pub fn reload(layout: &Layout) -> Outcome<Reload> {
    if !layout.exists() {
        return Ok(Reload::NotRunning);
    }
    let _command_lock = Lock::take(&layout.command_lock(), PATIENCE)?;
    if !lock::is_held(&layout.supervisor_lock()) {
        return Ok(Reload::NotRunning);
    }
    let began = Instant::now();
    let before = ready(layout, |_| true)?;
    let (Some(dir), true) = (&before.runtime, before.reloads.is_some() && before.gives_environment) else {
        return Err(Failure::failed(
            "The running gateway is an older version that cannot load a change while it runs.",
            START_AGAIN,
        ));
    };
    let runtime = Runtime::open(dir)?;
    if runtime.manifest.version != before.version {
        // Its first start copies the state, which needs a gateway that does not run.
        return Err(Failure::failed(
            format!(
                "GSV was updated since the gateway started: version {} runs, and {} is installed.",
                before.version, runtime.manifest.version
            ),
            START_AGAIN,
        ));
    }
    let Some(bootstrap) = Bootstrap::read(&layout.bootstrap())? else {
        return Err(Failure::failed(
            format!("{} is missing.", layout.bootstrap().display()),
            "Run `gsv down` and then `gsv up --new-token`.",
        ));
    };
    let path = layout.config();
    let old = fs::read(&path).or_fail(format_args!("read {}", path.display()), START_AGAIN)?;
    let mark = log::end(&layout.log());
    let warnings = configure::write(layout, &runtime, before.port, &bootstrap)?;
    let restarted = restart(layout, &before);
    if let Err(failure) = restarted {
        let failure = failure.with_lines(log::tail_since(&layout.log(), mark, LOG_LINES));
        private_file::write(&path, old)?;
        if let Found::State(now) = State::read(&layout.state()) {
            restart(layout, &now)?;
        }
        return Err(failure);
    }
    let took = began.elapsed();
    Ok(Reload::Done { took, warnings })
}

/// Asks for one reload after the state `before`, and waits for it.
fn restart(layout: &Layout, before: &State) -> Outcome<Box<State>> {
    before.supervisor().reload();
    ready(layout, |state| state.reloads != before.reloads)
}

/// Waits until the state is new and ready.
fn ready(layout: &Layout, is_new: impl Fn(&State) -> bool) -> Outcome<Box<State>> {
    let mut restarts_before = None;
    let is_wanted = |state: &State| is_new(state) && state.phase == Phase::Ready;
    let is_hopeless = |state: &State| {
        let before = *restarts_before.get_or_insert(state.restarts);
        is_new(state) && (state.phase == Phase::Failed || state.restarts >= before.saturating_add(MAX_CRASHES))
    };
    State::wait(layout, is_wanted, is_hopeless).ok_or_else(|| {
        Failure::failed(
            "The gateway is not ready with its new configuration.",
            format!("The whole log is {}.", layout.log().display()),
        )
    })
}
