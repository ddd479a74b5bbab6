//! Questions to a person at the terminal: yes or no, and secrets, which are never shown. Where nobody can answer, nothing is
//! assumed.

use std::io::{self, BufRead, IsTerminal, Read, Stdin};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;

const MAX_SECRET_BYTES: usize = 8 * 1024;

/// Whether somebody can be asked.
pub fn somebody(out: Output) -> bool {
    !out.json && io::stdin().is_terminal()
}

/// Goes on only after a yes. `nobody` is what is said where nobody can be asked, `nothing` what has not been done after a no.
pub fn confirm(out: Output, question: &str, nobody: Failure, nothing: &str) -> Outcome {
    if !somebody(out) {
        return Err(nobody);
    }
    out.note(&format!("{question} [y = yes, anything else stops]"));
    let mut answer = String::new();
    // What can't be read is no yes.
    let _ = io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(
            Exit::Interrupted,
            nothing,
            "Run it again when you are ready.",
        )),
    }
}

/// A secret: typed without being shown, or all of stdin where that is no terminal. Without the line end; may be empty, which means
/// what `if_empty` says.
pub fn secret(out: Output, what: &str, if_empty: &str) -> Outcome<String> {
    let input = io::stdin();
    let text = if input.is_terminal() {
        let hint = if if_empty.is_empty() {
            String::new()
        } else {
            format!("; Enter alone: {if_empty}")
        };
        // Hidden first: nothing that is typed at the prompt may be shown.
        let hidden = Hidden::from(&input).or_fail("hide what is typed", "Pipe it in, or use a file.")?;
        out.prompt(&format!("{what} (it is not shown{hint}): "));
        let typed = typed(&input);
        drop(hidden);
        out.note("");
        typed?
    } else {
        if !out.json {
            out.aside(&format!("{what}: read from stdin"));
        }
        let mut bytes = Vec::new();
        input
            .lock()
            .take(MAX_SECRET_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .or_fail("read stdin", "Try again.")?;
        bytes
    };
    check(text, what)
}

/// The bytes of a secret as text.
pub fn check(bytes: Vec<u8>, what: &str) -> Outcome<String> {
    let wrong = |why: &str| {
        Failure::usage(
            format!("{what}: {why}."),
            "Give the secret alone, as it was given to you.",
        )
    };
    if bytes.len() > MAX_SECRET_BYTES {
        return Err(wrong("this is too long"));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("this is not text"))?;
    let text = text.trim();
    if text.chars().any(char::is_control) {
        return Err(wrong("this has more than one line, or control characters"));
    }
    Ok(text.to_owned())
}

/// Key by key: nothing is echoed, and Ctrl-C comes as a key, so that the terminal is always put back.
fn typed(input: &Stdin) -> Outcome<Vec<u8>> {
    const INTERRUPT: u8 = 3;
    const END: u8 = 4;
    const BACKSPACE: [u8; 2] = [8, 127];
    const CLEAR: u8 = 21;
    let mut line = Vec::new();
    for byte in input.lock().bytes() {
        match byte.or_fail("read the terminal", "Pipe it in, or use a file.")? {
            b'\r' | b'\n' | END => return Ok(line),
            INTERRUPT => return Err(Failure::interrupted()),
            CLEAR => line.clear(),
            byte if BACKSPACE.contains(&byte) => {
                // A whole character, however many bytes it has.
                while line.pop().is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {}
            }
            byte if line.len() <= MAX_SECRET_BYTES => line.push(byte),
            _ => {}
        }
    }
    Ok(line)
}

/// As long as it lives, the terminal shows nothing of what is typed.
struct Hidden {
    input: Stdin,
    before: Termios,
}

impl Hidden {
    fn from(input: &Stdin) -> io::Result<Self> {
        let before = tcgetattr(input)?;
        let mut modes = before.clone();
        modes
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(input, OptionalActions::Now, &modes)?;
        Ok(Self {
            input: io::stdin(),
            before,
        })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = tcsetattr(&self.input, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_a_secret_is_one_line_and_is_not_repeated_in_an_error() {
        assert_eq!(check(b" abc.def\r\n".to_vec(), "token").unwrap(), "abc.def");
        assert_eq!(check(Vec::new(), "token").unwrap(), "");
        for wrong in [
            &b"one\ntwo"[..],
            b"\xff\xfe",
            b"a\x1b[2Jb",
            &[b'x'; MAX_SECRET_BYTES + 1],
        ] {
            let failure = check(wrong.to_vec(), "token").unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(!format!("{failure:?}").contains("two") && !format!("{failure:?}").contains("xxx"));
        }
    }
}
