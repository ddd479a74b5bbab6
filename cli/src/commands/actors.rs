//! Who did something, in words for people. The ids of connections and tokens are for `--json`.

use std::collections::HashMap;

use gsv_protocol::NoParams;
use gsv_protocol::methods::TokensList;

use super::context::Context;
use crate::clean::one_line;
use crate::client::{Client, is_command_line};

const CLIENT: &str = "client:";
const TOKEN: &str = " token:";
/// A client's chosen name follows its kind: `client:gateway` is not the gateway. A long name pushes nothing out of sight.
const NAME_COLUMNS: usize = 24;
/// An actor without a token, such as a session.
const ACTOR_COLUMNS: usize = 160;
const ID_COLUMNS: usize = 64;
/// The least width of a column of actors: a narrow terminal does not cut the id of a token, because it says who acted.
pub const TOKEN_COLUMNS: usize = 13;
const LABEL_COLUMNS: usize = 32;

/// The labels of tokens, by their ids.
#[derive(Debug, Default)]
pub struct Actors {
    labels: HashMap<String, String>,
}

impl Actors {
    /// Asks for the labels only where a person reads them and one of the actors has a token. A token that may not list them, or an older
    /// gateway, leaves the ids.
    pub async fn find<'a>(context: &Context, client: &Client, named: impl IntoIterator<Item = &'a str>) -> Self {
        let is_read = !context.out.json && named.into_iter().any(|by| by.contains(TOKEN));
        if !is_read {
            return Self::default();
        }
        let tokens = client.call::<TokensList>(NoParams {}).await;
        let labelled = tokens.into_iter().flat_map(|list| list.tokens).filter_map(|token| {
            let label = token.label.filter(|label| !label.trim().is_empty())?;
            Some((token.token_id.into_inner(), label))
        });
        Self {
            labels: labelled.collect(),
        }
    }

    /// For a sentence: `client:cli-0000145a00009c1f token:first-8b1f` is `gsv (token first-8b1f, "first token")`. Other actors, such as a session,
    /// stay unchanged. Who joins with an invitation chooses the label, and each client its name: only the id of the token says whose it is.
    pub fn name(&self, by: &str) -> String {
        let (who, token) = self.parts(by);
        match token {
            None => who,
            Some((id, None)) => format!("{who} (token {id})"),
            Some((id, Some(label))) => format!("{who} (token {id}, {label})"),
        }
    }

    /// For a column of a table, which is cut at its end: the id of the token is first, as in `first-8b1f gsv "first token"`.
    pub fn cell(&self, by: &str) -> String {
        let (who, token) = self.parts(by);
        match token {
            None => who,
            Some((id, None)) => format!("{id} {who}"),
            Some((id, Some(label))) => format!("{id} {who} {label}"),
        }
    }

    /// The client or other actor, and its token with the label.
    fn parts(&self, by: &str) -> (String, Option<(String, Option<String>)>) {
        let Some((who, token)) = by.split_once(TOKEN) else {
            return (one_line(by, ACTOR_COLUMNS), None);
        };
        let who = match who.strip_prefix(CLIENT) {
            Some(id) if is_command_line(id) => "gsv",
            _ => who,
        };
        let label = self.labels.get(token);
        let label = label.map(|label| format!("{:?}", one_line(label, LABEL_COLUMNS)));
        let id = one_line(token, ID_COLUMNS);
        (one_line(who, NAME_COLUMNS), (!id.is_empty()).then_some((id, label)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au1_an_actor_is_named_by_its_client_and_the_label_of_its_token() {
        let actors = Actors {
            labels: HashMap::from([
                ("first-8b1f".to_owned(), "first token".to_owned()),
                ("t2".to_owned(), "the\nphone".to_owned()),
            ]),
        };
        for (by, name) in [
            (
                "client:cli-0000145a00009c1f token:first-8b1f",
                "gsv (token first-8b1f, \"first token\")",
            ),
            ("client:cli-0000145a00009c1f token:t9", "gsv (token t9)"),
            // The name alone proves nothing.
            ("client:cli-0000145a00009c1f", "client:cli-0000145a00009c1f"),
            ("client:web token:t9", "client:web (token t9)"),
            ("client:cli-x token:t9", "client:cli-x (token t9)"),
            ("client:gateway token:t9", "client:gateway (token t9)"),
            ("client:node:laptop token:t9", "client:node:laptop (token t9)"),
            ("client:", "client:"),
            (
                "node:laptop token:first-8b1f",
                "node:laptop (token first-8b1f, \"first token\")",
            ),
            ("session:agent:main:main", "session:agent:main:main"),
            ("gateway", "gateway"),
            ("grant:g1", "grant:g1"),
        ] {
            assert_eq!(actors.name(by), name);
        }
        let long = actors.name(&format!("client:{} token:t9", "x".repeat(120)));
        assert!(long.ends_with(" (token t9)"), "{long}");
        let phone = actors.name("client:cli-0000145a00009c1f token:t2");
        assert!(
            phone.starts_with("gsv (token t2, \"the") && !phone.contains('\n'),
            "{phone}"
        );
        assert_eq!(
            actors.cell("client:cli-0000145a00009c1f token:first-8b1f"),
            "first-8b1f gsv \"first token\""
        );
        assert_eq!(
            actors.cell("client:cli-0000145a00009c1f_token:first-8b1f token:t9"),
            "t9 client:cli-0000145a0000…"
        );
        assert_eq!(actors.cell("session:agent:main:main"), "session:agent:main:main");
    }
}
