//! Refuses, on other systems, what only Linux has: bubblewrap and Landlock.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use super::Confinement;
use super::exit::ended;
use super::options::Options;
use crate::gate::Gate;
use crate::plan::Plan;

impl Confinement {
    pub(super) fn enter_bubblewrap(
        &self,
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

pub(super) fn enter_checked(_files: [&OsStr; 3], _options: &Options) -> ExitCode {
    ended("bubblewrap exists only on Linux")
}
