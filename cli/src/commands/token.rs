//! `gsv token`: access tokens. A new token goes to stdout, alone, once.

use gsv_protocol::NoParams;
use gsv_protocol::methods::{TokensCreate, TokensList, TokensRevoke};
use gsv_protocol::types::{TokenEntry, TokenId, TokensCreateParams, TokensRevokeParams};

use super::context::Context;
use crate::args::{TokenCommand, TokenCreate};
use crate::ask;
use crate::clean::clean;
use crate::embedded::bootstrap::sha256_hex;
use crate::exit::Outcome;
use crate::table::Table;
use crate::units::{ago, counted, millis, now_ms, time};

pub async fn run(context: &Context, command: TokenCommand) -> Outcome {
    let out = context.out;
    match command {
        TokenCommand::Create(args) => create(context, args).await,
        TokenCommand::List => {
            let now = now_ms();
            let head = ["ID", "KIND", "BOUND TO", "USED", "EXPIRES", "STATE", "LABEL"];
            let list = context.show::<TokensList>(NoParams {}, |result| {
                out.table(&Table::new(
                    head,
                    result.tokens.into_iter().map(|token| row(token, now)),
                ));
            });
            list.await
        }
        TokenCommand::Revoke { id, yes } => {
            let token_id = public_id(&id);
            if !yes && public_id(&context.account()?.token) == token_id {
                ask::confirm(
                    out,
                    OWN,
                    "revoke the token that this command itself uses; it then has no access until you set another one",
                    "Nothing was revoked.",
                )?;
            }
            let token_id = TokenId::from(token_id);
            let revoked = context.change::<TokensRevoke>(TokensRevokeParams { token_id }, |result| {
                let id = clean(result.token_id.as_str());
                let closed = counted(result.closed, "connection", "connections");
                format!("token {id} is revoked; {closed} closed")
            });
            revoked.await
        }
    }
}

async fn create(context: &Context, args: TokenCreate) -> Outcome {
    let out = context.out;
    let params = TokensCreateParams {
        kind: args.scope,
        node_id: args.node,
        channel: args.channel,
        account_id: args.account,
        label: args.label,
        expires_in_ms: args.expires.map(millis),
    };
    let show = context.show::<TokensCreate>(params, |result| {
        out.content(&format!("{}\n", result.token));
        let expires = result.entry.expires_at.map(|at| format!(", valid until {}", time(at)));
        out.aside(&format!(
            "token {id}{}; it is not shown again. Revoke it with `gsv token revoke {id}`.",
            expires.unwrap_or_default(),
            id = clean(result.entry.token_id.as_str()),
        ));
    });
    show.await
}

fn row(token: TokenEntry, now: u64) -> [String; 7] {
    let bound = match (token.node_id, token.channel, token.account_id) {
        (Some(node), _, _) => node,
        (_, Some(channel), Some(account)) => format!("{channel}/{account}"),
        (_, Some(channel), None) => channel,
        _ => String::new(),
    };
    let state = match (token.revoked_at, token.expires_at) {
        (Some(_), _) => "revoked",
        (_, Some(at)) if at <= now => "expired",
        _ => "valid",
    };
    let or_never = |at: Option<u64>| at.map_or_else(|| "never".to_owned(), |at| ago(at, now));
    [
        token.token_id.into_inner(),
        token.kind.as_str().to_owned(),
        bound,
        match token.connected {
            Some(true) => "now".to_owned(),
            _ => or_never(token.last_used_at),
        },
        or_never(token.expires_at),
        state.to_owned(),
        token.label.unwrap_or_default(),
    ]
}

const OWN: &str = "This is the token that this command itself uses. Without it, `gsv` has no access from here until you set another one: `gsv local-config set token -`. Revoke it?";
/// The length of an id that `gsv up` put into a first token; the gateway calls that token after its digest.
const FIRST_ID: usize = 10;

/// The id of a whole token, so that a leaked token can be pasted without sending its secret anywhere.
fn public_id(text: &str) -> String {
    match text.split('_').collect::<Vec<_>>().as_slice() {
        ["gsv", "admin", id, _] if id.len() == FIRST_ID => format!("first-{}", &sha256_hex(text.as_bytes())[..6]),
        ["gsv", _, id, _] => (*id).to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_a_token_that_a_connection_uses_is_used_now() {
        let used = |more: serde_json::Value| {
            let mut entry = serde_json::json!({"tokenId": "abcd2345", "kind": "node", "last4": "ffff", "createdAt": 0, "lastUsedAt": 0});
            entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            row(serde_json::from_value(entry).unwrap(), 7_200_000)[3].clone()
        };
        assert_eq!(used(serde_json::json!({"connected": true})), "now");
        assert_eq!(used(serde_json::json!({})), "2 h ago");
    }

    #[test]
    fn a_whole_token_is_named_by_its_public_id() {
        assert_eq!(public_id("abcd2345"), "abcd2345");
        assert_eq!(public_id("gsv_client_abcd2345_ff"), "abcd2345");
        let first = crate::embedded::bootstrap::NewToken::generate().unwrap();
        assert_eq!(
            public_id(&first.token),
            format!("first-{}", &first.bootstrap.sha256[..6])
        );
    }
}
