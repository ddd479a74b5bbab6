//! One file per noun. A command reads its arguments, asks the gateway or this machine, and hands what it got to `output`.

pub mod agent;
pub mod agent_import;
pub mod audit;
pub mod channel;
pub mod channel_here;
pub mod channel_login;
pub mod channel_start;
pub mod channel_state;
pub mod chat;
pub mod config;
pub mod doctor;
pub mod export;
pub mod gateway;
pub mod local_config;
mod login_view;
pub mod node;
pub mod pair;
pub mod prompt;
pub mod search;
pub mod session;
pub mod skills;
pub mod status;
pub mod token;
pub mod tools;
pub mod transcript;
pub mod versions;
pub mod workspace;

use std::io::{self, IsTerminal, Read};

use crate::args::Global;
use crate::client::{Account, Client};
use crate::config::{Config, Key};
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;

/// Larger input is a mistake: nothing on the wire takes it.
const MAX_INPUT_BYTES: u64 = 4 * 1024 * 1024;

/// What every command has at hand.
pub struct Context {
    pub global: Global,
    pub out: Output,
}

impl Context {
    pub fn config() -> Outcome<Config> {
        Config::load()
    }

    pub fn account(&self) -> Outcome<Account> {
        Account::find(&self.global, &Self::config()?)
    }

    pub async fn connect(&self) -> Outcome<Client> {
        self.account()?.connect().await
    }

    /// The session that a command is about: named, or the local config's, or the command line's own.
    pub fn session(key: Option<String>) -> Outcome<String> {
        if let Some(key) = key {
            return Ok(key);
        }
        Ok(Self::config()?
            .get(Key::Session)
            .unwrap_or(crate::client::DEFAULT_SESSION)
            .to_owned())
    }
}

/// All of stdin. On a terminal, says that it waits.
fn read_stdin(out: Output, what: &str) -> Outcome<String> {
    let input = io::stdin();
    if input.is_terminal() {
        out.aside(&format!("Type {what}, then Ctrl-D on a line of its own."));
    }
    let mut bytes = Vec::new();
    input
        .lock()
        .take(MAX_INPUT_BYTES + 1)
        .read_to_end(&mut bytes)
        .or_fail("read stdin", "Try again.")?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(Failure::usage(
            "What came on stdin is too large.",
            "Send less, or put it into a file of the workspace.",
        ));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::usage(
            "What came on stdin is not UTF-8 text.",
            "Convert it, for example with `iconv`.",
        )
    })
}

/// A value from the command line, or from stdin when it is `-`: without the line end that `echo` adds.
fn value_or_stdin(value: String, out: Output) -> Outcome<String> {
    if value != "-" {
        return Ok(value);
    }
    let text = read_stdin(out, "the value")?;
    Ok(text
        .strip_suffix('\n')
        .map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text))
        .to_owned())
}
