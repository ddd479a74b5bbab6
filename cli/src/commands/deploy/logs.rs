//! `gsv deploy logs`: wrangler follows the log of a Worker, whose lines are shown.

use super::bundle::{self, CONFIG};
use super::open::Open;
use super::parts::Worker;
use crate::args::DeployLogs;
use crate::commands::context::Context;
use crate::embedded::channel_name::Name;
use crate::exit::{Failure, OrFail, Outcome};

pub async fn run(context: &Context, args: DeployLogs) -> Outcome {
    let out = context.out;
    let worker = match args.channel {
        None => Worker::Gateway,
        Some(name) => Worker::Channel(
            Name::try_from(name).map_err(|why| Failure::usage(format!("{why}."), "`gsv deploy status` lists them."))?,
        ),
    };
    let open = Open::new(out, args.account.account.as_deref()).await?;
    let name = worker.name();
    if !open.look().await?.state.workers.contains_key(&name) {
        let message = format!("{worker} is not deployed to the account {}.", open.account_name);
        return Err(Failure::failed(message, "`gsv deploy status` lists what is."));
    }
    let folder = bundle::folder()?;
    let config = serde_json::json!({ "name": name }).to_string();
    std::fs::write(folder.path().join(CONFIG), config)
        .or_fail("write the configuration", "Check that the disk is not full.")?;
    if !out.json {
        out.aside("Following the log; Ctrl-C ends.");
    }
    let format = if out.json { "json" } else { "pretty" };
    let args = ["tail", &name, "--config", CONFIG, "--format", format];
    open.wrangler.show(out, folder.path(), &args, &open.account_id).await
}
