//! What GSV needs of a service manager, whichever this machine has.

use std::path::PathBuf;

use serde::Serialize;

use super::spec::Spec;
use crate::exit::Outcome;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Running,
    /// It starts, or waits for its next start after a failure.
    Starting,
    Stopped,
    Failed,
}

/// A service as its manager knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The manager has its file.
    pub loaded: bool,
    pub phase: Phase,
    pub pid: Option<u32>,
    /// It starts by itself.
    pub enabled: bool,
    /// How often the manager restarted it after a failure. None: the manager does not say.
    pub restarts: Option<u64>,
}

pub trait Manager {
    fn name(&self) -> &'static str;
    fn file(&self, name: &str) -> PathBuf;
    fn text(&self, spec: &Spec) -> String;
    /// Fails when the manager can't be reached, with the way to reach it, if there is one.
    fn check(&self) -> Outcome;
    fn state(&self, name: &str) -> Outcome<State>;
    /// Loads the file that was written, and lets it start by itself. May be repeated.
    fn enable(&self, name: &str) -> Outcome;
    /// Starts what does not run.
    fn start(&self, name: &str) -> Outcome;
    fn restart(&self, name: &str) -> Outcome;
    /// Sends SIGTERM and waits for the end.
    fn stop(&self, name: &str) -> Outcome;
    /// Before the file is removed. May be repeated.
    fn disable(&self, name: &str) -> Outcome;
    /// After the file is removed. May be repeated.
    fn removed(&self, name: &str) -> Outcome;
    /// Whether services run without a login. None: this manager has no such thing.
    fn lingers(&self) -> Outcome<Option<bool>>;
    fn linger(&self, on: bool) -> Outcome;
}
