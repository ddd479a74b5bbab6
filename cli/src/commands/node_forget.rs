//! `gsv node forget`: ends what makes this machine a node. Files, the log and what `gsv undo` needs stay.

use std::fs;
use std::path::Path;

use gsv_protocol::methods::{NodeForget, TokensList, TokensRevoke};
use gsv_protocol::types::{NodeForgetParams, NodeId, TokensRevokeParams};
use gsv_protocol::{NoParams, errors};
use serde_json::json;

use super::context::{Context, block_on};
use super::node_files::{Running, running, state_dir};
use super::node_service::{id_of, service};
use super::node_token;
use super::service::with_installer;
use crate::args::NodeEnd;
use crate::ask;
use crate::clean::one_line;
use crate::client::Account;
use crate::config::{Config, Key};
use crate::exit::{Failure, Outcome};

pub fn run(context: &Context, args: &NodeEnd) -> Outcome {
    let out = context.out;
    let id = id_of(&args.node)?;
    let service = service(&id)?;
    let mut config = Config::load()?;
    let token_file = state_dir(&id)?.join("token.json");
    let has_token = config.get(Key::NodeId) == Some(&id);
    let has_service = service.has_trace()?;
    if !has_service && !has_token && !state_dir(&id)?.is_dir() {
        return Err(Failure::failed(
            format!("There is no node `{id}` on this machine."),
            "List the machines that the gateway knows: `gsv nodes list`. Remove another one there: `gsv nodes forget ID`.",
        ));
    }
    if !args.yes {
        ask::confirm(
            out,
            &format!("End the service of the node `{id}`, revoke its token and remove it from the gateway's list?"),
            "forget it",
            "Nothing was changed.",
        )?;
    }
    if has_service {
        with_installer(|installer| installer.uninstall(&service.name))?;
    }
    let runs = running(&id)?;
    if runs != Running::No {
        return Err(Failure::failed(
            if has_service {
                format!("The service was removed, but the node `{id}` still runs outside of it.")
            } else {
                format!("The node `{id}` still runs.")
            },
            runs.how_to_stop(),
        ));
    }
    let remote = context
        .account()
        .and_then(|account| block_on(at_gateway(&account, &id)));
    let is_done_there = match remote {
        Ok(()) => true,
        // This machine may not do it, and never will; what is here ends all the same.
        Err(failure) if failure.is_refusal() => false,
        // When the gateway could not be reached, this machine keeps its token, so that the command can be run again.
        Err(failure) => {
            return Err(Failure {
                next: format!(
                    "Nothing more was changed on this machine. Run it again when the gateway answers; or on a machine with an admin token: `gsv nodes forget {id}`."
                ),
                ..failure
            });
        }
    };
    let command = remaining(&id, stored_token(&config, has_token, &token_file).as_deref());
    if has_token {
        config.unset(Key::NodeId);
        config.unset(Key::NodeToken);
        config.save()?;
    }
    // There is none when the local config has it.
    let _ = fs::remove_file(token_file);
    out.done(
        &json!({ "nodeId": id, "wasInstalled": has_service, "isForgottenThere": is_done_there }),
        &format!("This machine is no longer the node `{id}`. Its files stay."),
    );
    if !is_done_there {
        out.note(&format!(
            "The gateway may still list it and accept its token. On the gateway's machine, run: `{command}`"
        ));
    }
    Ok(())
}

fn stored_token(config: &Config, is_in_config: bool, file: &Path) -> Option<String> {
    if is_in_config {
        return config.get(Key::NodeToken).map(str::to_owned);
    }
    node_token::read(file)
}

/// What ends the node at the gateway, from another machine. The id of a token is a part of it, and no secret.
fn remaining(id: &str, token: Option<&str>) -> String {
    let forget = format!("gsv nodes forget {id} --yes");
    match token.and_then(node_token::id_of) {
        Some(token_id) => format!("gsv token revoke {} && {forget}", one_line(token_id, 64)),
        None => forget,
    }
}

/// The tokens first: with one of them the machine could come back.
async fn at_gateway(account: &Account, id: &str) -> Outcome {
    let client = account.connect().await?;
    let listed = client.call::<TokensList>(NoParams {}).await?;
    let own = listed
        .tokens
        .into_iter()
        .filter(|token| token.node_id.as_deref() == Some(id) && token.revoked_at.is_none());
    for token in own {
        let token_id = token.token_id;
        client.call::<TokensRevoke>(TokensRevokeParams { token_id }).await?;
    }
    let params = NodeForgetParams {
        node_id: NodeId::from(id.to_owned()),
        force: Some(true),
    };
    let forgotten = client.call::<NodeForget>(params).await;
    client.close().await;
    match forgotten {
        Err(failure) if !failure.is(&errors::NODE_UNKNOWN) => Err(failure),
        _ => Ok(()),
    }
}
