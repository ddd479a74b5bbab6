//! Questions to a person at the terminal: yes or no, and secrets, which are never shown. Without a terminal nothing is assumed.

use std::io::{self, BufRead, IsTerminal, Read, Stdin};

use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;

const MAX_SECRET_BYTES: usize = 8 * 1024;

/// Whether there is a person to ask.
pub fn is_possible(out: Output) -> bool {
    !out.json && io::stdin().is_terminal()
}

/// The answer in lower case. Empty when stdin can't be read.
pub fn answer(out: Output, question: &str) -> String {
    out.note(question);
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    answer.trim().to_lowercase()
}

/// Returns only after a yes. `purpose` completes "re-run with --yes to ..."; `unchanged` says that nothing was done.
pub fn confirm(out: Output, question: &str, purpose: &str, unchanged: &str) -> Outcome {
    if !is_possible(out) {
        return Err(Failure::usage(
            format!("Not a terminal: re-run with --yes to {purpose}."),
            "",
        ));
    }
    match answer(out, &format!("{question} [y = yes, anything else stops]")).as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(declined(unchanged)),
    }
}

/// The person has said no, which is an answer and no interrupt.
pub fn declined(unchanged: &str) -> Failure {
    Failure::new(Exit::Failed, unchanged, "Run it again when you are ready.")
}

/// Whether a setting of this name is a secret.
pub fn is_secret(key: &str) -> bool {
    let mut key = key.to_ascii_lowercase();
    key.retain(|c| c.is_ascii_alphanumeric());
    let words = ["token", "secret", "passw", "apikey", "privatekey", "credential"];
    words.iter().any(|word| key.contains(word))
}

/// A secret without its line end: typed without being shown, or all of stdin if that is not a terminal. `if_empty` tells the
/// person what an empty secret means.
pub fn secret(out: Output, what: &str, if_empty: &str) -> Outcome<String> {
    let input = io::stdin();
    if !input.is_terminal() {
        if !out.json {
            out.aside(&format!("{what}: read from stdin"));
        }
        let mut bytes = Vec::new();
        let read = input.lock().take(MAX_SECRET_BYTES as u64 + 1).read_to_end(&mut bytes);
        read.or_fail("read stdin", "Try again.")?;
        return check(bytes, what);
    }
    let hint = if if_empty.is_empty() { "" } else { "; Enter alone: " };
    // Hidden first: nothing that is typed at the prompt may be shown.
    let hidden = Hidden::from(&input).or_fail("hide what is typed", "Pipe it in, or use a file.")?;
    out.prompt(&format!("{what} (it is not shown{hint}{if_empty}): "));
    let typed = typed(&input);
    drop(hidden);
    out.note("");
    check(typed?, what)
}

/// The bytes of a secret as text.
pub fn check(bytes: Vec<u8>, what: &str) -> Outcome<String> {
    let wrong = |why: &str| Failure::usage(format!("{what}: {why}."), "Give only the secret, as you received it.");
    if bytes.len() > MAX_SECRET_BYTES {
        return Err(wrong("the secret is too long"));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("the secret is not text"))?;
    let text = text.trim();
    if text.chars().any(char::is_control) {
        return Err(wrong("the secret has more than one line, or control characters"));
    }
    Ok(text.to_owned())
}

/// Reads key by key: nothing is echoed, and Ctrl-C is a key, so that the terminal is always restored.
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
                // One character may have several bytes.
                while line.pop().is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {}
            }
            byte if line.len() <= MAX_SECRET_BYTES => line.push(byte),
            _ => {}
        }
    }
    Ok(line)
}

/// Until it is dropped, the terminal shows nothing of what is typed.
pub struct Hidden {
    input: Stdin,
    before: Termios,
}

impl Hidden {
    /// Every key can be read at once, also Ctrl-C.
    fn from(input: &Stdin) -> io::Result<Self> {
        Self::with(input, LocalModes::empty(), LocalModes::ISIG, InputModes::empty())
    }

    /// Keys wait unchanged for the next reader of the terminal. Ctrl-C still interrupts, and leaves the waiting keys (F43).
    pub fn waiting() -> Outcome<Self> {
        let hidden = Self::with(&io::stdin(), LocalModes::NOFLSH, LocalModes::empty(), InputModes::ICRNL);
        hidden.or_fail(
            "hide what is typed during an answer",
            "Send one message: `gsv chat MESSAGE`.",
        )
    }

    fn with(input: &Stdin, more: LocalModes, local: LocalModes, translations: InputModes) -> io::Result<Self> {
        let before = tcgetattr(input)?;
        let mut modes = before.clone();
        modes.local_modes.insert(more);
        modes.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | local);
        modes.input_modes.remove(translations);
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
        // A terminal that is gone needs nothing.
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

    #[test]
    fn s5_secrets_are_recognized_by_name() {
        for key in [
            "token",
            "botToken",
            "webhook_secret",
            "API-Key",
            "Password",
            "private_key",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["selfChat", "apiBase", "callbackUrl", "keyboard"] {
            assert!(!is_secret(key), "{key}");
        }
    }
}
