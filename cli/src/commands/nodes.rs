//! `gsv nodes`: lists and removes the machines that the gateway knows.

use gsv_protocol::methods::{NodeForget as Forget, NodesList, TokensList};
use gsv_protocol::types::{NodeForgetParams, NodeId};
use gsv_protocol::{NoParams, errors};

use super::context::Context;
use super::machine_view::machines;
use super::node::start_command;
use crate::args::{NodeForget, NodesCommand};
use crate::ask;
use crate::clean::one_line;
use crate::exit::{Failure, Outcome};
use crate::units::now_ms;

pub async fn run(context: &Context, command: NodesCommand) -> Outcome {
    match command {
        NodesCommand::List => {
            let list = context.show::<NodesList>(NoParams {}, |result| {
                if result.nodes.is_empty() {
                    context.out.aside(&format!(
                        "No machines yet. Let the agent use this one: `{}`.",
                        start_command()
                    ));
                } else {
                    context.out.table(&machines(&result.nodes, now_ms()));
                }
            });
            list.await
        }
        NodesCommand::Forget(args) => forget(context, args).await,
    }
}

/// A node token outlives the entry: with it the machine would come back, so the tokens are named.
async fn forget(context: &Context, args: NodeForget) -> Outcome {
    let id = one_line(&args.id, 64);
    if !args.yes {
        // A machine that does not exist needs no answer.
        let known = context.ask::<NodesList>(NoParams {}).await?;
        if !known.nodes.iter().any(|node| node.node_id.as_str() == args.id) {
            return Err(Failure::failed(
                format!("There is no machine {id}."),
                "List the machines: `gsv nodes list`.",
            ));
        }
        ask::confirm(
            context.out,
            &format!("Remove the machine {id} from the list?"),
            "remove it",
            "Nothing was removed.",
        )?;
    }
    let params = NodeForgetParams {
        node_id: NodeId::from(args.id.clone()),
        force: args.force.then_some(true),
    };
    let client = context.connect().await?;
    let result = client.call::<Forget>(params).await.map_err(|failure| {
        if !failure.is(&errors::NODE_ONLINE) {
            return failure;
        }
        let next =
            format!("Stop the node there first. To remove it while it is connected: `gsv nodes forget {id} --force`.");
        Failure { next, ..failure }
    })?;
    let was_connected = result.disconnected;
    let tokens = client.call::<TokensList>(NoParams {}).await;
    client.close().await;
    let now = now_ms();
    let valid = tokens.into_iter().flat_map(|list| list.tokens).filter(|token| {
        token.node_id.as_deref() == Some(args.id.as_str())
            && token.revoked_at.is_none()
            && token.expires_at.is_none_or(|at| at > now)
    });
    let revoke: Vec<String> = valid
        .map(|token| format!("gsv token revoke {}", one_line(token.token_id.as_str(), 64)))
        .collect();
    if revoke.is_empty() {
        context.out.done(&result, &format!("{id} is removed"));
        return Ok(());
    }
    let what = match revoke.len() {
        1 => "its token is",
        _ => "its tokens are",
    };
    context.out.done(
        &result,
        &format!("`{id}` is removed. Its node can connect again, because {what} still valid."),
    );
    // A node that was connected comes back within seconds, and is listed again.
    let again = if was_connected {
        format!(" (if it is listed again after that: `gsv nodes forget {id} --yes`)")
    } else {
        String::new()
    };
    context
        .out
        .note(&format!("To remove it for good: `{}`{again}", revoke.join(" && ")));
    Ok(())
}
