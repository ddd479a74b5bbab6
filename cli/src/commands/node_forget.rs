//! `gsv node forget`: ends what makes this machine a node. Files, the log and what `gsv undo` needs stay.

use std::fs;

use gsv_protocol::methods::{NodeForget, TokensList, TokensRevoke};
use gsv_protocol::types::{NodeForgetParams, NodeId, TokensRevokeParams};
use gsv_protocol::{NoParams, errors};
use serde_json::json;

use super::context::{Context, block_on};
use super::node_files::{Running, running, state_dir};
use super::node_service::{id_of, service};
use super::service::with_installer;
use crate::args::NodeEnd;
use crate::ask;
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
            format!("This machine was never the node `{id}`."),
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
            format!("The node `{id}` still runs outside of the service."),
            runs.how_to_stop(),
        ));
    }
    let remote = context
        .account()
        .and_then(|account| block_on(at_gateway(&account, &id)));
    // When the gateway could not be reached, this machine keeps its token, so that the command can be run again.
    remote.map_err(|failure| Failure {
        next: format!(
            "Nothing more was changed on this machine. With an admin token, run it again; or on a machine that has one: `gsv nodes forget {id}`."
        ),
        ..failure
    })?;
    if has_token {
        config.unset(Key::NodeId);
        config.unset(Key::NodeToken);
        config.save()?;
    }
    // There is none when the local config has it.
    let _ = fs::remove_file(token_file);
    out.done(
        &json!({ "nodeId": id, "wasInstalled": has_service }),
        &format!("This machine is no longer the node `{id}`. Its files stay."),
    );
    Ok(())
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
