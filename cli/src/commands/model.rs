//! `gsv model` and `gsv provider`: the model that answers, and what there is to choose from.

use std::path::Path;

use gsv_protocol::NoParams;
use gsv_protocol::errors;
use gsv_protocol::methods::{AgentsList, ConfigGet, ConfigReplace, ConfigSet, ModelTest, ModelsList};
use gsv_protocol::types::{
    ConfigGetParams, ConfigReplaceParams, ConfigSetParams, ModelEntry, ModelPrice, ModelRef, ModelTestParams,
    ModelTestResult, ModelsListParams, ProviderEntry,
};
use serde_json::{Value, json};

use super::context::Context;
use crate::args::{ModelCommand, ProviderCommand};
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::paths;
use crate::table::Table;
use crate::units::{dollars, duration, grouped};

/// The provider of the built-in demo model, and its model.
pub const DEMO: &str = "demo";
/// As the model of another provider: the one that GSV uses when none is named.
pub const USUAL: &str = "demo";

pub async fn run(context: &Context, command: ModelCommand) -> Outcome {
    let out = context.out;
    match command {
        ModelCommand::List { provider } => {
            let client = context.connect().await?;
            let provider = match provider {
                Some(provider) => provider,
                None => present(&client).await?.provider,
            };
            let result = client
                .call::<ModelsList>(ModelsListParams {
                    provider: Some(provider.clone()),
                })
                .await?;
            client.close().await;
            out.show(result, |result| {
                print_models(out, &provider, result.models.unwrap_or_default());
            });
            Ok(())
        }
        ModelCommand::Use { model, untested } => {
            let model = parse(&model)?;
            let client = context.connect().await?;
            let model = if untested {
                model
            } else {
                // Before the test: its failure would not name the reason.
                if let Some(warning) = server_of(&client, &model.provider).await?.warning() {
                    out.warn(&format!("{warning}, then run this command again."));
                }
                test(&client, model, None).await?.model
            };
            let chosen = choose(&client, &model).await?;
            let others = others(&client).await?;
            client.close().await;
            let words = format!(
                "{} answers from now on. A conversation with a model of its own keeps it; `/model default` there ends that.",
                name(&model)
            );
            out.done(&json!({ "model": model }), &words);
            chosen.warn(out);
            if let Some(others) = others {
                out.warn(&others);
            }
            Ok(())
        }
        ModelCommand::Test { model } => {
            let model = model.as_deref().map(parse).transpose()?;
            let params = ModelTestParams { model, api_key: None };
            context
                .change::<ModelTest>(params, |result| {
                    format!("{} answered in {}.", name(&result.model), duration(result.took_ms))
                })
                .await
        }
    }
}

pub async fn run_provider(context: &Context, command: ProviderCommand) -> Outcome {
    let out = context.out;
    match command {
        ProviderCommand::List => {
            let params = ModelsListParams { provider: None };
            let list = context.show::<ModelsList>(params, |result| {
                print_providers(out, &result.providers.unwrap_or_default());
            });
            list.await
        }
    }
}

pub fn name(model: &ModelRef) -> String {
    one_line(&format!("{}/{}", model.provider, model.id), 300)
}

/// `PROVIDER/MODEL`, whose model may have more slashes, or `PROVIDER`.
fn parse(text: &str) -> Outcome<ModelRef> {
    let (provider, id) = text.split_once('/').unwrap_or((text, USUAL));
    if provider.is_empty() || id.is_empty() {
        return Err(Failure::usage(
            format!("`{}` names no model.", one_line(text, 100)),
            "Write it like anthropic/claude-sonnet-5, or the provider alone.",
        ));
    }
    Ok(ModelRef {
        provider: provider.to_owned(),
        id: id.to_owned(),
    })
}

/// The model that answers where an agent has none of its own.
pub async fn present(client: &Client) -> Outcome<ModelRef> {
    let setting = settings(client).await?;
    let text = |name: &str| setting.get(name).and_then(Value::as_str).unwrap_or(DEMO).to_owned();
    Ok(ModelRef {
        provider: text("provider"),
        id: text("id"),
    })
}

async fn settings(client: &Client) -> Outcome<Value> {
    section(client, "model").await
}
async fn section(client: &Client, path: &str) -> Outcome<Value> {
    let path = Some(path.to_owned());
    Ok(client
        .call::<ConfigGet>(ConfigGetParams { path })
        .await?
        .value
        .unwrap_or_default())
}

