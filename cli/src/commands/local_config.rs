//! `gsv local-config`: this command line's own settings. Never uses the network, never shows a secret.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::context::Context;
use crate::args::LocalConfigCommand;
use crate::config::{Config, Key, OF_ONE_GATEWAY};
use crate::exit::{Failure, Outcome};

/// Whether the setting was there, and where the former content is, if more than that setting was removed.
fn unset(path: &Path, key: Key) -> Outcome<(bool, Option<PathBuf>)> {
    let mut config = Config::load_locked(path)?;
    let was_set = config.get(key).is_some();
    // Without its address, a token would be sent to the gateway whose address is stored next (rule BK25).
    let others: Vec<Key> = OF_ONE_GATEWAY
        .into_iter()
        .filter(|other| key == Key::Url && was_set && *other != key && config.get(*other).is_some())
        .collect();
    let backup = (!others.is_empty()).then(|| config.back_up()).transpose()?.flatten();
    for key in others.into_iter().chain([key]) {
        config.unset(key);
    }
    if was_set {
        config.save()?;
    }
    Ok((was_set, backup))
}

pub fn run(context: &Context, command: LocalConfigCommand) -> Outcome {
    let out = context.out;
    match command {
        LocalConfigCommand::Get { key: None } => {
            let config = Config::load()?;
            let shown = Key::ALL.iter().filter_map(|key| Some((key.name(), config.show(*key)?)));
            let shown: Vec<(&str, String)> = shown.collect();
            if out.json {
                out.json_document(&shown.into_iter().collect::<BTreeMap<_, _>>());
            } else if shown.is_empty() {
                out.aside("Nothing is set. Run `gsv up`, or `gsv local-config set url URL`.");
            } else {
                out.fields(shown);
            }
        }
        LocalConfigCommand::Get { key: Some(name) } => {
            let value = Config::load()?.show(Key::parse(&name)?).ok_or_else(|| {
                let next = format!("Set it: `gsv local-config set {name} VALUE`.");
                Failure::failed(format!("`{name}` is not set."), next)
            })?;
            out.show(value, |value| out.content(&format!("{value}\n")));
        }
        LocalConfigCommand::Set { key, value } => {
            let key = Key::parse(&key)?;
            let value = context.value_or_stdin("gsv local-config set", key.name(), value)?;
            let mut config = Config::load()?;
            config.set(key, &value)?;
            config.save()?;
            out.aside(&format!("{} is set", key.name()));
        }
        LocalConfigCommand::Unset { key } => {
            let key = Key::parse(&key)?;
            let (was_set, backup) = unset(&Config::path()?, key)?;
            let words = if was_set { "is removed" } else { "was not set" };
            out.aside(&format!("{} {words}", key.name()));
            if let Some(backup) = backup {
                out.note(&format!(
                    "What belongs to that gateway, its token and the node, was removed with it. The former content is in {}. For the gateway of this machine, `gsv up` puts all of it back.",
                    backup.display()
                ));
            }
        }
        LocalConfigCommand::Path => {
            // A file that cannot be read is the one to look at.
            let path = Config::load().map_or_else(|_| Config::path(), |config| Ok(config.file().to_owned()))?;
            out.line(&path.display().to_string());
        }
    }
    Ok(())
}
