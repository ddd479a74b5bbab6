//! `gsv local-config`: this command line's own settings. Never touches the network, never shows a secret.

use serde_json::{Map, Value};

use super::{Context, value_or_stdin};
use crate::args::LocalConfigCommand;
use crate::config::{Config, Key};
use crate::exit::{Failure, Outcome};

pub fn run(context: &Context, command: LocalConfigCommand) -> Outcome {
    let out = context.out;
    match command {
        LocalConfigCommand::Get { key: None } => {
            let config = Config::load()?;
            let shown: Vec<(&str, String)> = Key::ALL
                .iter()
                .filter_map(|key| Some((key.name(), config.show(*key)?)))
                .collect();
            if out.json {
                let object: Map<String, Value> = shown
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), Value::from(value)))
                    .collect();
                out.json_document(&object);
            } else if shown.is_empty() {
                out.aside("Nothing is set. Run `gsv up`, or `gsv local-config set url ...`.");
            } else {
                out.fields(&shown);
            }
        }
        LocalConfigCommand::Get { key: Some(name) } => {
            let key = Key::parse(&name)?;
            let value = Config::load()?.show(key).ok_or_else(|| {
                Failure::failed(
                    format!("`{name}` is not set."),
                    format!("Set it: `gsv local-config set {name} VALUE`."),
                )
            })?;
            if out.json {
                out.json_document(&value);
            } else {
                out.content(&format!("{value}\n"));
            }
        }
        LocalConfigCommand::Set { key, value } => {
            let key = Key::parse(&key)?;
            let value = value_or_stdin(value, out)?;
            let mut config = Config::load()?;
            config.set(key, &value)?;
            config.save()?;
            out.aside(&format!("{} is set", key.name()));
        }
        LocalConfigCommand::Unset { key } => {
            let key = Key::parse(&key)?;
            let mut config = Config::load()?;
            if config.unset(key) {
                config.save()?;
                out.aside(&format!("{} is removed", key.name()));
            } else {
                out.aside(&format!("{} was not set", key.name()));
            }
        }
        LocalConfigCommand::Path => out.line(&Config::path()?.display().to_string()),
    }
    Ok(())
}
