//! The state of a channel's account in words: the same in `gsv channel`, `gsv status` and `gsv doctor`. Pure. Texts come from
//! channels and platforms: hidden characters are made visible.

use gsv_protocol::types::{ChannelAccount, DeliveryProblem, DeliveryState};
use serde_json::Value;

use crate::clean::visible;
use crate::units::{in_seconds, time};
use crate::width::cut;

pub const DEFAULT_ACCOUNT: &str = "default";
const TEXT_COLUMNS: usize = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Connected,
    /// By a person.
    Stopped,
    /// A person with a phone has to log in.
    LoggedOut,
    /// It was never given a token.
    NotSetUp,
    /// It reports why there is no connection.
    Failing,
    Connecting,
}

impl Standing {
    pub fn of(account: &ChannelAccount) -> Self {
        let started = is_started(account);
        if account.connected {
            Self::Connected
        } else if started && account.error.is_some() {
            Self::Failing
        } else if !account.authenticated && has_login(account) == Some(true) {
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

/// Whether a person wants the account to be connected. A channel that does not say is started.
fn is_started(account: &ChannelAccount) -> bool {
    extra(account, "started") != Some(&Value::Bool(false))
}

/// Whether the account has neither a login nor a token, and was not started: nothing is wrong with it.
pub fn is_unused(account: &ChannelAccount) -> bool {
    match Standing::of(account) {
        Standing::NotSetUp => true,
        Standing::LoggedOut => !is_started(account),
        _ => false,
    }
}

/// Whether the account logs in with a phone, and not with a token. Absent: the channel does not say.
pub fn has_login(account: &ChannelAccount) -> Option<bool> {
    account.capabilities.as_ref().map(|capabilities| capabilities.login)
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

/// The account's identity on the platform.
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

/// The reason of the state and what to do: `as +31… for 3 h`, an error, a command.
pub fn reason(channel: &str, account: &ChannelAccount, now: u64) -> String {
    let todo = |verb| command(channel, &account.account_id, verb);
    let error = account.error.as_deref().map(visible).unwrap_or_default();
    match Standing::of(account) {
        Standing::Connected => {
            let name = identity(account).map(|name| format!("as {name}"));
            let since = account
                .connected_since
                .map(|since| format!("for {}", in_seconds(now.saturating_sub(since))));
            let words: Vec<String> = [name, since].into_iter().flatten().collect();
            let parts = [words.join(" "), error];
            parts
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("; ")
        }
        Standing::Failing => error,
        Standing::LoggedOut => todo("login"),
        Standing::NotSetUp | Standing::Stopped => todo("start"),
        Standing::Connecting => String::new(),
    }
}

/// An account in one line: `connected as +31… for 3 h; 2 waiting to be sent`. `problems` are the channel's, if the gateway
/// keeps them.
pub fn line(channel: &str, account: &ChannelAccount, problems: Option<&[DeliveryProblem]>, now: u64) -> String {
    let standing = Standing::of(account);
    let reason = reason(channel, account, now);
    let gap = match standing {
        _ if reason.is_empty() => "",
        Standing::Connected => " ",
        _ => ": ",
    };
    let state = format!("{}{gap}{reason}", standing.word());
    let waiting = |count: Option<u64>, what: &str| positive(count).map(|count| format!("{count} waiting {what}"));
    let parts = [
        Some(state.trim_end_matches('.').to_owned()),
        waiting(account.inbox_waiting, "for the agent"),
        waiting(account.outbox_waiting, "to be sent"),
        lost(account, problems),
        too_late(account).map(|count| format!("{count} too old to be answered")),
        account
            .gap
            .is_some()
            .then(|| "messages may have been missed".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn positive(count: Option<u64>) -> Option<u64> {
    count.filter(|count| *count > 0)
}

/// Messages that failed or have an unknown outcome (promises P9): as the gateway keeps them, else as the channel counts them.
pub fn lost(account: &ChannelAccount, problems: Option<&[DeliveryProblem]>) -> Option<String> {
    let Some(problems) = problems else {
        return positive(account.undelivered).map(|count| format!("{count} undelivered or unknown"));
    };
    let count = |state: DeliveryState| {
        let mine = |problem: &&DeliveryProblem| problem.account_id == account.account_id && problem.state == state;
        problems.iter().filter(mine).count()
    };
    let counts = [
        (count(DeliveryState::Failed), "undelivered"),
        (count(DeliveryState::Unknown), "with unknown outcome"),
    ];
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = some.map(|(count, what)| format!("{count} {what}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The recipient of a message.
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
    let reason = gap.why.as_deref().map(|why| format!(" ({})", shown(why)));
    Some(format!(
        "between {} and {} messages may have been missed{}",
        time(gap.from),
        time(gap.until),
        reason.unwrap_or_default()
    ))
}

/// How many messages came too late to be answered.
pub fn too_late(account: &ChannelAccount) -> Option<u64> {
    positive(account.too_late)
}

/// The channel's other plain values and counters.
pub fn details(account: &ChannelAccount) -> Vec<(String, String)> {
    const SHOWN_ABOVE: [&str; 4] = ["started", "phone", "bot", "name"];
    let plain = |value: &Value| match value {
        Value::String(text) => Some(shown(text)),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let counter = |(key, value): (&String, &Value)| Some(format!("{} {}", plain(value)?, shown(key)));
    let others = account
        .extra
        .iter()
        .flatten()
        .filter(|(key, _)| !SHOWN_ABOVE.contains(&key.as_str()));
    let details = others.filter_map(|(key, value)| {
        let text = match value {
            Value::Object(fields) => fields.iter().filter_map(counter).collect::<Vec<_>>().join(", "),
            value => plain(value)?,
        };
        Some((spaced(&shown(key)), text))
    });
    details.filter(|(_, text)| !text.is_empty()).collect()
}

fn extra<'a>(account: &'a ChannelAccount, key: &str) -> Option<&'a Value> {
    account.extra.as_ref()?.get(key)
}

fn shown(text: &str) -> String {
    cut(visible(text).trim(), TEXT_COLUMNS)
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
    fn an_account_is_unused_without_a_start_and_a_login() {
        let unused = |more: &Value| is_unused(&account(more));
        let mut bot = account(&json!({"extra": {"started": false}}));
        bot.capabilities = None;
        assert!(is_unused(&bot), "a bot without a token");
        assert!(
            unused(&json!({"extra": {"started": false}})),
            "a phone that was never linked"
        );
        // WhatsApp ends a login from the phone: the account is still started.
        assert!(!unused(&json!({"extra": {"started": true}})));
        assert!(!unused(&json!({"extra": {}})));
        assert!(!unused(&json!({"authenticated": true, "extra": {"started": false}})));
        assert!(!unused(&json!({"error": "It broke.", "extra": {"started": true}})));
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
        connected as helper; The bot may not read; 1 waiting for the agent; 3 waiting to be sent; 2 undelivered or unknown
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
    fn p9_failed_and_unknown_deliveries_are_counted_separately() {
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
            "connected; 1 undelivered, 2 with unknown outcome"
        );
        assert_eq!(peer(&problems[0]), "Anna[U+202E] (31600@lid)");
    }

    #[test]
    fn w21_a_gap_and_late_messages_are_shown() {
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
