//! What a channel's account says of itself, in words: the same in `gsv channel`, `gsv status` and `gsv doctor`. Pure. Texts
//! come from channels' Workers and platforms; what is hidden in them is made visible.

use gsv_protocol::types::{ChannelAccount, DeliveryProblem, DeliveryState};
use serde_json::Value;

use crate::clean::visible;
use crate::units::{duration, time};

pub const DEFAULT_ACCOUNT: &str = "default";
const LONGEST_WORD: usize = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Connected,
    /// By a person.
    Stopped,
    /// A person with a phone in hand has to log in.
    LoggedOut,
    /// Nobody has given it a token.
    NotSetUp,
    /// It says why there is no connection.
    Failing,
    Connecting,
}

impl Standing {
    pub fn of(account: &ChannelAccount) -> Self {
        let started = extra(account, "started") != Some(&Value::Bool(false));
        let by_login = account
            .capabilities
            .as_ref()
            .is_some_and(|capabilities| capabilities.login);
        if account.connected {
            Self::Connected
        } else if started && account.error.is_some() {
            Self::Failing
        } else if !account.authenticated && by_login {
            Self::LoggedOut
        } else if !started && !account.authenticated {
            Self::NotSetUp
        } else if started {
            Self::Connecting
        } else {
            Self::Stopped
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Stopped => "stopped",
            Self::LoggedOut => "not logged in",
            Self::NotSetUp => "not set up",
            Self::Failing => "failing",
            Self::Connecting => "connecting",
        }
    }
}

/// A command about an account, as it is typed.
pub fn command(channel: &str, account_id: &str, verb: &str) -> String {
    if account_id == DEFAULT_ACCOUNT {
        format!("`gsv channel {channel} {verb}`")
    } else {
        format!("`gsv channel {channel} {verb} --account {}`", visible(account_id))
    }
}

/// `whatsapp`, or `whatsapp (work)`.
pub fn name(channel: &str, account_id: &str) -> String {
    if account_id == DEFAULT_ACCOUNT {
        channel.to_owned()
    } else {
        format!("{channel} ({})", visible(account_id))
    }
}

/// As whom it is connected, as the platform knows it.
pub fn identity(account: &ChannelAccount) -> Option<String> {
    let names: Vec<String> = ["phone", "bot", "name"]
        .into_iter()
        .filter_map(|key| extra(account, key)?.as_str())
        .filter(|name| !name.trim().is_empty())
        .map(shown)
        .collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [one, other, ..] => Some(format!("{one} ({other})")),
    }
}

/// Why it is as it is, and what to do: `as +31… for 3 h`, an error, a command.
pub fn why(channel: &str, account: &ChannelAccount, now: u64) -> String {
    let todo = |verb| command(channel, &account.account_id, verb);
    let error = || account.error.as_deref().map(visible).unwrap_or_default();
    match Standing::of(account) {
        Standing::Connected => {
            let mut words = Vec::new();
            words.extend(identity(account).map(|name| format!("as {name}")));
            words.extend(
                account
                    .connected_since
                    .map(|since| format!("for {}", lasting(now.saturating_sub(since)))),
            );
            let words = words.join(" ");
            match (words.is_empty(), error()) {
                (_, error) if error.is_empty() => words,
                (true, error) => error,
                (false, error) => format!("{words}; {error}"),
            }
        }
        Standing::Failing => error(),
        Standing::LoggedOut => todo("login"),
        Standing::NotSetUp | Standing::Stopped => todo("start"),
        Standing::Connecting => String::new(),
    }
}

/// In whole seconds: what goes on is not a matter of less.
fn lasting(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => duration(seconds * 1_000),
    }
}

