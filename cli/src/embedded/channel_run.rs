//! The channels that run with the gateway: those that are enabled and have a bundle in the runtime. A fault of one channel
//! or of `channels.json` is reported and never keeps the gateway from starting.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::channel_file::{self, Content};
use super::channel_name::Name;
use super::layout::Layout;
use super::runtime::{ChannelBundle, Runtime};

const MAX_CERTIFICATE_BYTES: u64 = 64 * 1024;

/// A channel that can run.
pub struct Channel {
    pub name: Name,
    pub bundle: ChannelBundle,
    pub vars: BTreeMap<String, String>,
    /// PEM texts.
    pub certificates: Vec<String>,
}

/// The channels to run, and warnings about the others. Never fails: the gateway starts without them.
pub fn to_run(layout: &Layout, runtime: &Runtime) -> (Vec<Channel>, Vec<String>) {
    let mut warnings = Vec::new();
    let content = channel_file::read(layout).unwrap_or_else(|failure| {
        warnings.push(format!("no channel runs: {} {}", failure.message, failure.next));
        Content::default()
    });
    let mut channels = Vec::new();
    for (name, entry) in content.channels {
        if !entry.enabled {
            continue;
        }
        let bundle = match bundle(runtime, &name) {
            Ok(bundle) => bundle,
            Err(why) => {
                warnings.push(format!(
                    "the channel {name} is enabled and does not run: {why}. Build or install the runtime again."
                ));
                continue;
            }
        };
        let mut certificates = Vec::new();
        for path in entry.trusted_certificates {
            match certificate(&path) {
                Ok(text) => certificates.push(text),
                Err(why) => warnings.push(format!(
                    "the channel {name} runs without the certificate {}: {why}.",
                    path.display()
                )),
            }
        }
        channels.push(Channel {
            name,
            bundle,
            vars: entry.vars,
            certificates,
        });
    }
    (channels, warnings)
}

fn bundle(runtime: &Runtime, name: &Name) -> Result<ChannelBundle, String> {
    let script = runtime.channel_script(name);
    let file = fs::metadata(&script).ok().filter(fs::Metadata::is_file);
    match (file, runtime.manifest.channels.get(name)) {
        (Some(file), Some(bundle)) if bundle.bytes.is_none_or(|bytes| bytes == file.len()) => Ok(bundle.clone()),
        (Some(_), Some(_)) => Err(format!("{} is damaged", script.display())),
        _ => Err(format!("{} is missing", script.display())),
    }
}

/// The text of a PEM file. The certificates themselves are not checked.
fn certificate(path: &Path) -> Result<String, String> {
    if !path.is_absolute() {
        return Err("its path is not absolute".to_owned());
    }
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() || meta.len() > MAX_CERTIFICATE_BYTES {
        return Err("it is not a PEM file".to_owned());
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let pem = text.trim();
    if pem.starts_with("-----BEGIN CERTIFICATE-----") && pem.ends_with("-----END CERTIFICATE-----") {
        Ok(text)
    } else {
        Err("it is not a PEM file".to_owned())
    }
}
