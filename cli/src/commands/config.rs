//! `gsv config`: the gateway's settings. The gateway masks secrets and checks paths and values; nothing is checked twice.

use gsv_protocol::methods::{ConfigGet, ConfigSet, ConfigUnset};
use gsv_protocol::types::{ConfigGetParams, ConfigSetParams, ConfigUnsetParams};
use serde_json::Value;

use super::{Context, value_or_stdin};
use crate::args::ConfigCommand;
use crate::clean::one_line;
use crate::exit::Outcome;

pub async fn run(context: &Context, command: ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Get { path } => get(context, path).await,
        ConfigCommand::Set { path, value } => set(context, path, value).await,
        ConfigCommand::Unset { path } => unset(context, path).await,
    }
}

async fn get(context: &Context, path: Option<String>) -> Outcome {
    let client = context.connect().await?;
    let one = path.is_some();
    let result = client.call::<ConfigGet>(ConfigGetParams { path }).await?;
    client.close().await;
    let value = if one {
        result.value
    } else {
        result.config.or(result.value)
    }
    .unwrap_or(Value::Null);
    match (&value, context.out.json) {
        // A plain value is most useful as it is; `--json` quotes it.
        (Value::String(text), false) => context.out.content(&format!("{text}\n")),
        _ => context.out.json_document(&value),
    }
    Ok(())
}

async fn set(context: &Context, path: String, value: String) -> Outcome {
    let text = value_or_stdin(value, context.out)?;
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let client = context.connect().await?;
    let result = client.call::<ConfigSet>(ConfigSetParams { path, value }).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        context.out.aside(&format!("{} is set", one_line(&result.path, 200)));
    }
    Ok(())
}

async fn unset(context: &Context, path: String) -> Outcome {
    let client = context.connect().await?;
    let result = client.call::<ConfigUnset>(ConfigUnsetParams { path }).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        let what = if result.was_set {
            "is back to its default"
        } else {
            "was not set"
        };
        context.out.aside(&format!("{} {what}", one_line(&result.path, 200)));
    }
    Ok(())
}