/// `connected as +31… for 3 h; 2 wait to be sent`: all of an account in one line. `problems` are the channel's, where the gateway
/// knows them.
pub fn line(channel: &str, account: &ChannelAccount, problems: Option<&[DeliveryProblem]>, now: u64) -> String {
    let standing = Standing::of(account);
    let why = why(channel, account, now);
    let gap = match standing {
        _ if why.is_empty() => "",
        Standing::Connected => " ",
        _ => ": ",
    };
    let mut parts = vec![
        format!("{}{gap}{why}", standing.word())
            .trim_end_matches('.')
            .to_owned(),
    ];
    parts.extend(waiting(account));
    parts.extend(lost(account, problems));
    parts.extend(too_late(account).map(|count| format!("{count} came too late to be answered")));
    if account.gap.is_some() {
        parts.push("messages may have been missed".to_owned());
    }
    parts.join("; ")
}

/// What waits, where anything does.
fn waiting(account: &ChannelAccount) -> impl Iterator<Item = String> {
    [
        (account.inbox_waiting, "to be handed over"),
        (account.outbox_waiting, "to be sent"),
    ]
    .into_iter()
    .filter_map(|(count, what)| count.filter(|count| *count > 0).map(|count| (count, what)))
    .map(|(count, what)| format!("{count} {} {what}", if count == 1 { "waits" } else { "wait" }))
}

/// What was not delivered, or may not have been (promises P9): as the gateway keeps it, else as the channel counts it.
pub fn lost(account: &ChannelAccount, problems: Option<&[DeliveryProblem]>) -> Option<String> {
    let Some(problems) = problems else {
        let count = account.undelivered.filter(|count| *count > 0)?;
        return Some(format!("{count} undelivered or unknown"));
    };
    let (mut failed, mut unknown) = (0_u32, 0_u32);
    for problem in problems
        .iter()
        .filter(|problem| problem.account_id == account.account_id)
    {
        match problem.state {
            DeliveryState::Unknown => unknown += 1,
            DeliveryState::Failed => failed += 1,
            DeliveryState::Sent => {}
        }
    }
    let parts: Vec<String> = [(failed, "undelivered"), (unknown, "unknown whether delivered")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// To whom a message was.
pub fn peer(problem: &DeliveryProblem) -> String {
    let Some(peer) = &problem.peer else {
        return String::new();
    };
    let id = shown(&peer.id);
    match peer.name.as_deref().map(shown).filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} ({id})"),
        None => id,
    }
}

/// When messages may have been missed.
pub fn gap(account: &ChannelAccount) -> Option<String> {
    let gap = account.gap.as_ref()?;
    let why = gap.why.as_deref().map(shown);
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    Some(format!(
        "between {} and {} messages may have been missed{why}",
        time(gap.from),
        time(gap.until)
    ))
}

/// How many came too late to be answered.
pub fn too_late(account: &ChannelAccount) -> Option<u64> {
    account.too_late.filter(|count| *count > 0)
}

/// What else the channel tells: plain values, and counters.
pub fn details(account: &ChannelAccount) -> Vec<(String, String)> {
    const TOLD: [&str; 4] = ["started", "phone", "bot", "name"];
    let plain = |value: &Value| match value {
        Value::String(text) => Some(shown(text)),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    account
        .extra
        .iter()
        .flatten()
        .filter(|(key, _)| !TOLD.contains(&key.as_str()))
        .filter_map(|(key, value)| {
            let text = match value {
                Value::Object(fields) => fields
                    .iter()
                    .filter_map(|(key, value)| Some(format!("{} {}", plain(value)?, shown(key))))
                    .collect::<Vec<_>>()
                    .join(", "),
                value => plain(value)?,
            };
            (!text.is_empty()).then(|| (spaced(&shown(key)), text))
        })
        .collect()
}

fn extra<'a>(account: &'a ChannelAccount, key: &str) -> Option<&'a Value> {
    account.extra.as_ref()?.get(key)
}

fn shown(text: &str) -> String {
    crate::width::cut(visible(text).trim(), LONGEST_WORD)
}

