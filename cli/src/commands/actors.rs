//! Who did something, in words for people. The ids of connections and tokens are for `--json`.

use std::collections::HashMap;

use gsv_protocol::NoParams;
use gsv_protocol::methods::TokensList;

use super::context::Context;
use crate::clean::one_line;
use crate::client::{Client, is_command_line};

const CLIENT: &str = "client:";
const TOKEN: &str = " token:";
const NAME_COLUMNS: usize = 64;
const ID_COLUMNS: usize = 64;
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

    /// `client:cli-0000145a00009c1f token:first-8b1f` is `gsv (token first-8b1f, "first token")`. Other actors, such as a session, are as they
    /// were. Who joins with an invitation chooses the label, and each client its name: only the id of the token says whose it is.
    pub fn name(&self, by: &str) -> String {
        let (who, token) = by.split_once(TOKEN).unwrap_or((by, ""));
        let known = self.labels.get(token);
        let label = known.map(|label| format!(", {:?}", one_line(label, LABEL_COLUMNS)));
        let token = one_line(token, ID_COLUMNS);
        let token = match token.as_str() {
            "" => String::new(),
            id => format!(" (token {id}{})", label.unwrap_or_default()),
        };
        // A long name pushes nothing out of sight.
        format!("{}{token}", one_line(plain(who), NAME_COLUMNS))
    }
}

/// Without its token. What a client chose as its name stays behind its kind: `client:gateway` is not the gateway. One that calls itself as
/// command lines do is `gsv`.
pub fn plain(by: &str) -> &str {
    let who = by.split_once(TOKEN).map_or(by, |(who, _)| who);
    match who.strip_prefix(CLIENT) {
        Some(id) if is_command_line(id) => "gsv",
        _ => who,
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
            ("client:cli-0000145a00009c1f", "gsv"),
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
        assert_eq!(plain("client:cli-0000145a00009c1f token:first-8b1f"), "gsv");
        assert_eq!(plain("client:phone token:x"), "client:phone");
    }
}
