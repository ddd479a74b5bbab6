//! The words between the plan and the command, on the command line of the program. PURE.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::gate::GateFiles;

/// Stands in the place of the stored plan when this program runs in the sandbox.
pub(super) const INSIDE: &str = "--inside";
/// Followed by the node's socket for this command, or inside by the number of that open file.
pub(super) const PROXY: &str = "--proxy";
/// The command changes nothing (rule SB21). It has no way to hosts either.
const READ_ONLY: &str = "--read-only";
/// Followed by the paths of [`GateFiles`].
pub(crate) const GATE: &str = "--gate";
/// Inside, followed by the number of the open file that is the command's standard input behind the gate.
pub(super) const INPUT: &str = "--input";

/// What stands between the plan and the command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options<'args> {
    pub(super) proxy: Option<&'args OsStr>,
    pub(super) read_only: bool,
    pub(super) gate: Option<GateFiles>,
    pub(super) input: Option<&'args OsStr>,
    pub(super) command: &'args [OsString],
}

impl<'args> Options<'args> {
    pub(super) fn is_inside(&self) -> bool {
        self.gate.is_none() && !self.read_only
    }

    pub(super) fn is_outside(&self) -> bool {
        self.input.is_none()
    }

    /// `None`: this is no call of a node.
    pub(super) fn parse(mut rest: &'args [OsString]) -> Option<Self> {
        let mut options = Self::default();
        loop {
            rest = match rest {
                [word, command @ ..] if word == "--" => {
                    options.command = command;
                    return (!options.read_only || options.proxy.is_none()).then_some(options);
                }
                [word, after @ ..] if word == READ_ONLY => {
                    options.read_only = true;
                    after
                }
                [word, proxy, after @ ..] if word == PROXY => {
                    options.proxy = Some(proxy);
                    after
                }
                [word, input, after @ ..] if word == INPUT => {
                    options.input = Some(input);
                    after
                }
                [word, input, output, never, after @ ..] if word == GATE => {
                    let [input, output, never] = [input, output, never].map(PathBuf::from);
                    options.gate = Some(GateFiles { input, output, never });
                    after
                }
                _ => return None,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn sb21_a_read_only_command_has_no_proxy() {
        let parses = |text: &str| Options::parse(&words(text)).is_some();
        assert!(!parses("--read-only --proxy s -- x") && !parses("--proxy s --read-only -- x"));
        assert!(parses("--read-only -- x") && parses("--proxy s -- x") && parses("-- x"));
        let given = words("--proxy s --input 3 -- x --read-only -- y");
        let options = Options::parse(&given).unwrap();
        assert_eq!(options.proxy, Some(OsStr::new("s")));
        assert_eq!(options.input, Some(OsStr::new("3")));
        assert!(!options.read_only, "the words behind `--` are the command's");
        assert_eq!(options.command, words("x --read-only -- y"));
    }

    #[test]
    fn sb23_a_call_that_is_no_call_of_a_node_is_refused() {
        let inside = |text: &str| Options::parse(&words(text)).is_some_and(|options| options.is_inside());
        let outside = |text: &str| Options::parse(&words(text)).is_some_and(|options| options.is_outside());
        for text in [
            "x",
            "--read-only",
            "--proxy s",
            "--proxy -- x",
            "--gate i o -- x",
            "--other -- x",
        ] {
            assert!(!inside(text) && !outside(text), "{text}");
        }
        for text in ["--gate i o n -- x", "--read-only -- x"] {
            assert!(!inside(text) && outside(text), "{text}");
        }
        assert!(inside("--input 3 -- x") && !outside("--input 3 -- x"));
        assert!(inside("--proxy 4 -- x") && outside("--proxy s -- x"));
    }
}
