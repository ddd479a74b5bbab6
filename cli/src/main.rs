//! The `gsv` command line: reads the arguments, runs one command, and ends with its exit status. Starts no runtime and reads
//! no file before a command needs it.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a test that cannot continue has failed"
    )
)]

mod above;
mod args;
mod ask;
mod backup;
mod big_text;
mod chat;
mod clean;
mod client;
mod commands;
mod complete;
mod config;
mod definition_folder;
mod draft;
mod editor;
mod embedded;
mod exit;
mod highlight;
mod import;
mod in_place;
mod join_code;
mod markdown;
mod new_file;
mod node_policy;
mod output;
mod paths;
mod private_file;
mod qr;
mod service;
mod session_key;
mod skill_files;
mod skill_folder;
mod skill_upload;
mod stop_signal;
mod suggest;
mod table;
mod text_files;
#[cfg(test)]
mod texts_tests;
mod units;
mod update;
mod width;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::CommandFactory;
use gsv_protocol::errors;

use crate::args::{Cli, Command, Node, NodeCommand, NodesCommand};
use crate::commands::context::{Context, block_on, run_on};
use crate::exit::{Failure, Outcome};
use crate::output::Output;

fn main() -> ExitCode {
    let mut typed = std::env::args_os().skip(1);
    // Internal: a node, a backup or the gateway's supervisor starts these, with arguments that must not be parsed.
    match typed.next() {
        Some(first) if first == gsv_node::policy::SUPERVISE => return gsv_node::supervise_main(typed),
        Some(first) if first == gsv_node::policy::CONFINE => return gsv_node::sandbox::confine_main(typed),
        Some(first) if first == gsv_node::policy::CANARY => return gsv_node::sandbox::canary_main(typed),
        Some(first) if first == complete::COMPLETE => {
            complete::main(typed);
            return ExitCode::SUCCESS;
        }
        Some(first) if first == embedded::hold::GUARD => return embedded::hold::guard(typed),
        Some(first) if first == embedded::backups::MAKE => return commands::backup_schedule::make(),
        _ => {}
    }
    // clap prints its own errors and help, and ends with 2 or 0.
    let typed: Vec<_> = std::env::args_os().collect();
    let cli = args::try_parse_from(&typed).unwrap_or_else(|error| error.exit());
    let out = Output::detect(cli.global.json);
    if cli.global.has_typed_token() && std::io::stderr().is_terminal() {
        out.warn("the token stays in the shell's history; save it instead with `gsv local-config set token -`, or set GSV_TOKEN");
    }
    match authority(&cli.command).and_then(|()| run(cli, out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out.failure(&failure);
            ExitCode::from(failure.exit.code())
        }
    }
}

/// Commands of the agent have nothing of the owner's authority (rule SB18). The mark only says it plainly: a command can remove it, and
/// what stops it then is the sandbox, which hides the token and the gateway.
fn authority(command: &Command) -> Outcome {
    let needs_none = matches!(command, Command::Version | Command::Completions { .. });
    if needs_none || !gsv_node::is_inside_command() {
        return Ok(());
    }
    Err(Failure::from_reason(errors::AUTH_AGENT_COMMAND.reason, "", false))
}

fn run(cli: Cli, out: Output) -> Outcome {
    let context = Context {
        global: cli.global,
        out,
    };
    run_command(&context, cli.command).map_err(|failure| {
        let failure = commands::stop_state::failure_naming_copy(&context, failure);
        commands::local::explain_left_over(&context, failure)
    })
}

