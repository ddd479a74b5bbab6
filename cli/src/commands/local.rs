//! The gateway of this machine, as far as its files and processes show it, without asking it.

use gsv_link::Target;
use gsv_protocol::errors;

use super::context::Context;
use crate::embedded::layout::Layout;
use crate::embedded::state::{Found, Phase, State};
use crate::embedded::up::last_port;
use crate::embedded::{DEFAULT_PORT, lock, record};
use crate::exit::Failure;

pub const LEFT_OVER_NEXT: &str = "Stop it with `gsv down`, then run `gsv up`.";

#[derive(Debug)]
pub enum Local {
    /// It was never started here, or it was stopped.
    Stopped,
    Running(Box<State>),
    /// Its supervisor was killed; workerd still runs.
    Orphaned(Box<State>),
    GaveUp(Box<State>),
    /// The supervisor runs, but its state file can't be read.
    Unknown,
    /// It runs without its state folder, which was removed or replaced.
    LeftOver(Box<State>),
}

impl Local {
    pub fn look(layout: &Layout) -> Self {
        let held = lock::is_held(&layout.supervisor_lock());
        match (State::read(&layout.state()), held) {
            (Found::State(state), true) => Self::Running(state),
            (Found::State(state), false) if state.phase == Phase::Failed => Self::GaveUp(state),
            (Found::State(state), false) if state.workerd().is_some_and(|workerd| workerd.is_alive()) => {
                Self::Orphaned(state)
            }
            (_, false) => record::running(layout).map_or(Self::Stopped, Self::LeftOver),
            (Found::Absent | Found::Damaged, true) => Self::Unknown,
        }
    }

    pub fn state(&self) -> Option<&State> {
        match self {
            Self::Running(state) | Self::Orphaned(state) | Self::GaveUp(state) => Some(state),
            Self::Stopped | Self::Unknown | Self::LeftOver(_) => None,
        }
    }

    /// Whether an address is this gateway's. Its port tells it apart from other gateways and tunnels on this machine.
    pub fn is_at(&self, layout: &Layout, url: &str) -> bool {
        let left_over = match self {
            Self::LeftOver(state) => Some(state.port),
            _ => None,
        };
        let present = self.state().map(|state| state.port).or(left_over);
        let port = present.or_else(|| last_port(layout));
        Target::parse(url).is_ok_and(|target| target.is_loopback() && target.port == port.unwrap_or(DEFAULT_PORT))
    }

    /// For people: the state, and what to do.
    pub fn words(&self) -> String {
        let words = match self {
            Self::Stopped => "not running; start it with `gsv up`",
            Self::Unknown => "running, but its state can't be read; run `gsv down && gsv up`",
            Self::LeftOver(_) => "running, but its state folder was removed; run `gsv down`, then `gsv up`",
            Self::Orphaned(_) => "running without its supervisor; run `gsv up` to fix this",
            Self::GaveUp(state) => {
                let reason = state.reason.as_deref().unwrap_or("the reason is not known.");
                let next = state.next.as_deref().unwrap_or("Run `gsv up`.");
                return format!("stopped after failures: {reason} {next}");
            }
            Self::Running(state) => match state.phase {
                Phase::Ready => "running",
                Phase::Starting => "starting",
                Phase::Restarting => "restarting after a crash",
                Phase::Failed => "failing",
            },
        };
        words.to_owned()
    }

    /// For programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
            Self::LeftOver(_) => "left-over",
            Self::Orphaned(_) => "orphaned",
            Self::GaveUp(_) => "failed",
            Self::Running(state) => match state.phase {
                Phase::Ready => "running",
                Phase::Starting => "starting",
                Phase::Restarting => "restarting",
                Phase::Failed => "failed",
            },
        }
    }
}

/// A gateway without its state folder fails at its next read. That failure is not a bug, and a retry does not help.
pub fn explain_left_over(context: &Context, failure: Failure) -> Failure {
    if !failure.is(&errors::INTERNAL) {
        return failure;
    }
    match left_over(context) {
        None => failure,
        Some(message) => Failure {
            message,
            next: LEFT_OVER_NEXT.to_owned(),
            ..failure
        },
    }
}

/// Whether the gateway that a command uses runs without its state folder, as a sentence.
pub fn left_over(context: &Context) -> Option<String> {
    let layout = Layout::find().ok()?;
    let local = Local::look(&layout);
    let is_left_over = matches!(local, Local::LeftOver(_));
    let is_used = || {
        context
            .account()
            .is_ok_and(|account| local.is_at(&layout, &account.url))
    };
    (is_left_over && is_used()).then(|| {
        format!(
            "The gateway that was started for {} still runs, but its state folder was removed.",
            layout.home.display()
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn p22_what_helps_is_said_and_not_another_start() {
        let gave_up = |next: Option<&str>| {
            let mut state = serde_json::json!({
                "phase": "failed", "supervisorPid": 1, "supervisorStart": "1", "bootId": "b", "port": 1, "version": "1",
                "startedAt": 1, "restarts": 0, "reason": "A newer version of GSV has written this state.",
            });
            if let Some(next) = next {
                state["next"] = next.into();
            }
            Local::GaveUp(serde_json::from_value(state).unwrap()).words()
        };
        assert!(gave_up(None).ends_with("this state. Run `gsv up`."));
        assert!(gave_up(Some("Install it.")).ends_with("this state. Install it."));
    }

    #[test]
    fn the_port_tells_this_machines_gateway_from_others() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: home.path().join("gsv"),
        };
        let is_at = |url: &str| Local::Stopped.is_at(&layout, url);
        // Never started here: the usual port.
        assert!(is_at(&format!("ws://127.0.0.1:{DEFAULT_PORT}/ws")));
        assert!(!is_at("ws://127.0.0.1:4321/ws"));
        // Stopped: the port of the last start.
        paths::ensure_private_dir(&layout.home).unwrap();
        paths::ensure_private_dir(&layout.gateway()).unwrap();
        paths::write_private_file(&layout.port(), b"4321\n").unwrap();
        assert!(is_at("ws://localhost:4321/ws"));
        assert!(
            !is_at(&format!("ws://127.0.0.1:{DEFAULT_PORT}/ws")),
            "a tunnel to another gateway"
        );
        assert!(!is_at("wss://gateway.example:4321/ws"));
        assert!(!is_at("not an address"));
    }
}
