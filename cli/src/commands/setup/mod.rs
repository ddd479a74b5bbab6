//! `gsv setup`: from a gateway with the demo model to an agent that answers after each restart of this machine. Each step may be
//! repeated, and a step that fails leaves those before it done.

mod dialogue;
mod machine;
mod model;
mod owner;

use gsv_protocol::methods::SessionPreview;
use gsv_protocol::types::SessionPreviewParams;
use serde_json::json;

use self::dialogue::Dialogue;
use super::chat;
use super::context::{Context, block_on};
use super::local::Local;
use super::own_gateway::is_own;
use super::{gateway, model as models};
use crate::args::{Chat, Setup};
use crate::ask;
use crate::clean::one_line;
use crate::client::find_url;
use crate::config::{Config, Key};
use crate::embedded::layout::Layout;
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// The first message, unless another one is given.
const GREETING: &str = "hello";

pub fn run(context: &Context, args: &Setup) -> Outcome {
    let out = context.out;
    check_decided(out, args)?;
    let dialogue = Dialogue::new(out, !args.yes);
    // Before anything is started: a key that is missing leaves all as it was.
    model::check_model(args.provider.as_deref().unwrap_or_default(), args.model.as_deref())?;
    let key = model::given_key(&dialogue, args)?;
    let is_started = start_gateway(context, args.port)?;
    let mut done = json!({});
    block_on(async {
        // Only the gateway has the list of providers.
        let model = model::choose(context, &dialogue, args, key).await;
        let model = model.map_err(|failure| if is_started { and_runs(failure) } else { failure })?;
        done["model"] = json!(model);
        done["timezone"] = json!(owner::introduce(context, &dialogue, args).await?);
        if !out.json {
            out.note(&format!("Model: {}", models::name(&model)));
        }
        Ok(())
    })?;
    done["services"] = json!(machine::install_services(context, &dialogue, args)?);
    if !args.no_path {
        done["path"] = json!(machine::link_program(out)?);
    }
    if out.json {
        out.json_document(&done);
        return Ok(());
    }
    out.aside("WhatsApp, Discord and others: `gsv channel list`. Run `gsv setup` again to change something.");
    if args.no_message {
        return Ok(());
    }
    block_on(send_first(context, args.message.as_deref()))
}

/// Where nothing can be asked, the person has to say that the defaults are right: they choose a model and a time zone.
fn check_decided(out: Output, args: &Setup) -> Outcome {
    if args.yes || args.provider.is_some() || ask::is_possible(out) {
        return Ok(());
    }
    let why = if out.json {
        "With --json nothing is asked"
    } else {
        "Without a terminal nothing can be asked"
    };
    Err(Failure::usage(
        format!("{why}, and no option says what to set up. Nothing was changed."),
        "Use the defaults: `gsv setup --yes`. Or name a provider: `gsv setup --provider anthropic --key-stdin --yes < key`.",
    ))
}

/// The message that was given, else a greeting, which is only for a conversation without messages.
async fn send_first(context: &Context, given: Option<&str>) -> Outcome {
    let out = context.out;
    if given.is_none() && has_messages(context).await? {
        out.aside("Your conversation has messages already, so no first message is sent. Go on with `gsv chat`.");
        return Ok(());
    }
    let text = given.unwrap_or(GREETING);
    out.note(&format!("\nYour first message: {}", one_line(text, 200)));
    chat::run(context, Chat::of(text)).await
}

/// A conversation that can't be read counts as one without messages: the message then tells why.
async fn has_messages(context: &Context) -> Outcome<bool> {
    let params = SessionPreviewParams {
        session_key: Context::session(None)?,
        limit: Some(1),
        notes: None,
    };
    let client = context.connect().await?;
    let found = client.call::<SessionPreview>(params).await;
    client.close().await;
    Ok(found.is_ok_and(|found| found.message_count > 0))
}

/// A failure after the start of the gateway, which stays.
fn and_runs(failure: Failure) -> Failure {
    let next = failure.next.trim_end();
    Failure {
        next: format!("{next} The gateway was started and goes on; `gsv down` stops it.")
            .trim_start()
            .to_owned(),
        ..failure
    }
}

/// Starts this machine's gateway, and returns whether it did not run before. Refuses `--port` when the local config names another gateway.
fn start_gateway(context: &Context, port: Option<u16>) -> Outcome<bool> {
    let layout = Layout::find()?;
    let is_here = is_here(context, &layout)?;
    if !is_here && port.is_some() {
        return Err(Failure::usage(
            "The local config is for another gateway, and --port is the port of this machine's own.",
            "Leave out --port; or show the address of the other gateway: `gsv local-config get url`.",
        ));
    }
    let runs = matches!(Local::look(&layout), Local::Running(_) | Local::Unknown);
    // A running gateway keeps its port; `ensure` says so.
    if !is_here || (runs && port.is_none()) {
        return Ok(false);
    }
    gateway::ensure(context.out.for_people(), &layout, port)?;
    Ok(!runs)
}

/// Whether the gateway that is set up is this machine's own.
fn is_here(context: &Context, layout: &Layout) -> Outcome<bool> {
    let config = Config::load()?;
    if context.global.url.is_none() && config.get(Key::Url).is_none() {
        return Ok(true);
    }
    let url = find_url(&context.global, &config)?;
    Ok(is_own(&Local::look(layout), layout, &url, Some(&config)))
}