fn run_command(context: &Context, command: Command) -> Outcome {
    let out = context.out;
    match command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "gsv", &mut script);
            out.piece(&complete::with_hook(shell, &String::from_utf8_lossy(&script)));
            Ok(())
        }
        Command::Version => {
            // As one text in the program, also in a release build: the tests of `gsv update` make programs of other versions of it.
            out.line(std::hint::black_box(concat!("gsv ", env!("CARGO_PKG_VERSION"))));
            Ok(())
        }
        Command::LocalConfig(command) => commands::local_config::run(context, command),
        Command::Up(args) => commands::gateway::up(context, &args),
        Command::Service(command) => commands::service_gateway::run(context, command),
        Command::Down => commands::gateway::down(context),
        Command::Deploy(command) => block_on(commands::deploy::run(context, command)),
        Command::Backup(args) => block_on(commands::backup::run(context, args)),
        Command::Restore(args) => block_on(commands::backup::restore(context, args)),
        Command::Update(args) => block_on(commands::update::run(context, args)),
        Command::Chat(args) => {
            commands::first_chat::offer_setup(context, &args)?;
            block_on(commands::chat::run(context, args))
        }
        Command::Undo(args) => block_on(commands::undo::run(context, args)),
        Command::Stop(args) => block_on(commands::stop::stop(context, args)),
        Command::Resume(args) => block_on(commands::resume::resume(context, args)),
        Command::Status => block_on(commands::status::run(context)),
        Command::Node(Node {
            command: Some(command), ..
        }) => run_node_command(context, command),
        Command::Node(args) => run_on(gsv_node::runtime(), commands::node::run(context, args)),
        Command::Nodes(command) => block_on(commands::nodes::run(context, command)),
        Command::Invite(command) => block_on(commands::invite::run(context, command)),
        Command::Join(args) => block_on(commands::join::run(context, args)),
        Command::Config(command) => block_on(commands::config::run(context, command)),
        Command::Session { command: Some(command) } => block_on(commands::session::run(context, command)),
        Command::Session { command: None } => block_on(commands::session_picker::run(context)),
        Command::Setup(args) => commands::setup::run(context, &args),
        Command::Model(command) => block_on(commands::model::run(context, command)),
        Command::Provider(command) => block_on(commands::model::run_provider(context, command)),
        Command::Why { what, session } => block_on(commands::why::run(context, what, session)),
        Command::Usage { by, days } => block_on(commands::usage::run(context, by, days)),
        Command::Tools(command) => block_on(commands::tools::run(context, command)),
        Command::Channel(command) => block_on(commands::channel::run(context, command)),
        Command::Pair(command) => block_on(commands::pair::run(context, command)),
        Command::Cron(command) => block_on(commands::cron::run(context, command)),
        Command::Heartbeat(command) => block_on(commands::heartbeat::run(context, command)),
        Command::Notifications(args) => block_on(commands::notifications::run(context, args)),
        Command::Hook(command) => block_on(commands::hook::run(context, command)),
        Command::Events(command) => block_on(commands::events::run(context, command)),
        Command::Job(command) => block_on(commands::job::run(context, command)),
        Command::Approval(command) => block_on(commands::approval::run(context, command)),
        Command::Agent(command) => block_on(commands::agent::run(context, command)),
        Command::Prompt(command) => block_on(commands::prompt::run(context, command)),
        Command::Token(command) => block_on(commands::token::run(context, command)),
        Command::Copy(args) => block_on(commands::copy::run(context, args)),
        Command::Workspace(command) => block_on(commands::workspace::run(context, command)),
        Command::Memory(command) => block_on(commands::memory::run(context, command)),
        Command::Search(args) => block_on(commands::search::run(context, args)),
        Command::Skills(command) => block_on(commands::skills::run(context, command)),
        Command::Audit(args) => block_on(commands::audit::run(context, args)),
        Command::Doctor { offline } => block_on(commands::doctor::run(context, offline)),
    }
}

fn run_node_command(context: &Context, command: NodeCommand) -> Outcome {
    use crate::commands::{node_forget, node_sandbox, node_service};
    match command {
        NodeCommand::Sandbox(args) => node_sandbox::run(context, &args),
        NodeCommand::Install(args) => node_service::install(context, &args),
        NodeCommand::Uninstall(args) => node_service::uninstall(context, &args),
        NodeCommand::Start(args) => node_service::start(context, &args),
        NodeCommand::Stop(args) => node_service::stop(context, &args),
        NodeCommand::Status(args) => node_service::status(context, &args),
        NodeCommand::Logs(args) => node_service::show_logs(context, &args),
        NodeCommand::List => block_on(commands::nodes::run(context, NodesCommand::List)),
        NodeCommand::Forget(args) => node_forget::run(context, &args),
    }
}
