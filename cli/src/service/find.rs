//! The service manager of this machine.

use super::launchd::Launchd;
use super::manager::Manager;
use super::systemd::Systemd;
use crate::exit::{Failure, Outcome};

pub fn find() -> Outcome<Box<dyn Manager>> {
    if cfg!(target_os = "macos") {
        return Ok(Box::new(Launchd::find()?));
    }
    if cfg!(target_os = "linux") {
        return Ok(Box::new(Systemd::find()?));
    }
    Err(Failure::failed(
        "Services are not supported on this system yet: GSV knows systemd (Linux) and launchd (macOS).",
        "",
    ))
}
