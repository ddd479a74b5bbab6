//! What the program outside hands to the program inside: the mounts that it must find, and open files.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use super::options::InsideOptions;
use crate::attempt::{Files, memory_file};
use crate::bubblewrap::Mounted;
use crate::expected::{Expected, Want, identity_of};
use crate::gate::Gate;
use crate::look::MOUNTS;
use crate::mounts::{Mounts, Opened, without_links};

/// What must be mounted, with the identity of each folder and file as it is now.
///
/// # Errors
/// A sentence: a folder is gone, or the mounts can't be listed.
pub(super) fn expected(mounted: &Mounted, protected: &Mounts) -> Result<Expected, String> {
    let identity = |path: &Path| {
        let identity = without_links(path).and_then(identity_of);
        identity.map_err(|error| format!("{} can't be opened: {error}", path.display()))
    };
    let mut points = Vec::new();
    for (folder, path) in &mounted.writable {
        points.push((path.clone(), Want::Writable(identity(folder)?)));
    }
    for path in &mounted.read_only {
        points.push((path.clone(), Want::ReadOnly(identity(path)?)));
    }
    let opened = |want: fn(_) -> Want| move |opened: &Opened| (opened.path.clone(), want(opened.identity));
    points.extend(protected.pinned.iter().map(opened(Want::Writable)));
    points.extend(protected.read_only.iter().map(opened(Want::ReadOnly)));
    points.extend(mounted.covers.iter().map(|path| (path.clone(), Want::Cover)));
    let before = std::fs::read(MOUNTS).map_err(|error| format!("{MOUNTS} can't be read: {error}"))?;
    Ok(Expected { points, before })
}

/// Open files for the program inside. It is started by its open file, because the sandbox may hide its path.
pub(super) struct Handover {
    program: OwnedFd,
    expected: File,
    proxy: Option<OwnedFd>,
    /// The number of the command's standard input, where the program inside waits at a gate.
    input: Option<OsString>,
}

impl Handover {
    /// # Errors
    /// A sentence: a file can't be made or opened.
    pub(super) fn new(expected: &Expected, proxy: Option<&Path>, gate: Option<&Gate>) -> Result<Self, String> {
        let program = open("/proc/self/exe", OFlags::PATH, Mode::empty());
        let proxy = proxy
            .map(|socket| open(socket, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()))
            .transpose();
        Ok(Self {
            program: program.map_err(|error| format!("this program can't be opened: {error}"))?,
            expected: memory_file(&expected.to_bytes())
                .map_err(|error| format!("the plan of the mounts can't be passed on: {error}"))?,
            proxy: proxy.map_err(|error| format!("the node's proxy can't be reached: {error}"))?,
            input: (gate.map(Gate::input).transpose())
                .map_err(|error| format!("the command's standard input can't be passed on: {error}"))?,
        })
    }

    /// The words before the command.
    pub(super) fn words(&self, files: &Files) -> Vec<OsString> {
        // The word that leads to `confine_main` is the first argument of each program that calls it.
        let word = std::env::args_os().nth(1).unwrap_or_default();
        let [sign, errors] = files.numbers().map(OsString::from);
        let options = InsideOptions {
            expected: self.expected.as_raw_fd().to_string().into(),
            sign,
            errors,
            proxy: (self.proxy.as_ref()).map(|proxy| proxy.as_raw_fd().to_string().into()),
            input: self.input.clone(),
        };
        let program = format!("/proc/self/fd/{}", self.program.as_raw_fd()).into();
        [vec![program, word], options.words()].concat()
    }
}