/// `restWaiting` as `rest waiting`.
fn spaced(key: &str) -> String {
    let mut out = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push(' ');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn account(more: &Value) -> ChannelAccount {
        let mut value = json!({
            "accountId": "default", "connected": false, "authenticated": false,
            "capabilities": {"peerKinds": ["dm"], "media": true, "reactions": true, "typing": true, "replies": true,
                "edits": false, "buttons": false, "login": true, "maxTextChars": 4000},
        });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_account_in_one_line() {
        let now = 1_795_246_924_000_u64;
        let lines: Vec<String> = [
            json!({"connected": true, "authenticated": true, "connectedSince": now - 11_100_000,
                "extra": {"phone": "+31612345678", "name": "Anna\u{202e}", "started": true}}),
            json!({"connected": true, "authenticated": true, "error": "The bot may not read.", "inboxWaiting": 1, "outboxWaiting": 3,
                "undelivered": 2, "extra": {"bot": "helper"}}),
            json!({"extra": {"started": true}}),
            json!({"extra": {"started": false}}),
            json!({"error": "Log in again: gsv channel whatsapp login", "extra": {"started": true}}),
            json!({"authenticated": true, "extra": {"started": false}, "accountId": "work"}),
            json!({"authenticated": true}),
            json!({"capabilities": null, "extra": {"started": false}, "error": "There is no bot token."}),
            json!({"connected": true, "authenticated": true}),
        ]
        .iter()
        .map(|more| {
            let mut more = more.clone();
            let bare = more.get("capabilities").is_some();
            more.as_object_mut().unwrap().remove("capabilities");
            let mut account = account(&more);
            if bare {
                account.capabilities = None;
            }
            line("whatsapp", &account, None, now)
        })
        .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        connected as +31612345678 (Anna[U+202E]) for 3 h 5 min
        connected as helper; The bot may not read; 1 waits to be handed over; 3 wait to be sent; 2 undelivered or unknown
        not logged in: `gsv channel whatsapp login`
        not logged in: `gsv channel whatsapp login`
        failing: Log in again: gsv channel whatsapp login
        stopped: `gsv channel whatsapp start --account work`
        connecting
        not set up: `gsv channel whatsapp start`
        connected
        ");
    }

    #[test]
    fn p9_what_failed_and_what_nobody_knows_is_told_apart() {
        let problem = |account: &str, state: &str| -> DeliveryProblem {
            serde_json::from_value(json!({"deliveryId": "d", "accountId": account, "state": state, "at": 1,
                "peer": {"kind": "dm", "id": "31600@lid", "name": "Anna\u{202e}"}}))
            .unwrap()
        };
        let account = account(&json!({"connected": true, "undelivered": 9}));
        assert_eq!(lost(&account, None).unwrap(), "9 undelivered or unknown");
        assert_eq!(lost(&account, Some(&[problem("work", "failed")])), None);
        let problems = ["failed", "unknown", "unknown"].map(|state| problem("default", state));
        assert_eq!(
            line("x", &account, Some(&problems), 0),
            "connected; 1 undelivered, 2 unknown whether delivered"
        );
        assert_eq!(peer(&problems[0]), "Anna[U+202E] (31600@lid)");
    }

    #[test]
    fn w21_a_gap_and_what_was_left_out_are_told() {
        let now = 1_795_246_924_000_u64;
        let account = account(&json!({
            "gap": {"from": now - 60_000, "until": now, "why": "another program used the linked device"},
            "tooLate": 3, "extra": {"ignored": {"status": 2, "ownEcho": 5}, "selfChat": false, "restWaiting": 0, "nested": {"a": {}}, "list": [1],
        }}));
        assert_eq!(
            gap(&account).unwrap(),
            "between 2026-11-21 07:41:04 UTC and 2026-11-21 07:42:04 UTC messages may have been missed (another program used the linked device)"
        );
        assert_eq!(too_late(&account), Some(3));
        let details: Vec<String> = details(&account)
            .into_iter()
            .map(|(key, value)| format!("{key} {value}"))
            .collect();
        assert_eq!(
            details,
            ["ignored 5 ownEcho, 2 status", "rest waiting 0", "self chat false"]
        );
    }
}
