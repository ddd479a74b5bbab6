//! The command line of the program that confines a command (mod.rs): how the node calls it, and how it calls itself inside a sandbox. PURE.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::gate::GateFiles;

/// Stands in the place of the stored plan when this program runs in the sandbox.
const INSIDE: &str = "--inside";
/// Followed by the node's socket for this command, or inside by the number of that open file.
const PROXY: &str = "--proxy";
/// The command changes nothing (rule SB21). It has no way to hosts either.
const READ_ONLY: &str = "--read-only";
/// Followed by the paths of [`GateFiles`].
const GATE: &str = "--gate";
/// Inside, followed by the number of the open file that is the command's standard input behind the gate.
const INPUT: &str = "--input";
/// The command follows.
const COMMAND: &str = "--";

/// How one command uses the plan of its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PlanUse {
    #[default]
    AsPlanned,
    /// It changes nothing (rule SB21), and has no way to hosts.
    ReadOnly,
    /// It reaches hosts through the proxy at this socket of the node.
    Proxied(PathBuf),
}

/// What the node says about one command to [`crate::confine_main`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfineOptions {
    pub plan_use: PlanUse,
    pub gate: Option<GateFiles>,
}

impl ConfineOptions {
    /// The words between the stored plan and the command.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = match &self.plan_use {
            PlanUse::AsPlanned => Vec::new(),
            PlanUse::ReadOnly => vec![READ_ONLY.into()],
            PlanUse::Proxied(socket) => vec![PROXY.into(), socket.into()],
        };
        if let Some(GateFiles { input, output, never }) = &self.gate {
            words.extend([GATE.into(), input.into(), output.into(), never.into()]);
        }
        words.push(COMMAND.into());
        words
    }
}

/// What the program outside says to the program inside: numbers of open files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InsideOptions {
    /// What must be mounted.
    pub(super) expected: OsString,
    /// Where it says that the command begins.
    pub(super) sign: OsString,
    /// The command's standard error.
    pub(super) errors: OsString,
    /// The node's socket for this command.
    pub(super) proxy: Option<OsString>,
    /// The command's standard input, where there is a gate.
    pub(super) input: Option<OsString>,
}

impl InsideOptions {
    /// The words between the word that leads to `confine_main` and the command.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "only with bubblewrap there is a program inside")
    )]
    pub(super) fn words(&self) -> Vec<OsString> {
        let Self {
            expected,
            sign,
            errors,
            proxy,
            input,
        } = self.clone();
        let mut words = vec![INSIDE.into(), expected, sign, errors];
        words.extend(proxy.into_iter().flat_map(|proxy| [PROXY.into(), proxy]));
        words.extend(input.into_iter().flat_map(|input| [INPUT.into(), input]));
        words.push(COMMAND.into());
        words
    }
}

/// A call of the program. Each has a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call<'args> {
    /// By the node. `file`: the stored plan.
    Outside {
        file: &'args Path,
        options: ConfineOptions,
        command: &'args [OsString],
    },
    /// By the program outside.
    Inside {
        options: InsideOptions,
        command: &'args [OsString],
    },
}

impl<'args> Call<'args> {
    /// `None`: this is no call of a node, nor of this program.
    pub(super) fn parse(args: &'args [OsString]) -> Option<Self> {
        match args {
            [inside, expected, sign, errors, rest @ ..] if inside == INSIDE => {
                parse_inside([expected, sign, errors], rest)
            }
            [file, rest @ ..] if file != INSIDE => parse_outside(Path::new(file), rest),
            _ => None,
        }
    }
}

fn parse_outside<'args>(file: &'args Path, mut rest: &'args [OsString]) -> Option<Call<'args>> {
    let mut options = ConfineOptions::default();
    loop {
        let has_use = options.plan_use != PlanUse::AsPlanned;
        rest = match rest {
            [word, command @ ..] if word == COMMAND && !command.is_empty() => {
                return Some(Call::Outside { file, options, command });
            }
            [word, after @ ..] if word == READ_ONLY && !has_use => {
                options.plan_use = PlanUse::ReadOnly;
                after
            }
            [word, socket, after @ ..] if word == PROXY && !has_use => {
                options.plan_use = PlanUse::Proxied(socket.into());
                after
            }
            [word, input, output, never, after @ ..] if word == GATE && options.gate.is_none() => {
                let [input, output, never] = [input, output, never].map(PathBuf::from);
                options.gate = Some(GateFiles { input, output, never });
                after
            }
            _ => return None,
        };
    }
}

fn parse_inside<'args>(files: [&OsStr; 3], mut rest: &'args [OsString]) -> Option<Call<'args>> {
    let [expected, sign, errors] = files.map(OsStr::to_owned);
    let mut options = InsideOptions {
        expected,
        sign,
        errors,
        proxy: None,
        input: None,
    };
    loop {
        rest = match rest {
            [word, command @ ..] if word == COMMAND && !command.is_empty() => {
                return Some(Call::Inside { options, command });
            }
            [word, proxy, after @ ..] if word == PROXY && options.proxy.is_none() => {
                options.proxy = Some(proxy.clone());
                after
            }
            [word, input, after @ ..] if word == INPUT && options.input.is_none() => {
                options.input = Some(input.clone());
                after
            }
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn sb10_the_words_of_each_call_are_read_back() {
        // Words behind `--` are the command's.
        let command = words("x --read-only -- y");
        let gate = GateFiles {
            input: "in".into(),
            output: "--".into(),
            never: "--gate".into(),
        };
        for plan_use in [
            PlanUse::AsPlanned,
            PlanUse::ReadOnly,
            PlanUse::Proxied("--read-only".into()),
        ] {
            for gate in [None, Some(gate.clone())] {
                let plan_use = plan_use.clone();
                let options = ConfineOptions { plan_use, gate };
                let given = [words("plan"), options.words(), command.clone()].concat();
                let call = Call::Outside {
                    file: Path::new("plan"),
                    options,
                    command: &command,
                };
                assert_eq!(Call::parse(&given), Some(call));
            }
        }
        for proxy in [None, Some("6".into())] {
            for input in [None, Some("7".into())] {
                let [expected, sign, errors] = ["3", "4", "5"].map(OsString::from);
                let options = InsideOptions {
                    expected,
                    sign,
                    errors,
                    proxy: proxy.clone(),
                    input,
                };
                let given = [options.words(), command.clone()].concat();
                let call = Call::Inside {
                    options,
                    command: &command,
                };
                assert_eq!(Call::parse(&given), Some(call));
            }
        }
    }

    #[test]
    fn sb21_a_read_only_command_has_no_proxy() {
        for text in ["p --read-only --proxy s -- x", "p --proxy s --read-only -- x"] {
            assert_eq!(Call::parse(&words(text)), None, "{text}");
        }
    }
}
