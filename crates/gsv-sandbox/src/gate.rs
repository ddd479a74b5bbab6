//! The gate before a command: its process prints its pid and waits for the line `go`. The sandbox is made meanwhile, while the node records
//! the command's start. Without the line the command never runs.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

/// The line that opens the gate.
const GO: &[u8] = b"go\n";

/// The files of a command with a gate, which the sandbox hides. The process that starts it has the gate as standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateFiles {
    /// The command's standard input.
    pub input: PathBuf,
    /// Its standard output and standard error.
    pub output: PathBuf,
    /// Made when the gate was closed.
    pub never: PathBuf,
}

/// What came of waiting at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    Opened,
    /// The command must not run.
    Closed,
}

/// The gate of this process.
pub(crate) struct Gate {
    input: OwnedFd,
    /// The folder of `never`, held open: a folder that is made again for another start is another one.
    folder: OwnedFd,
    never: OsString,
    was_opened: Cell<bool>,
}

impl Gate {
    /// Prints this process's pid. From here on the command's files are its standard output and standard error.
    pub(crate) fn new(files: &GateFiles) -> io::Result<Self> {
        let usual = OFlags::CLOEXEC | OFlags::NOCTTY;
        let (Some(folder), Some(never)) = (files.never.parent(), files.never.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let output = open(&files.output, usual | OFlags::WRONLY | OFlags::APPEND, Mode::empty())?;
        let gate = Self {
            // For a pipe with a name, read and write: it is open at once, and does not end with its first writer.
            input: open(&files.input, usual | OFlags::RDWR, Mode::empty())?,
            folder: open(folder, usual | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?,
            never: never.to_owned(),
            was_opened: Cell::new(false),
        };
        let mut stdout = io::stdout();
        stdout.write_all(format!("{}\n", std::process::id()).as_bytes())?;
        stdout.flush()?;
        rustix::stdio::dup2_stdout(&output)?;
        rustix::stdio::dup2_stderr(&output)?;
        Ok(gate)
    }

    /// For [`pass_inside`]: the command's standard input, which the program inside inherits.
    pub(crate) fn input(&self) -> io::Result<OsString> {
        fcntl_setfd(&self.input, FdFlags::empty())?;
        Ok(self.input.as_raw_fd().to_string().into())
    }

    /// Waits, unless it was opened before.
    pub(crate) fn pass(&self) -> Result<Passed, String> {
        if self.was_opened.get() {
            return Ok(Passed::Opened);
        }
        let passed = pass(&self.input).map_err(|error| format!("the start line can't be read: {error}"))?;
        self.was_opened.set(passed == Passed::Opened);
        match passed {
            Passed::Opened => Ok(passed),
            Passed::Closed => self.close(),
        }
    }

    /// The command never runs.
    pub(crate) fn close(&self) -> Result<Passed, String> {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let made = openat(&self.folder, self.never.as_os_str(), flags, Mode::from_raw_mode(0o600));
        made.map_err(|error| format!("{} can't be made: {error}", self.never.display()))?;
        Ok(Passed::Closed)
    }
}

/// Waits at the gate, in the program inside the sandbox. `input`: the number of an open file.
///
/// # Errors
/// A sentence; the command must not run.
#[cfg(target_os = "linux")]
pub(crate) fn pass_inside(input: &OsStr) -> Result<Passed, String> {
    let input = crate::attempt::inherited(&input.to_string_lossy())?;
    pass(input).map_err(|error| format!("the start line can't be read: {error}"))
}

/// Waits for the line, and gives the command its standard input.
fn pass(input: impl std::os::fd::AsFd) -> io::Result<Passed> {
    if !is_opened(rustix::stdio::stdin())? {
        return Ok(Passed::Closed);
    }
    rustix::stdio::dup2_stdin(input)?;
    Ok(Passed::Opened)
}

/// Takes no byte after the line.
fn is_opened(gate: BorrowedFd<'_>) -> io::Result<bool> {
    for wanted in GO {
        let mut byte = [0];
        let read = loop {
            match rustix::io::read(gate, &mut byte) {
                Err(Errno::INTR) => {}
                read => break read?,
            }
        };
        if read == 0 || byte != [*wanted] {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn k15_only_the_whole_line_opens_the_gate_and_nothing_after_it_is_taken() {
        for (text, opens, rest) in [
            ("go\n", true, ""),
            ("go\nmore", true, "more"),
            ("go", false, ""),
            ("g", false, ""),
            ("", false, ""),
            ("gone\n", false, "e\n"),
            ("\ngo\n", false, "go\n"),
        ] {
            let (mut reader, mut writer) = io::pipe().unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            drop(writer);
            assert_eq!(is_opened(reader.as_fd()).unwrap(), opens, "{text:?}");
            let mut left = String::new();
            io::Read::read_to_string(&mut reader, &mut left).unwrap();
            assert_eq!(left, rest, "{text:?}");
        }
    }
}
