//! One attempt to start a command with bubblewrap. The plan of its mounts can be out of date before they are made: a socket that was to
//! be covered goes away with its folder, and bubblewrap ends. Then the command may be started again with a new plan, if it is certain that
//! it never began. What bubblewrap says is no proof; the sign is a byte that the program inside writes when all mounts are checked,
//! as its last act before it becomes the command.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A command is started again this often.
pub(crate) const MORE: usize = 3;
/// The sign: all mounts are checked, and the command begins.
const BEGUN: &[u8] = b"1";
/// The sign: the gate was closed, and the command never begins.
const CLOSED: &[u8] = b"0";
/// What is kept of what a failed attempt says.
const SAID_BYTES: u64 = 4096;

/// A file that a started program inherits, at its beginning.
pub(crate) fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("gsv", rustix::fs::MemfdFlags::empty())?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

/// The files of one attempt.
pub(crate) struct Files {
    sign: File,
    /// Standard error until the command begins: a failed attempt leaves nothing in the command's output.
    said: File,
    /// The command's standard error.
    errors: OwnedFd,
}

impl Files {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            sign: memory_file(b"")?,
            said: memory_file(b"")?,
            errors: rustix::io::dup(rustix::stdio::stderr())?,
        })
    }

    /// For [`begin`].
    pub(crate) fn numbers(&self) -> [String; 2] {
        [self.sign.as_raw_fd().to_string(), self.errors.as_raw_fd().to_string()]
    }

    pub(crate) fn start(self, mut command: Command) -> io::Result<Attempt> {
        let child = command.stderr(Stdio::from(self.said.try_clone()?)).spawn()?;
        let Self { sign, said, .. } = self;
        Ok(Attempt { child, sign, said })
    }
}

/// An attempt that was started.
pub(crate) struct Attempt {
    child: Child,
    sign: File,
    said: File,
}

/// How an attempt ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The command ran, or was ended: the exit status is its own.
    Over(u8),
    /// The command never began; why.
    NeverBegan(String),
    /// The gate was closed.
    Closed,
}

impl Attempt {
    pub(crate) fn wait(mut self) -> io::Result<End> {
        let status = self.child.wait()?;
        let (mut sign, mut said) = (Vec::new(), Vec::new());
        self.sign.rewind()?;
        self.sign.take(1).read_to_end(&mut sign)?;
        self.said.rewind()?;
        self.said.take(SAID_BYTES).read_to_end(&mut said)?;
        Ok(end_of(status, &sign, &String::from_utf8_lossy(&said)))
    }
}

fn end_of(status: ExitStatus, sign: &[u8], said: &str) -> End {
    match (status.code(), status.signal()) {
        (Some(_), _) if sign == CLOSED => End::Closed,
        (Some(code), _) if sign != BEGUN => {
            let said = said.trim();
            End::NeverBegan(if said.is_empty() {
                format!("bubblewrap ended with {code} and said nothing")
            } else {
                said.to_owned()
            })
        }
        (Some(code), _) => End::Over(u8::try_from(code).unwrap_or(u8::MAX)),
        // It was ended from outside, so it is not started again.
        (None, Some(signal)) => End::Over(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
        (None, None) => End::Over(u8::MAX),
    }
}

/// Inside: the command begins now. From here on what fails is said on the command's standard error, and the command is not started again.
/// `sign` and `errors`: the numbers of open files.
///
/// # Errors
/// A sentence; the command must not run.
pub(crate) fn begin(sign: &str, errors: &str) -> Result<(), String> {
    rustix::stdio::dup2_stderr(inherited(errors)?).map_err(|error| format!("its start can't be told: {error}"))?;
    tell(sign, BEGUN)
}

/// Inside: the command never begins, because its gate was closed. `sign`: the number of an open file.
///
/// # Errors
/// A sentence.
pub(crate) fn close(sign: &str) -> Result<(), String> {
    tell(sign, CLOSED)
}

fn tell(sign: &str, what: &[u8]) -> Result<(), String> {
    match rustix::io::write(inherited(sign)?, what) {
        Ok(written) if written == what.len() => Ok(()),
        Ok(_) => Err("its start can't be told".into()),
        Err(error) => Err(format!("its start can't be told: {error}")),
    }
}

/// A file that the program outside has opened.
///
/// # Errors
/// A sentence: the text is no number of such a file.
#[allow(unsafe_code, reason = "the files were opened by the program outside")]
pub(crate) fn inherited(number: &str) -> Result<BorrowedFd<'static>, String> {
    let number = number.parse().ok().filter(|number: &i32| *number > 2);
    let number = number.ok_or("the files of its start were not passed on")?;
    // SAFETY: the program outside has passed the number on as an open file, and nothing closes it before this process becomes another.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb20_a_command_that_has_begun_or_was_ended_is_over() {
        let end = |raw, sign| end_of(ExitStatus::from_raw(raw), sign, " bwrap: no\n");
        assert_eq!(end(7 << 8, BEGUN), End::Over(7));
        assert_eq!(end(0, BEGUN), End::Over(0));
        assert_eq!(end(9, BEGUN), End::Over(137));
        for never in [b"", CLOSED] {
            assert_eq!(end(9, never), End::Over(137));
        }
        assert_eq!(end(1 << 8, b""), End::NeverBegan("bwrap: no".into()));
        assert_eq!(end(0, b""), End::NeverBegan("bwrap: no".into()));
        assert_eq!(end(0, CLOSED), End::Closed);
        let silent = end_of(ExitStatus::from_raw(1 << 8), b"", "");
        assert!(matches!(silent, End::NeverBegan(why) if why.contains("ended with 1")));
    }
}
