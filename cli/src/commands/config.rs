//! `gsv config`: the gateway's settings; `config_edit` opens all of them in an editor. The gateway masks secrets and checks paths and values; nothing is checked twice.

use gsv_protocol::errors;
use gsv_protocol::methods::{ConfigGet, ConfigSet, ConfigUnset};
use gsv_protocol::types::{ConfigGetParams, ConfigSetParams, ConfigUnsetParams};
use serde_json::Value;

use super::config_edit;
use super::context::Context;
use crate::args::ConfigCommand;
use crate::clean::one_line;
use crate::config::Key;
use crate::exit::{Failure, Outcome};

/// A setting of this command line is none of the gateway's.
fn if_local(failure: Failure, verb: &str, path: &str) -> Failure {
    let is_unknown = failure.reason.as_deref() == Some(errors::CONFIG_UNKNOWN_PATH.reason);
    if !is_unknown || Key::parse(path).is_err() {
        return failure;
    }
    let value = if verb == "set" { " VALUE" } else { "" };
    let next = format!("It is a setting of this command line: `gsv local-config {verb} {path}{value}`.");
    Failure { next, ..failure }
}

/// What is wrong with a text that begins as JSON. A setting that takes any text may begin so, too.
fn json_mistake(text: &str) -> Option<String> {
    let begins_as_json = text.trim_start().starts_with(['{', '[', '"']);
    let error = serde_json::from_str::<Value>(text).err().filter(|_| begins_as_json)?;
    Some(error.to_string().replace("EOF while parsing", "the text ends inside"))
}

/// The gateway has refused the value as a text, so it was meant as JSON: the mistake is in there.
fn in_json(failure: Failure, mistake: Option<String>) -> Failure {
    let is_invalid = failure.reason.as_deref() == Some(errors::CONFIG_INVALID.reason);
    match mistake.filter(|_| is_invalid) {
        Some(mistake) => Failure {
            message: format!("The value is not valid JSON: {mistake}."),
            next: "Correct the value there, and set it again.".to_owned(),
            ..failure
        },
        None => failure,
    }
}

pub async fn run(context: &Context, command: ConfigCommand) -> Outcome {
    let out = context.out;
    match command {
        ConfigCommand::Get { path } => {
            let one = path.is_some();
            let asked = path.clone().unwrap_or_default();
            let result = context.ask::<ConfigGet>(ConfigGetParams { path }).await;
            let result = result.map_err(|failure| if_local(failure, "get", &asked))?;
            for setting in result.not_in_force.iter().flatten() {
                let setting = one_line(setting, 200);
                out.note(&format!(
                    "{setting} is stored, but this version of GSV does not use it. Remove it: `gsv config unset {setting}`"
                ));
            }
            for setting in result.unreadable.iter().flatten() {
                let setting = one_line(setting, 200);
                out.warn(&format!(
                    "{setting} is stored, but its key is missing (`gsv doctor`). Enter it again: `gsv config set {setting} -`"
                ));
            }
            let all = result.config.filter(|_| !one);
            match all.or(result.value).unwrap_or(Value::Null) {
                // A plain value is most useful without quotes.
                Value::String(text) if !out.json => out.content(&format!("{text}\n")),
                value => out.json_document(&value),
            }
        }
        ConfigCommand::Edit => config_edit::run(context).await?,
        ConfigCommand::Set { path, value } => {
            let text = context.value_or_stdin("gsv config set", &path, value)?;
            let mistake = json_mistake(&text);
            let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let asked = path.clone();
            let set = context.change::<ConfigSet>(ConfigSetParams { path, value }, |result| {
                out.warn_all(result.warnings.as_deref());
                format!("{} is set", one_line(&result.path, 200))
            });
            set.await
                .map_err(|failure| if_local(in_json(failure, mistake), "set", &asked))?;
        }
        ConfigCommand::Unset { path } => {
            let asked = path.clone();
            let unset = context.change::<ConfigUnset>(ConfigUnsetParams { path }, |result| {
                out.warn_all(result.warnings.as_deref());
                // An entry of a list has no default.
                let is_entry = result.path.rsplit('.').next().is_some_and(is_number);
                let words = match (result.was_set, is_entry) {
                    (true, true) => "is removed",
                    (true, false) => "has its default again",
                    (false, _) => "was not set",
                };
                format!("{} {words}", one_line(&result.path, 200))
            });
            unset.await.map_err(|failure| if_local(failure, "unset", &asked))?;
        }
    }
    Ok(())
}
fn is_number(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_digit())
}
