//! What every command needs: the options, the output, the gateway, stdin, and a runtime to wait in.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use gsv_protocol::Method;
use gsv_protocol::types::SessionKey;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::args::Global;
use crate::ask;
use crate::client::{Account, Client, DEFAULT_SESSION};
use crate::config::{Config, Key};
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;

/// No method of the contract takes more.
const MAX_INPUT_BYTES: u64 = 4 * 1024 * 1024;

pub struct Context {
    pub global: Global,
    pub out: Output,
}

impl Context {
    pub fn account(&self) -> Outcome<Account> {
        Account::find(&self.global, &Config::load()?)
    }

    pub async fn connect(&self) -> Outcome<Client> {
        self.account()?.connect().await
    }

    /// One request on a connection of its own.
    pub async fn ask<M: Method>(&self, params: M::Params) -> Outcome<M::Result> {
        let client = self.connect().await?;
        let result = client.call::<M>(params).await?;
        client.close().await;
        Ok(result)
    }

    /// [`Context::change`] of something that may take as long as `patience`.
    pub async fn change_within<M: Method>(
        &self,
        params: M::Params,
        patience: Duration,
        words: impl FnOnce(&M::Result) -> String,
    ) -> Outcome {
        let client = self.connect().await?;
        let result = client.call_within::<M>(params, patience).await?;
        client.close().await;
        self.out.done(&result, &words(&result));
        Ok(())
    }

    /// One request, and its result: as JSON with `--json`, else as `plain` prints it.
    pub async fn show<M: Method>(&self, params: M::Params, plain: impl FnOnce(M::Result)) -> Outcome {
        let result = self.ask::<M>(params).await?;
        self.out.show(result, plain);
        Ok(())
    }

    /// One request that changes something, and its result: as JSON with `--json`, else in `words` on stderr.
    pub async fn change<M: Method>(&self, params: M::Params, words: impl FnOnce(&M::Result) -> String) -> Outcome {
        let result = self.ask::<M>(params).await?;
        self.out.done(&result, &words(&result));
        Ok(())
    }

    /// The conversation of a command: the named one, or the local config's, or the command line's own.
    pub fn session(key: Option<SessionKey>) -> Outcome<SessionKey> {
        match key {
            Some(key) => Ok(key),
            None => Ok(SessionKey::from(
                Config::load()?.get(Key::Session).unwrap_or(DEFAULT_SESSION),
            )),
        }
    }

    /// All of stdin. On a terminal, asks for `what` first.
    pub fn read_stdin(&self, what: &str) -> Outcome<String> {
        let input = io::stdin();
        if input.is_terminal() {
            self.out
                .aside(&format!("Type {what}, then press Ctrl-D on an empty line."));
        }
        let mut bytes = Vec::new();
        let read = input.lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes);
        read.or_fail("read stdin", "Try again.")?;
        if bytes.len() as u64 > MAX_INPUT_BYTES {
            return Err(Failure::usage(
                "The input on stdin is too large.",
                "Send at most 4 MiB, or put it into a file of the workspace.",
            ));
        }
        let convert = "Convert it, for example with `iconv`.";
        String::from_utf8(bytes).map_err(|_| Failure::usage("The input on stdin is not UTF-8 text.", convert))
    }

    /// The value of a setting, or stdin when it is `-`: without the line end that `echo` adds. A secret is typed without
    /// being shown. `command` is what sets it.
    pub fn value_or_stdin(&self, command: &str, name: &str, value: String) -> Outcome<String> {
        if value != "-" {
            // Numbers and switches, such as a limit of tokens, are no secrets.
            let is_plain =
                serde_json::from_str::<Value>(&value).is_ok_and(|value| !value.is_string() && !value.is_object());
            if ask::is_secret(name) && !is_plain {
                self.out.warn(&format!(
                    "a secret that is an argument stays in the shell's history, and other users can read it while the command runs. Next time: `{command} {name} -`"
                ));
            }
            return Ok(value);
        }
        if ask::is_possible(self.out) && ask::is_secret(name) {
            return ask::secret(self.out, name, "");
        }
        let text = self.read_stdin("the value")?;
        let line = text
            .strip_suffix('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line));
        Ok(line.unwrap_or(&text).to_owned())
    }
}

/// Runs a command that waits for a network or a timer, on this one thread.
pub fn block_on(command: impl Future<Output = Outcome>) -> Outcome {
    run_on(Builder::new_current_thread().enable_all().build(), command)
}

pub fn run_on(runtime: io::Result<Runtime>, command: impl Future<Output = Outcome>) -> Outcome {
    let runtime = runtime.map_err(|error| {
        Failure::new(
            Exit::Bug,
            format!("Could not start the runtime: {error}."),
            "Check the limits of this process (`ulimit -a`).",
        )
    })?;
    runtime.block_on(command)
}
