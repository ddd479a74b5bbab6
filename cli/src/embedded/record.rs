//! What runs for a state folder, recorded outside of it, in the cache folder: so that `gsv down` ends a gateway whose state folder was
//! removed. A copy of `state.json`, and a hint like it: only the processes themselves tell what runs.

use std::fs;
use std::path::{Path, PathBuf};

use super::bootstrap::sha256_hex;
use super::layout::Layout;
use super::state::{Found, State};
use crate::paths;

/// Where the record of a state folder is. `None`: this user has no cache folder.
fn path(layout: &Layout) -> Option<PathBuf> {
    let home = layout.home.as_os_str().as_encoded_bytes();
    let name = format!("{}.json", sha256_hex(home));
    Some(paths::cache_dir().ok()?.join("running").join(name))
}

/// Best effort: a gateway runs without its record.
pub fn write(layout: &Layout, state: &State) {
    if let Some(path) = path(layout)
        && let Some(dir) = path.parent()
        && paths::ensure_private_dir(dir).is_ok()
    {
        if !path.exists() {
            prune(dir);
        }
        let _ = state.write(&path);
    }
}

pub fn remove(layout: &Layout) {
    if let Some(path) = path(layout) {
        let _ = fs::remove_file(path);
    }
}

/// The gateway that was started for this state folder and still runs: its supervisor or its workerd lives.
pub fn running(layout: &Layout) -> Option<Box<State>> {
    alive(&path(layout)?)
}

/// The state folder of the gateway that runs on a port. `None` also for a gateway of an earlier version, whose record does not say it.
pub fn home_on(port: u16) -> Option<PathBuf> {
    let dir = paths::cache_dir().ok()?.join("running");
    let states = fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter_map(|entry| alive(&entry.path()));
    states.filter(|state| state.port == port).find_map(|state| state.home)
}

/// Removes records of gateways that were killed.
fn prune(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if alive(&entry.path()).is_none() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn alive(path: &Path) -> Option<Box<State>> {
    let Found::State(state) = State::read(path) else {
        return None;
    };
    let lives = state.supervisor().is_alive() || state.workerd().is_some_and(|workerd| workerd.is_alive());
    lives.then_some(state)
}
