//! `gsv deploy`: the gateway and its channels on the user's Cloudflare account (gateway/spec/deploy.md). Pure parts plan (`plan`), choose
//! (`rollback`) and judge (`finding`); `api` reads and makes what the Workers stand on, `wrangler` deploys them. It never touches the
//! gateway on this machine.

mod account;
mod api;
mod bundle;
mod check;
mod down;
mod finding;
mod health;
mod http;
mod label;
mod logs;
mod open;
mod parts;
mod plan;
mod record;
mod rollback;
mod status;
mod steps;
mod token;
mod up;
mod wrangler;

use super::context::Context;
use super::move_home;
use crate::args::DeployCommand;
use crate::exit::Outcome;

pub async fn run(context: &Context, command: DeployCommand) -> Outcome {
    match command {
        DeployCommand::Up(args) => up::run(context, args).await,
        DeployCommand::Status(args) => status::run(context, args).await,
        DeployCommand::Logs(args) => logs::run(context, args).await,
        DeployCommand::Rollback(args) => rollback::run(context, args).await,
        DeployCommand::Down(args) => down::run(context, args).await,
        DeployCommand::Check(args) => check::run(context, args).await,
        DeployCommand::Export(args) => move_home::export(context, args).await,
        DeployCommand::Import(args) => move_home::import(context, args).await,
    }
}
