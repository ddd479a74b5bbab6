//! `gsv token`. A new token goes to stdout, alone, once.

use gsv_protocol::NoParams;
use gsv_protocol::methods::{TokensCreate, TokensList, TokensRevoke};
use gsv_protocol::types::{TokenId, TokenKind, TokensCreateParams, TokensRevokeParams};

use super::Context;
use crate::args::{Scope, TokenCommand, TokenCreate};
use crate::clean::clean;
use crate::exit::Outcome;
use crate::table::Table;
use crate::units::{ago, now_ms, time};

pub async fn run(context: &Context, command: TokenCommand) -> Outcome {
    match command {
        TokenCommand::Create(args) => create(context, args).await,
        TokenCommand::List => list(context).await,
        TokenCommand::Revoke { id } => revoke(context, &id).await,
    }
}

async fn create(context: &Context, args: TokenCreate) -> Outcome {
    let params = TokensCreateParams {
        kind: match args.scope {
            Scope::Client => TokenKind::Client,
            Scope::ClientRo => TokenKind::ClientRo,
            Scope::Node => TokenKind::Node,
            Scope::Channel => TokenKind::Channel,
            Scope::Admin => TokenKind::Admin,
        },
        node_id: args.node,
        channel: args.channel,
        account_id: args.account,
        label: args.label,
        expires_in_ms: args
            .expires
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    };
    let client = context.connect().await?;
    let result = client.call::<TokensCreate>(params).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
        return Ok(());
    }
    let until = result
        .entry
        .expires_at
        .map_or_else(String::new, |at| format!(", until {}", time(at)));
    context.out.content(&format!("{}\n", result.token));
    let text = format!(
        "token {}{until}; it is not shown again. End it with `gsv token revoke {0}`.",
        clean(&result.entry.token_id.0)
    );
    context.out.aside(&text);
    Ok(())
}

async fn list(context: &Context) -> Outcome {
    let client = context.connect().await?;
    let result = client.call::<TokensList>(NoParams {}).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
        return Ok(());
    }
    let now = now_ms();
    let mut table = Table::new(["ID", "KIND", "BOUND TO", "USED", "ENDS", "STATE", "LABEL"]);
    for token in result.tokens {
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
        table.row(&[
            token.token_id.0,
            token.kind.as_str().to_owned(),
            bound,
            token.last_used_at.map_or_else(|| "never".to_owned(), |at| ago(at, now)),
            token.expires_at.map_or_else(|| "never".to_owned(), |at| ago(at, now)),
            state.to_owned(),
            token.label.unwrap_or_default(),
        ]);
    }
    context.out.table(&table);
    Ok(())
}

async fn revoke(context: &Context, id: &str) -> Outcome {
    let params = TokensRevokeParams {
        token_id: TokenId(public_id(id).to_owned()),
    };
    let client = context.connect().await?;
    let result = client.call::<TokensRevoke>(params).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        context.out.aside(&format!(
            "token {} is revoked; {} connections closed",
            clean(&result.token_id.0),
            result.closed
        ));
    }
    Ok(())
}

/// The id inside a whole token, so that a leaked one can be pasted without sending its secret anywhere.
fn public_id(text: &str) -> &str {
    match text.split('_').collect::<Vec<_>>().as_slice() {
        ["gsv", _, id, _] => id,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_of_a_whole_token_only_the_id_is_sent() {
        assert_eq!(public_id("gsv_client_abcdefghij_00ff"), "abcdefghij");
        assert_eq!(public_id("abcdefghij"), "abcdefghij");
    }
}
