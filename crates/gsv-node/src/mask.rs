//! Masks secrets: fields by their names, known values, and words with the shape of well-known tokens. May mask too much; does
//! not interpret the text.

use gsv_protocol::HIDDEN;
use serde_json::Value;

/// Without `_` and `-`, as they are compared.
const NAMES: [&str; 11] = [
    "token",
    "password",
    "passwd",
    "secret",
    "authorization",
    "apikey",
    "cookie",
    "bearer",
    "private",
    "credential",
    "accesskey",
];
/// These are secret as whole names only: `sessionKey` names a conversation.
const WHOLE_NAMES: [&str; 2] = ["qr", "session"];
const PREFIXES: [&str; 8] = ["gsv_", "sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "xoxp-", "AKIA"];
/// Shorter words are names like `gsv_node`, not tokens.
const SHORTEST: usize = 16;

/// The secrets that this process knows.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    values: Vec<String>,
}

impl Mask {
    /// Values shorter than 4 bytes would hide everything and protect nothing.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        Self {
            values: values.into_iter().filter(|value| value.len() >= 4).collect(),
        }
    }

    /// Whether a field of this name is hidden whatever it holds.
    pub fn hides(name: &str) -> bool {
        let name = name.to_ascii_lowercase().replace(['_', '-'], "");
        WHOLE_NAMES.contains(&name.as_str()) || NAMES.iter().any(|secret| name.contains(secret))
    }

    /// A copy in which fields with a secret's name are hidden at any depth, and texts are masked. Names are masked as texts.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, field)| {
                    let shown = if Self::hides(name) {
                        HIDDEN.into()
                    } else {
                        self.value(field)
                    };
                    (self.text(name), shown)
                })
                .collect(),
        }
    }

    pub fn text(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for value in &self.values {
            if masked.contains(value.as_str()) {
                masked = masked.replace(value.as_str(), HIDDEN);
            }
        }
        let mut out = String::with_capacity(masked.len());
        let mut after_bearer = false;
        let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '~');
        let mut rest = masked.as_str();
        while let Some(first) = rest.chars().next() {
            let word = belongs(first);
            let end = rest.find(|c| belongs(c) != word).unwrap_or(rest.len());
            let (part, tail) = rest.split_at(end);
            rest = tail;
            if !word {
                out.push_str(part);
                continue;
            }
            let is_token = part.len() >= SHORTEST && PREFIXES.iter().any(|prefix| part.starts_with(prefix));
            out.push_str(if is_token || (after_bearer && part.len() >= 8) {
                HIDDEN
            } else {
                part
            });
            after_bearer = part.eq_ignore_ascii_case("bearer");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s17_known_values_and_well_known_shapes_are_hidden() {
        let mask = Mask::new(["hunter2!".to_owned(), "x".to_owned()]);
        for (text, want) in [
            ("the token hunter2! is wrong", "the token [redacted] is wrong"),
            ("gsv_node_lap_0123456789abcdef0123", "[redacted]"),
            ("Authorization: Bearer abcdefgh12", "Authorization: Bearer [redacted]"),
            ("key=xoxb-0123456789-abcdef,", "key=[redacted],"),
            ("gsv_node x gsv-link", "gsv_node x gsv-link"),
            ("nichts Geheimes, größer", "nichts Geheimes, größer"),
        ] {
            assert_eq!(mask.text(text), want);
        }
    }

    #[test]
    fn s17_fields_are_hidden_by_name() {
        for name in [
            "token",
            "authToken",
            "API_KEY",
            "x-api-key",
            "set-cookie",
            "qr",
            "session",
            "clientSecret",
        ] {
            assert!(Mask::hides(name), "{name}");
        }
        for name in ["callId", "tool", "sqrt", "reason", "sessionKey"] {
            assert!(!Mask::hides(name), "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn lg1_no_secret_is_left_at_any_depth(path in proptest::collection::vec(0..3_u8, 0..12), name in 0..5_usize, secret in "planted[a-z]{8}") {
            let mask = Mask::new([secret.clone()]);
            let names = ["Authorization", "set-cookie", "api_key", "client_secret", "password"];
            for planted in [
                // The value itself is not known to the mask.
                serde_json::json!({ names[name]: "other-plain-words" }),
                serde_json::json!({ names[name]: { "inner": ["other-plain-words"] } }),
                serde_json::json!({ "note": format!("a {secret} b") }),
                serde_json::json!({ secret.clone(): 1 }),
            ] {
                let tree = path.iter().fold(planted, |inner, step| match step {
                    0 => serde_json::json!([1, inner]),
                    1 => serde_json::json!({ "data": inner }),
                    _ => serde_json::json!({ "a": "b", "list": [inner] }),
                });
                let shown = mask.value(&tree).to_string();
                proptest::prop_assert!(!shown.contains(&secret) && !shown.contains("other-plain-words"), "{shown}");
            }
        }
    }
}