/// What `model.baseUrl` means for a provider.
pub enum Server {
    /// Nothing: it is not set, or the provider has an address of its own.
    None,
    /// It is this provider's, which may need no key.
    Own,
    /// It was set before a provider was chosen, and no call goes there. The warning ends with the command that changes this.
    Unused(String),
    /// It is the server of another provider, and no call for this one goes there. The warning ends in the same way.
    OfAnother(String),
}
impl Server {
    /// What to say before a call.
    pub fn warning(self) -> Option<String> {
        match self {
            Self::Unused(warning) | Self::OfAnother(warning) => Some(warning),
            Self::None | Self::Own => None,
        }
    }
}
pub async fn server_of(client: &Client, provider: &str) -> Outcome<Server> {
    let setting = section(client, "model").await?;
    let text = |name: &str| setting.get(name).and_then(Value::as_str);
    let Some(address) = text("baseUrl") else {
        return Ok(Server::None);
    };
    let before = text("provider").unwrap_or(DEMO);
    if before == provider {
        return Ok(Server::Own);
    }
    let servers = section(client, "providers").await?;
    if servers.get(provider).is_some_and(|own| own.get("baseUrl").is_some()) {
        return Ok(Server::None);
    }
    let provider = one_line(provider, 100);
    let server = server_setting(&one_line(address, ADDRESS_CHARS), text("wire"));
    let set = format!("`gsv config set providers.{provider} {server}`");
    Ok(if before == DEMO {
        Server::Unused(format!(
            "`model.baseUrl` was set before {provider} was chosen and is not used for it. To use it: {set}"
        ))
    } else {
        let before = one_line(before, 100);
        Server::OfAnother(format!(
            "`model.baseUrl` is the server of {before} and is not used for {provider}. If it is the server of {provider} too: {set}"
        ))
    })
}
/// As many as the contract takes: a part of an address is none.
const ADDRESS_CHARS: usize = 2048;
/// The value of a setting `providers.NAME`, quoted for a shell.
fn server_setting(address: &str, wire: Option<&str>) -> String {
    let server = json!({"baseUrl": address, "wire": wire.unwrap_or("openai-completions")});
    paths::shell(Path::new(&server.to_string()))
}

/// Says which agents have a model of their own, which a choice does not change.
pub async fn others(client: &Client) -> Outcome<Option<String>> {
    let agents = client.call::<AgentsList>(NoParams {}).await?.agents;
    let own: Vec<String> = agents
        .iter()
        .filter_map(|agent| Some(format!("{} ({})", agent.agent_id, name(agent.model.as_ref()?))))
        .collect();
    let keep = match own.len() {
        0 => return Ok(None),
        1 => "keeps its own model",
        _ => "keep their own models",
    };
    Ok(Some(format!(
        "{} {keep}: see `gsv config get agents.list`",
        own.join(", ")
    )))
}

/// How often a change of the settings by someone else is taken in.
const TRIES: u32 = 5;

/// A model that was chosen, and what to tell about it.
pub struct Chosen {
    /// About the server that the settings named.
    server: Option<String>,
    /// Of the gateway, about the settings as they are now.
    warnings: Option<Vec<String>>,
}
impl Chosen {
    pub fn warn(&self, out: Output) {
        if let Some(server) = &self.server {
            out.warn(server);
        }
        out.warn_all(self.warnings.as_deref());
    }
}

/// In one change: no call sees one provider with another's model, and nothing that someone else changes meanwhile is lost.
pub async fn choose(client: &Client, model: &ModelRef) -> Outcome<Chosen> {
    let mut left = TRIES;
    loop {
        let shown = client.call::<ConfigGet>(ConfigGetParams { path: None }).await?;
        let (Some(Value::Object(mut config)), Some(version)) = (shown.config, shown.version) else {
            return choose_apart(client, model).await;
        };
        let before = config.remove("model").unwrap_or_default();
        let own = config.get("providers").and_then(|servers| servers.get(&model.provider));
        let has_server = own.is_some_and(|own| own.get("baseUrl").is_some());
        let (after, server) = with_model(before, model, has_server);
        config.insert("model".to_owned(), after);
        let config = Value::Object(config);
        let params = ConfigReplaceParams { config, version };
        left -= 1;
        match client.call::<ConfigReplace>(params).await {
            Err(failure) if left > 0 && failure.reason.as_deref() == Some(errors::CONFIG_CHANGED.reason) => {}
            done => {
                let warnings = done?.warnings;
                return Ok(Chosen { server, warnings });
            }
        }
    }
}
/// For an older gateway, which gives no version of its settings.
async fn choose_apart(client: &Client, model: &ModelRef) -> Outcome<Chosen> {
    let (value, server) = with_model(settings(client).await?, model, false);
    let path = "model".to_owned();
    let set = client.call::<ConfigSet>(ConfigSetParams { path, value }).await?;
    Ok(Chosen {
        server,
        warnings: set.warnings,
    })
}

