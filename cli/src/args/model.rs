//! `gsv setup`, `gsv model` and `gsv provider`.

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;

use super::values::port;

const NAME_CHARS: usize = 80;

/// A person's name: one line of a file.
pub fn person(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() || name.chars().any(char::is_control) || name.chars().count() > NAME_CHARS {
        return Err(format!("a name has 1 to {NAME_CHARS} characters, in one line"));
    }
    Ok(name.to_owned())
}

/// The name of a time zone that this machine knows.
pub fn time_zone(text: &str) -> Result<String, String> {
    let zone = TimeZone::get(text.trim()).ok();
    let name = zone.as_ref().and_then(TimeZone::iana_name).map(str::to_owned);
    name.ok_or_else(|| "not a time zone; use a name such as Europe/Berlin".to_owned())
}

#[derive(Debug, Args)]
#[command(
    after_help = "You can run this command again: settings stay unless an option or an answer changes them. With --yes it asks nothing and uses the defaults. Without a terminal it needs --yes or --provider."
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Setup {
    /// Provider of models, as `gsv provider list` names it; `demo` for the built-in demo model [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Read the provider's key from stdin
    #[arg(long, requires = "provider")]
    pub key_stdin: bool,
    /// Model of the provider [default: the current one, else the provider's usual one]
    #[arg(long, value_name = "ID", requires = "provider")]
    pub model: Option<String>,
    /// Your name, for the agent [default: the agent asks when you meet]
    #[arg(long, value_name = "NAME", value_parser = person)]
    pub name: Option<String>,
    /// Your time zone, such as Europe/Berlin [default: the current one, else this machine's]
    #[arg(long, value_name = "ZONE", value_parser = time_zone)]
    pub timezone: Option<String>,
    /// Port of the gateway on this machine [default: that of its last start, else 8787]
    #[arg(long, value_name = "PORT", value_parser = port)]
    pub port: Option<u16>,
    /// Install the gateway and this machine's node as services [default, where the machine has a service manager]
    #[arg(long)]
    pub services: bool,
    /// Install no services
    #[arg(long, conflicts_with = "services")]
    pub no_services: bool,
    /// Do not link gsv into ~/.local/bin
    #[arg(long)]
    pub no_path: bool,
    /// First message to the agent; with --json none is sent [default: hello, where the conversation has no messages yet]
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Send no first message
    #[arg(long, conflicts_with = "message")]
    pub no_message: bool,
    /// Ask nothing, and use the defaults
    #[arg(short, long)]
    pub yes: bool,
}

impl Setup {
    /// As it is offered before a conversation, which is the first message.
    pub fn before_chat() -> Self {
        Self {
            provider: None,
            key_stdin: false,
            model: None,
            name: None,
            timezone: None,
            port: None,
            services: false,
            no_services: false,
            no_path: false,
            message: None,
            no_message: true,
            yes: false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models of a provider, with context size and prices
    List {
        /// Provider, such as anthropic [default: that of the current model]
        provider: Option<String>,
    },
    /// Change the model that answers, after one call of it
    Use {
        /// Provider and model, such as anthropic/claude-sonnet-5; a provider alone for its usual model
        #[arg(value_name = "PROVIDER/MODEL")]
        model: String,
        /// Do not call the model first
        #[arg(long)]
        untested: bool,
    },
    /// Test a model with one call of a few tokens
    Test {
        /// Provider and model [default: the one that answers]
        #[arg(value_name = "PROVIDER/MODEL")]
        model: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// List the providers of models
    List,
}
