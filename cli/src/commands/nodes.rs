//! `gsv nodes`: lists and removes the machines that the gateway knows.

use gsv_protocol::NoParams;
use gsv_protocol::methods::{NodeForget as Forget, NodesList, TokensList};
use gsv_protocol::types::{NodeForgetParams, NodeId};

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
    let result = client.call::<Forget>(params).await?;
    let tokens = client.call::<TokensList>(NoParams {}).await;
    client.close().await;
    context.out.done(&result, &format!("{id} is removed"));
    let now = now_ms();
    let valid = tokens.into_iter().flat_map(|list| list.tokens).filter(|token| {
        token.node_id.as_deref() == Some(args.id.as_str())
            && token.revoked_at.is_none()
            && token.expires_at.is_none_or(|at| at > now)
    });
    for token in valid {
        let token = one_line(token.token_id.as_str(), 64);
        context.out.note(&format!(
            "Its token {token} is still valid, and with it the machine can connect again. To prevent that: gsv token revoke {token}"
        ));
    }
    Ok(())
}