/// Settings about the server of the provider before. Its headers are secrets: the next provider must not get them.
const OF_SERVER: [&str; 3] = ["baseUrl", "wire", "headers"];

/// The settings of the model, and what to tell about the server that they named. `has_server`: the provider has a server of its own.
fn with_model(mut value: Value, model: &ModelRef, has_server: bool) -> (Value, Option<String>) {
    if !value.is_object() {
        value = json!({});
    }
    let before = value.get("provider").and_then(Value::as_str).unwrap_or(DEMO).to_owned();
    let warning = (before != model.provider)
        .then(|| of_another_server(&mut value, &before, &model.provider, has_server))
        .flatten();
    value["provider"] = json!(model.provider);
    value["id"] = json!(model.id);
    (value, warning)
}

/// Removes them: a key and a message for the next provider never go to an address that was set before it was chosen.
fn of_another_server(value: &mut Value, before: &str, next: &str, has_server: bool) -> Option<String> {
    let fields = value.as_object_mut()?;
    let text = |name: &str| {
        fields
            .get(name)
            .and_then(Value::as_str)
            .map(|text| one_line(text, ADDRESS_CHARS))
    };
    let (address, wire) = (text("baseUrl"), text("wire"));
    let removed: Vec<String> = OF_SERVER
        .into_iter()
        .filter(|name| fields.remove(*name).is_some())
        .map(|name| format!("`model.{name}`"))
        .collect();
    if removed.is_empty() {
        return None;
    }
    let (before, next) = (one_line(before, 100), one_line(next, 100));
    let keep = match address {
        None => String::new(),
        Some(_) if before == DEMO && has_server => String::new(),
        // The demo model has no server, so the address may be meant for the model that is chosen now.
        Some(address) if before == DEMO => {
            let server = server_setting(&address, wire.as_deref());
            format!(" If it is the server of {next}: `gsv config set providers.{next} {server}`")
        }
        Some(address) => {
            let server = server_setting(&address, wire.as_deref());
            format!(" To keep the address for {before}: `gsv config set providers.{before} {server}`")
        }
    };
    let (was, is) = if removed.len() == 1 {
        ("was", "is")
    } else {
        ("were", "are")
    };
    Some(format!(
        "{} {was} set before {next} was chosen and {is} removed, so that nothing for {next} goes to another server.{keep}",
        removed.join(", "),
    ))
}

/// One call of a few tokens. `key`: one that is not stored.
pub async fn test(client: &Client, model: ModelRef, key: Option<&str>) -> Outcome<ModelTestResult> {
    let params = ModelTestParams {
        model: Some(model),
        api_key: key.map(str::to_owned),
    };
    client.call::<ModelTest>(params).await
}

pub fn print_providers(out: Output, providers: &[ProviderEntry]) {
    let rows = providers.iter().map(|entry| {
        let ready = if entry.ready { "yes" } else { "no key" };
        [
            entry.provider.clone(),
            entry.name.clone(),
            grouped(entry.models),
            ready.to_owned(),
        ]
    });
    out.table(&Table::new(["PROVIDER", "NAME", "MODELS", "READY"], rows));
}

pub fn print_models(out: Output, provider: &str, models: Vec<ModelEntry>) {
    if models.is_empty() {
        out.note(&format!(
            "No models of {} are listed. Any model that it has can be used: `gsv model use {}/ID`.",
            one_line(provider, 100),
            one_line(provider, 100)
        ));
        return;
    }
    let rows = models.into_iter().map(|model| {
        let takes = [("images", model.images), ("thinking", model.thinking)];
        let takes: Vec<&str> = takes
            .into_iter()
            .filter_map(|(what, does)| does.then_some(what))
            .collect();
        [
            model.id,
            grouped(model.context_window),
            price(model.price.as_ref()),
            takes.join(", "),
        ]
    });
    out.table(&Table::new(["MODEL", "CONTEXT", "$ IN / OUT (1M)", "TAKES"], rows));
}

fn price(price: Option<&ModelPrice>) -> String {
    price.map_or_else(
        || "not known".to_owned(),
        |price| format!("{} / {}", dollars(price.input), dollars(price.output)),
    )
}
