//! The secrets of a backup (rule BK4): the key of stored secrets and the first token. Without `--with-secrets` none of them is in the
//! copy, and the variables of channels are removed from it, because they may be secret.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::content::{BOOTSTRAP, CERTIFICATE, CHANNELS, SEALING_KEY, TOKEN};
use crate::config::{Config, Key};
use crate::embedded::bootstrap::{Bootstrap, sha256_hex};
use crate::embedded::layout::Layout;
use crate::embedded::up::last_port;
use crate::embedded::{DEFAULT_PORT, sealing_key, url};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths;

const NEXT: &str = "Check that the disk is not full.";

/// Removes from a copy what is secret. Returns the channels whose variables were removed.
pub fn remove(copy: &Path) -> Outcome<Vec<String>> {
    for secret in [BOOTSTRAP, CERTIFICATE] {
        let file = copy.join(secret);
        if file.exists() {
            fs::remove_file(&file).or_fail(format_args!("remove {secret} from the copy"), NEXT)?;
        }
    }
    let path = copy.join(CHANNELS);
    let Ok(bytes) = fs::read(&path) else {
        return Ok(Vec::new());
    };
    let mut content: Value = serde_json::from_slice(&bytes).map_err(|_| {
        Failure::failed(
            "channels.json in the state folder is not JSON, so its secrets can't be left out.",
            "Correct the file, or add --with-secrets.",
        )
    })?;
    let mut without = Vec::new();
    for (name, entry) in content
        .get_mut("channels")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        let removed = entry.as_object_mut().and_then(|entry| entry.remove("vars"));
        if removed.is_some_and(|vars| vars.as_object().is_none_or(|vars| !vars.is_empty())) {
            without.push(name.clone());
        }
    }
    if !without.is_empty() {
        let text = serde_json::to_vec_pretty(&content).unwrap_or_default();
        paths::write_private_file(&path, &text).or_fail("write the copy of channels.json", NEXT)?;
    }
    Ok(without)
}

/// Adds the sealing key and, when the local config has it, the first token to a copy.
pub fn add(copy: &Path) -> Outcome {
    let dir = copy.join("secrets");
    paths::ensure_private_dir(&dir)?;
    if sealing_key::SealingKeys::read()?.is_some() {
        let from = sealing_key::path()?;
        fs::copy(&from, copy.join(SEALING_KEY)).or_fail(format_args!("copy {}", from.display()), NEXT)?;
    }
    let token = Config::load()?.get(Key::Token).map(str::to_owned);
    let bootstrap = Bootstrap::read(&copy.join(BOOTSTRAP))?;
    if let (Some(token), Some(bootstrap)) = (token, bootstrap)
        && sha256_hex(token.as_bytes()) == bootstrap.sha256
    {
        paths::write_private_file(&copy.join(TOKEN), token.as_bytes()).or_fail("copy the first token", NEXT)?;
    }
    Ok(())
}

/// What became of the secrets of a backup.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Installed {
    pub keys: usize,
    pub token: bool,
}

/// Puts the secrets of a restored state, which is still aside in `new`, into the configuration folder, and removes them from `new`. Keys
/// are added after those that are there, and a token is stored only where there is none: nothing is lost, also when the restore ends here.
pub fn install(new: &Path) -> Outcome<Installed> {
    let mut installed = Installed::default();
    let dir = new.join("secrets");
    let key = fs::read_to_string(new.join(SEALING_KEY)).ok();
    if let Some(text) = key {
        installed.keys = sealing_key::merge(&text)?;
    }
    if let Ok(token) = fs::read_to_string(new.join(TOKEN)) {
        let mut config = Config::load()?;
        if config.get(Key::Token).is_none() && config.get(Key::Url).is_none() {
            let port = last_port(&Layout { home: new.to_owned() }).unwrap_or(DEFAULT_PORT);
            config.set(Key::Url, &url(port))?;
            config.set(Key::Token, token.trim())?;
            config.save()?;
            installed.token = true;
        }
    }
    if dir.exists() {
        fs::remove_dir_all(&dir).or_fail("remove the secrets from the restored state", NEXT)?;
    }
    Ok(installed)
}
