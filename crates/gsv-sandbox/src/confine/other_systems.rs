//! Refuses, on other systems, what only Linux has: bubblewrap and Landlock.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::Confinement;
use super::exit::ended;
use super::options::InsideOptions;
use crate::gate::Gate;
use crate::plan::Plan;

impl Confinement {
    pub(super) fn enter_bubblewrap(
        &self,
        _bubblewrap: &Path,
        _proxy: Option<&Path>,
        _gate: Option<&Gate>,
        _command: &[OsString],
        _workdir: &Path,
    ) -> Result<u8, String> {
        Err("bubblewrap exists only on Linux".into())
    }
}

/// No such restriction can be made.
pub(super) enum Restriction {}

impl Restriction {
    pub(super) fn enforce(self) -> Result<(), String> {
        match self {}
    }
}

pub(super) fn restriction(_plan: &Plan) -> Result<Restriction, String> {
    Err("Landlock exists only on Linux".into())
}

pub(super) fn enter_checked(_options: &InsideOptions, _command: &[OsString]) -> ExitCode {
    ended("bubblewrap exists only on Linux")
}
