//! Runs a program of the service manager, and gives its answer.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use crate::clean::one_line;
use crate::exit::{Failure, OrFail, Outcome};

pub struct Tool {
    pub program: OsString,
    pub env: Vec<(OsString, OsString)>,
}

pub struct Answer {
    pub ok: bool,
    pub stdout: String,
    /// What it said about a failure, in one line.
    pub problem: String,
}

impl Tool {
    pub fn new(program: &str) -> Self {
        Self {
            program: program.into(),
            env: Vec::new(),
        }
    }

    /// `None`: there is no such program.
    pub fn run(&self, args: &[&str]) -> Outcome<Option<Answer>> {
        let name = self.program.to_string_lossy();
        let ran = Command::new(&self.program)
            .args(args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            // The answer is read by this program. A token of this shell is not the manager's business.
            .env("LC_ALL", "C")
            .env_remove("GSV_TOKEN")
            .stdin(Stdio::null())
            .output();
        let output = match ran {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            ran => ran.or_fail(format_args!("run {name}"), "Check that you may run it.")?,
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let said = match (text(&output.stderr), text(&output.stdout)) {
            (stderr, stdout) if stderr.is_empty() => stdout,
            (stderr, _) => stderr,
        };
        let problem = match said.as_str() {
            "" => output.status.to_string(),
            said => one_line(said, 300),
        };
        Ok(Some(Answer {
            ok: output.status.success(),
            stdout: text(&output.stdout),
            problem,
        }))
    }

    /// Its stdout. `doing` completes "could not".
    pub fn must(&self, args: &[&str], doing: &str, missing: impl Fn() -> Failure) -> Outcome<String> {
        let answer = self.run(args)?.ok_or_else(missing)?;
        if answer.ok {
            return Ok(answer.stdout);
        }
        let name = self.program.to_string_lossy();
        Err(Failure::failed(
            format!(
                "Could not {doing}: `{name} {}` says: {}",
                args.join(" "),
                answer.problem
            ),
            "Fix what it says, then run the command again: it goes on where it stopped.",
        ))
    }
}
