//! `gsv channel start`: sends settings and secrets to the channel, and waits until it connects or reports why not. A secret comes
//! from a file, from stdin or from a hidden prompt; it is never an argument, and never shown.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use gsv_protocol::methods::{ChannelStart, ChannelStatus};
use gsv_protocol::types::{ChannelAccount, ChannelStartParams, ChannelStatusParams};
use serde_json::{Map, Value, json};

use super::channel_account::{self as account, Standing, has_login};
use super::channel_enable::reach;
use super::channel_login::PATIENCE;
use super::context::Context;
use crate::args::ChannelStart as Args;
use crate::ask;
use crate::clean::visible;
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;
use crate::units::now_ms;

const TOKEN: &str = "token";
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// A platform answers within a second or two, or not at all.
const WATCHED: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(300);

pub async fn run(context: &Context, args: Args) -> Outcome {
    let out = context.out;
    let mut config = settings(out, &args)?;
    let status = ChannelStatusParams {
        channel: args.which.channel.clone(),
        account_id: args.which.account.clone(),
    };
    let at = context.account()?;
    let (mut client, reached) = reach(out, &at, status.clone()).await?;
    if let Some(account) = reached.filter(|account| config.is_empty() && wants_token(account)) {
        client.close().await;
        // The channel's error names the place where its tokens come from.
        if let Some(error) = account.error.filter(|_| ask::is_possible(out)) {
            out.note(&visible(&error));
        }
        let token = ask::secret(out, &format!("Token of {}", status.channel), "keep the current one")?;
        if !token.is_empty() {
            config.insert(TOKEN.to_owned(), Value::String(token));
        }
        // Typing may take minutes, so the start has a connection of its own.
        client = at.connect().await?;
    }
    let params = ChannelStartParams {
        channel: status.channel.clone(),
        account_id: status.account_id.clone(),
        config: (!config.is_empty()).then_some(config),
    };
    client.call_within::<ChannelStart>(params, PATIENCE).await?;
    let began = Instant::now();
    let account = loop {
        let accounts = client.call::<ChannelStatus>(status.clone()).await?.accounts;
        let account = accounts.into_iter().next();
        let connecting = account
            .as_ref()
            .is_some_and(|account| Standing::of(account) == Standing::Connecting);
        if !connecting || began.elapsed() > WATCHED {
            break account;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    client.close().await;
    report(out, &status.channel, account.as_ref())
}

/// Whether the account logs in with a token and has none that works.
fn wants_token(account: &ChannelAccount) -> bool {
    has_login(account) == Some(false) && !account.connected && !account.authenticated
}

fn report(out: Output, channel: &str, found: Option<&ChannelAccount>) -> Outcome {
    let document = json!({ "channel": channel, "account": found });
    let Some(found) = found else {
        out.show(document, |_| {});
        return Err(Failure::later(
            format!("{channel} is started, and does not report its state."),
            "Look again in a moment: `gsv channel status`.",
        ));
    };
    let id = found.account_id.as_str();
    let name = account::name(channel, id);
    let command = |verb| account::command(channel, id, verb);
    let words = match Standing::of(found) {
        Standing::Failing => {
            out.show(document, |_| {});
            let error = found.error.as_deref().unwrap_or_default();
            return Err(Failure::failed(
                format!("{name} does not connect. {error}"),
                format!(
                    "Fix this, then run {}. Details: {}",
                    command("start"),
                    command("status")
                ),
            ));
        }
        Standing::LoggedOut => format!("{name} is started; now log in: {}", command("login")),
        Standing::Connecting => format!("{name} is started and still connecting: {}", command("status")),
        Standing::Connected | Standing::Stopped | Standing::NotSetUp => {
            format!("{name} is {}", account::line(channel, found, Some(&[]), now_ms()))
        }
    };
    out.done(&document, &words);
    Ok(())
}

/// The settings of the flags, with secrets read from the prompt, stdin or a file.
fn settings(out: Output, args: &Args) -> Outcome<Map<String, Value>> {
    let mut config = Map::new();
    let mut from_stdin = args.token_file.as_deref() == Some(Path::new("-"));
    for (key, value) in &args.config {
        let value = if value == "-" {
            if std::mem::replace(&mut from_stdin, true) && !ask::is_possible(out) {
                return Err(Failure::usage(
                    "Two secrets can't both be read from stdin.",
                    "Give one of them with --token-file FILE.",
                ));
            }
            Value::String(given(ask::secret(out, key, "")?, key)?)
        } else if ask::is_secret(key) && !value.is_empty() && value != "null" {
            return Err(Failure::usage(
                format!("`{key}` is a secret, and all users of this machine can read arguments. Nothing was sent."),
                format!("Write `--config {key}=-` and type it or pipe it in, or give a token with --token-file FILE."),
            ));
        } else {
            serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone()))
        };
        insert(&mut config, key, value)?;
    }
    if let Some(path) = &args.token_file {
        let token = if path == Path::new("-") {
            ask::secret(out, TOKEN, "")?
        } else {
            token_of(out, path)?
        };
        insert(&mut config, TOKEN, Value::String(given(token, TOKEN)?))?;
    }
    Ok(config)
}

fn insert(config: &mut Map<String, Value>, key: &str, value: Value) -> Outcome {
    match config.insert(key.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            format!("`{key}` is given twice."),
            "Give each setting once.",
        )),
    }
}

fn given(secret: String, what: &str) -> Outcome<String> {
    if secret.is_empty() {
        return Err(Failure::usage(
            format!("The {what} is empty."),
            "Type it, pipe it in, or use --token-file FILE.",
        ));
    }
    Ok(secret)
}

fn token_of(out: Output, path: &Path) -> Outcome<String> {
    let doing = format!("read {}", path.display());
    let next = "Give a file that contains only the token.";
    let file = File::open(path).or_fail(&doing, next)?;
    let meta = file.metadata().or_fail(&doing, next)?;
    if meta.is_dir() || meta.len() > MAX_FILE_BYTES {
        return Err(Failure::usage(
            format!("{} does not contain a token.", path.display()),
            next,
        ));
    }
    if meta.is_file() && meta.permissions().mode() & 0o077 != 0 {
        out.warn(&format!(
            "other users can read {0}; make it private: `chmod 600 {0}`",
            path.display()
        ));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)
        .or_fail(&doing, next)?;
    ask::check(bytes, &path.display().to_string())
}
