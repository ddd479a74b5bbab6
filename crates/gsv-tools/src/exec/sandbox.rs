//! How commands are confined: the words before the shell, and the environment. Knows nothing about how that is enforced.

use std::ffi::OsString;

use gsv_sandbox::Level;

/// Applies to the commands of a node.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The level that was tested on this machine.
    pub level: Level,
    /// A program with its arguments that becomes the command which follows them.
    pub wrapper: Vec<OsString>,
    /// The whole environment of a command, except GSV's marks.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether a call may ask for a command outside the sandbox. The gateway asks its owner about each.
    pub may_leave: bool,
}
