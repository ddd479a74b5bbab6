//! The settings of the local config: their names, the values that they take, and how a secret is shown. Pure.

use std::path::Path;

use gsv_link::Target;

use crate::chat::notify::Notify;
use crate::exit::{Failure, Outcome};
use crate::units::parse_duration;
use crate::update::address::Address;
use crate::update::manifest::Channel;
use crate::update::signature;
use crate::{session_key, suggest};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Url,
    Token,
    Session,
    NodeId,
    NodeToken,
    NodeWorkspace,
    ChatEnter,
    ChatNotify,
    ChatNotifyAfter,
    ChatThoughts,
    UpdateUrl,
    UpdateSigner,
    UpdateChannel,
}

impl Key {
    pub const ALL: [Self; 13] = [
        Self::Url,
        Self::Token,
        Self::Session,
        Self::NodeId,
        Self::NodeToken,
        Self::NodeWorkspace,
        Self::ChatEnter,
        Self::ChatNotify,
        Self::ChatNotifyAfter,
        Self::ChatThoughts,
        Self::UpdateUrl,
        Self::UpdateSigner,
        Self::UpdateChannel,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Token => "token",
            Self::Session => "session",
            Self::NodeId => "node.id",
            Self::NodeToken => "node.token",
            Self::NodeWorkspace => "node.workspace",
            Self::ChatEnter => "chat.enter",
            Self::ChatNotify => "chat.notify",
            Self::ChatNotifyAfter => "chat.notifyAfter",
            Self::ChatThoughts => "chat.thoughts",
            Self::UpdateUrl => "update.url",
            Self::UpdateSigner => "update.key",
            Self::UpdateChannel => "update.channel",
        }
    }

    pub const fn is_secret(self) -> bool {
        matches!(self, Self::Token | Self::NodeToken)
    }

    pub fn parse(name: &str) -> Outcome<Self> {
        let found = Self::ALL.into_iter().find(|key| key.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            let next = match suggest::nearest(name, names) {
                Some(near) => format!("Did you mean `{near}`?"),
                None => format!("The settings are {}.", names.join(", ")),
            };
            Failure::usage(format!("There is no local setting `{name}`."), next)
        })
    }

    /// The table of the file that has the setting, and its name there.
    pub fn place(self) -> (Option<&'static str>, &'static str) {
        match self.name().split_once('.') {
            Some((table, name)) => (Some(table), name),
            None => (None, self.name()),
        }
    }

    /// As `check`, and stricter where files of earlier versions may hold other values.
    pub fn check_new(self, value: &str) -> Outcome {
        self.check(value)?;
        match self {
            Self::Session => session_key::check(value).map_err(|problem| {
                Failure::usage(
                    format!("`{value}` names no conversation: {problem}."),
                    session_key::NEXT,
                )
            }),
            _ => Ok(()),
        }
    }

    pub fn check(self, value: &str) -> Outcome {
        let checked = match self {
            Self::Url => check_url(value),
            Self::Token | Self::NodeToken => {
                let valid = (1..=512).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_graphic());
                or_problem(valid, "a token has 1 to 512 printable characters and no spaces")
            }
            Self::Session => {
                let valid = (1..=512).contains(&value.len()) && !value.chars().any(char::is_control);
                or_problem(valid, "a session key has 1 to 512 characters")
            }
            Self::NodeId => check_node_id(value),
            Self::NodeWorkspace => or_problem(Path::new(value).is_absolute(), "the workspace must be an absolute path"),
            Self::ChatNotify => or_problem(
                Notify::NAMES.contains(&value),
                "it is `bell` (the terminal's bell), `osc9` (a notification of the desktop, where the terminal has them) or `off`",
            ),
            Self::ChatNotifyAfter => or_problem(parse_duration(value).is_ok(), "it is a time, such as 10s or 1m"),
            Self::ChatEnter => or_problem(
                matches!(value, "queue" | "steer"),
                "it is `queue` (a line that is typed during an answer waits for its end) or `steer` (the run gets it at its next step)",
            ),
            Self::ChatThoughts => or_problem(
                matches!(value, "on" | "off"),
                "it is `on` (the chat shows what the model thinks, where its provider sends it) or `off`",
            ),
            Self::UpdateUrl => Address::parse(value).map(drop),
            Self::UpdateSigner => signature::check(value),
            Self::UpdateChannel => or_problem(Channel::parse(value).is_some(), "it is `stable` or `beta`"),
        };
        checked.map_err(|problem| {
            let name = self.name();
            // A secret that is an argument stays in the shell's history.
            let value = if self.is_secret() { "-" } else { "VALUE" };
            let next = format!("Set it: `gsv local-config set {name} {value}`.");
            Failure::usage(format!("`{name}` is not valid: {problem}."), next)
        })
    }
}

fn or_problem(valid: bool, problem: &'static str) -> Result<(), &'static str> {
    if valid { Ok(()) } else { Err(problem) }
}

pub fn check_url(url: &str) -> Result<(), &'static str> {
    if !url.contains("://") || url.len() > 2_048 {
        return Err("the address must begin with ws://, wss://, http:// or https://");
    }
    let parsed = Target::parse(url);
    parsed
        .map(drop)
        .map_err(|_| "it is not like ws://HOST:PORT or https://HOST, without a password")
}

pub fn check_node_id(id: &str) -> Result<(), &'static str> {
    let valid = id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.len() <= 64
        && id != "gsv"
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    or_problem(
        valid,
        "a node's id has 1 to 64 letters, digits, `_`, `.` or `-`, begins with a letter or digit, and is not `gsv`",
    )
}

/// `gsv_admin_ab12cd34ef_…9f3c`; any other secret keeps only its last four characters.
pub fn mask(secret: &str) -> String {
    let count = secret.chars().count();
    let last: String = secret
        .chars()
        .skip(count.saturating_sub(4))
        .filter(|_| count >= 16)
        .collect();
    match secret.splitn(4, '_').collect::<Vec<_>>().as_slice() {
        ["gsv", kind, id, rest] if rest.len() >= 16 => format!("gsv_{kind}_{id}_…{last}"),
        _ => format!("…{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn f4_a_wrong_secret_is_set_again_without_an_argument() {
        for key in Key::ALL.into_iter().filter(|key| key.is_secret()) {
            let next = key.check("").unwrap_err().next;
            assert_eq!(next, format!("Set it: `gsv local-config set {} -`.", key.name()));
        }
        assert!(Key::Url.check("").unwrap_err().next.ends_with("set url VALUE`."));
    }

    #[test]
    fn values_are_checked() {
        for (key, value) in [
            (Key::Url, "localhost:8787"),
            (Key::Url, "ws://"),
            (Key::Url, "wss://me:secret@host/ws"),
            (Key::Token, "with space"),
            (Key::Session, ""),
            (Key::NodeId, "-x"),
            (Key::NodeId, "gsv"),
            (Key::NodeWorkspace, "relative"),
            (Key::UpdateUrl, "http://example.org"),
            (Key::UpdateSigner, "no key"),
            (Key::UpdateChannel, "nightly"),
        ] {
            assert_eq!(key.check(value).unwrap_err().exit, Exit::Usage, "{value}");
        }
    }

    #[test]
    fn s5_secrets_are_masked() {
        let token = format!("gsv_admin_abcdefghij_{}", "0123456789abcdef".repeat(4));
        assert_eq!(mask(&token), "gsv_admin_abcdefghij_…cdef");
        assert_eq!(mask("short"), "…");
    }
}
