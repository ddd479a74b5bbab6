//! PURE. Removes GSV tokens from what leaves the machine: results, live output, events. Best effort: it knows the shape of a
//! token and the node's own, not their encodings.

use std::borrow::Cow;

use gsv_protocol::types::ToolResultParams;
use serde_json::Value;

const REMOVED: &str = "[GSV token removed]";
const PREFIX: &str = "gsv_";
/// Hexadecimal digits of a token's secret, at the least.
const SECRET_DIGITS: usize = 16;
/// Shorter values of a token would be found in ordinary words.
const SHORTEST_OWN: usize = 8;
/// The longest start of a token that is held back until the rest of it arrives.
const HELD_BYTES: usize = 256;

#[derive(Debug, Clone, Default)]
pub struct Scrub {
    /// The node's own token, which may have another shape.
    own: Option<String>,
}

impl Scrub {
    pub fn new(own: Option<String>) -> Self {
        Self {
            own: own.filter(|token| token.len() >= SHORTEST_OWN),
        }
    }

    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.own {
            Some(own) if text.contains(own.as_str()) => {
                let without = text.replace(own.as_str(), REMOVED);
                Cow::Owned(without_tokens(&without).into_owned())
            }
            _ => without_tokens(text),
        }
    }

    pub fn result(&self, params: &mut ToolResultParams) {
        if let Some(error) = &mut params.error {
            self.string(error);
        }
        if let Some(result) = &mut params.result {
            self.value(result);
        }
    }

    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn string(&self, text: &mut String) {
        if let Cow::Owned(scrubbed) = self.text(text) {
            *text = scrubbed;
        }
    }
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// `gsv_{kind}_{id}_{secret}`: other words with the prefix, such as names of crates, stay.
fn is_token(word: &str) -> bool {
    let Some((head, secret)) = word.rsplit_once('_') else {
        return false;
    };
    let digits = secret.bytes().take_while(u8::is_ascii_hexdigit).count();
    digits >= SECRET_DIGITS && head.len() > PREFIX.len()
}

fn without_tokens(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (start, _) in text.match_indices(PREFIX) {
        if start < copied {
            continue;
        }
        let word = &text[start..];
        let end = word.find(|c| !is_token_char(c)).unwrap_or(word.len());
        if is_token(&word[..end]) {
            out.push_str(&text[copied..start]);
            out.push_str(REMOVED);
            copied = start + end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Where the start of a token that is not complete yet begins at the end of a text: what is behind it must wait.
pub fn incomplete_token(text: &str) -> usize {
    let end = text.len();
    let word = text
        .rfind(|c| !is_token_char(c))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    if let Some(at) = text[word..].find(PREFIX) {
        let start = word + at;
        return if end - start <= HELD_BYTES { start } else { end };
    }
    let partial = (1..PREFIX.len())
        .rev()
        .find(|len| text[word..].ends_with(&PREFIX[..*len]));
    end - partial.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOKEN: &str = "gsv_admin_3f2a9c_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn f10_tokens_are_removed_and_ordinary_words_stay() {
        let scrub = Scrub::new(Some("own-token-of-another-gateway".to_owned()));
        for (text, want) in [
            (format!("token = \"{TOKEN}\"\n"), format!("token = \"{REMOVED}\"\n")),
            (format!("x{TOKEN}y {TOKEN}"), format!("x{REMOVED} {REMOVED}")),
            (
                "Bearer own-token-of-another-gateway.".to_owned(),
                format!("Bearer {REMOVED}."),
            ),
        ] {
            assert_eq!(scrub.text(&text), want);
        }
        for text in [
            "use gsv_protocol::types; gsv_node_state_deadbeef",
            "gsv_",
            "gsv__00112233445566778899",
            "größer gsv_a",
            "",
        ] {
            assert!(
                matches!(scrub.text(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    #[test]
    fn f10_every_string_of_a_result_is_scrubbed() {
        let mut params = ToolResultParams {
            call_id: "c".into(),
            result: Some(json!({"output": TOKEN, "matches": [{"content": format!("a {TOKEN} b")}], "count": 1})),
            error: Some(format!("it said {TOKEN}")),
            reason: None,
            outcome: None,
            duration_ms: None,
        };
        Scrub::default().result(&mut params);
        assert_eq!(
            params.result,
            Some(json!({"output": REMOVED, "matches": [{"content": format!("a {REMOVED} b")}], "count": 1}))
        );
        assert_eq!(params.error, Some(format!("it said {REMOVED}")));
    }

    #[test]
    fn f10_a_token_that_arrives_in_parts_is_held_back() {
        for cut in 1..TOKEN.len() {
            let text = format!("é {}", &TOKEN[..cut]);
            assert_eq!(incomplete_token(&text), "é ".len(), "{text}");
        }
        for text in ["", "done\n", "a word", "50%", "größer"] {
            assert_eq!(incomplete_token(text), text.len(), "{text}");
        }
        let long = format!("{PREFIX}{}", "x".repeat(HELD_BYTES));
        assert_eq!(incomplete_token(&long), long.len());
    }
}
