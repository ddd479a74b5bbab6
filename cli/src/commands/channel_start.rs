//! `gsv channel start`: settings and secrets go to the channel, then it is watched until it is clear whether it connects. A
//! secret comes from a file, from stdin or from a hidden prompt; it is never an argument, and never shown.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use gsv_protocol::methods::{ChannelStart, ChannelStatus};
use gsv_protocol::types::{ChannelAccount, ChannelStartParams, ChannelStatusParams};
use serde_json::{Map, Value, json};

use super::Context;
use super::channel_here::Reached;
use super::channel_state::{self as state, Standing};
use crate::args::ChannelStart as Args;
use crate::ask;
use crate::clean::visible;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;
use crate::units::now_ms;

const TOKEN: &str = "token";
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// A platform is reached in a second or two, or not at all.
const WATCHED: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(300);

pub async fn run(context: &Context, args: Args) -> Outcome {
    let out = context.out;
    let channel = args.which.channel.clone();
    let status = ChannelStatusParams {
        channel: channel.clone(),
        account_id: args.which.account.clone(),
    };
    let mut config = settings(out, &args)?;
    let at = context.account()?;
    let reached = Reached::channel(context, &at, status.clone()).await?;
    let mut client = reached.client;
    let unknown = reached.account.filter(wants_token).filter(|_| config.is_empty());
    if let Some(account) = unknown {
        client.close().await;
        // It knows where its tokens come from.
        if let Some(error) = account.error.filter(|_| ask::somebody(out)) {
            out.note(&visible(&error));
        }
        let token = ask::secret(out, &format!("Token of {channel}"), "the one that it has")?;
        if !token.is_empty() {
            config.insert(TOKEN.to_owned(), Value::String(token));
        }
        // Somebody may have looked for it for a while: a connection of its own.
        client = at.connect().await?;
    }
    let params = ChannelStartParams {
        channel: channel.clone(),
        account_id: args.which.account.clone(),
        config: (!config.is_empty()).then_some(config),
    };
    client.call::<ChannelStart>(params).await?;
    let began = Instant::now();
    let account = loop {
        let accounts = client.call::<ChannelStatus>(status.clone()).await?.accounts;
        let account = accounts.into_iter().next();
        let settled = account
            .as_ref()
            .is_none_or(|account| Standing::of(account) != Standing::Connecting);
        if settled || began.elapsed() > WATCHED {
            break account;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    client.close().await;
    tell(out, &channel, account.as_ref())
}

/// It is let in with a token, and has none that works.
fn wants_token(account: &ChannelAccount) -> bool {
    let by_token = account
        .capabilities
        .as_ref()
        .is_some_and(|capabilities| !capabilities.login);
    by_token && !account.connected && !account.authenticated
}

fn tell(out: Output, channel: &str, account: Option<&ChannelAccount>) -> Outcome {
    if out.json {
        out.json_document(&json!({ "channel": channel, "account": account }));
    }
    let Some(account) = account else {
        return Err(Failure::new(
            Exit::TryLater,
            format!("{channel} is started, and says nothing of itself."),
            "Look in a moment: `gsv channel status`.",
        ));
    };
    let id = account.account_id.as_str();
    let name = state::name(channel, id);
    let say = |text: String| {
        if !out.json {
            out.aside(&text);
        }
    };
    match Standing::of(account) {
        Standing::Failing => {
            let error = account.error.as_deref().unwrap_or_default();
            return Err(Failure::failed(
                format!("{name} does not connect. {error}"),
                format!(
                    "Mend that, then run {} again; {} tells more.",
                    state::command(channel, id, "start"),
                    state::command(channel, id, "status")
                ),
            ));
        }
        Standing::LoggedOut => say(format!(
            "{name} is started; now log in: {}",
            state::command(channel, id, "login")
        )),
        Standing::Connecting => say(format!(
            "{name} is started, and still connecting: {}",
            state::command(channel, id, "status")
        )),
        Standing::Connected | Standing::Stopped | Standing::NotSetUp => {
            say(format!(
                "{name} is {}",
                state::line(channel, account, Some(&[]), now_ms())
            ));
        }
    }
    Ok(())
}

/// What was given with flags, secrets read from where they are.
fn settings(out: Output, args: &Args) -> Outcome<Map<String, Value>> {
    let mut config = Map::new();
    let mut from_stdin = args.token_file.as_deref() == Some(Path::new("-"));
    for (key, value) in &args.config {
        let value = if value == "-" {
            if std::mem::replace(&mut from_stdin, true) && !ask::somebody(out) {
                return Err(Failure::usage(
                    "Two secrets can't both be read from stdin.",
                    "Give one of them with --token-file FILE.",
                ));
            }
            Value::String(given(ask::secret(out, key, "")?, key)?)
        } else if is_secret(key) && !value.is_empty() && value != "null" {
            return Err(Failure::usage(
                format!("`{key}` is a secret, and everybody on this machine can read arguments. Nothing was sent."),
                format!(
                    "Write `--config {key}=-` and type it or pipe it in; a token also comes with --token-file FILE."
                ),
            ));
        } else {
            serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone()))
        };
        if config.insert(key.clone(), value).is_some() {
            return Err(Failure::usage(
                format!("`{key}` is given twice."),
                "Give each setting once.",
            ));
        }
    }
    if let Some(path) = &args.token_file {
        let token = if path == Path::new("-") {
            ask::secret(out, TOKEN, "")?
        } else {
            token_of(out, path)?
        };
        if config
            .insert(TOKEN.to_owned(), Value::String(given(token, TOKEN)?))
            .is_some()
        {
            return Err(Failure::usage("The token is given twice.", "Give it once."));
        }
    }
    Ok(config)
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

fn is_secret(key: &str) -> bool {
    const WORDS: [&str; 7] = [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "privatekey",
        "credential",
    ];
    let key: String = key
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    WORDS.iter().any(|word| key.contains(word))
}

fn token_of(out: Output, path: &Path) -> Outcome<String> {
    let doing = format!("read {}", path.display());
    let next = "Give the file that holds the token alone.";
    let file = File::open(path).or_fail(&doing, next)?;
    let meta = file.metadata().or_fail(&doing, next)?;
    if meta.is_dir() || meta.len() > MAX_FILE_BYTES {
        return Err(Failure::usage(format!("{} holds no token.", path.display()), next));
    }
    if meta.is_file() && meta.permissions().mode() & 0o077 != 0 {
        out.warn(&format!(
            "others on this machine may read {0}; `chmod 600 {0}` keeps it yours",
            path.display()
        ));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)
        .or_fail(&doing, next)?;
    ask::check(bytes, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_secrets_are_known_by_their_names() {
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
