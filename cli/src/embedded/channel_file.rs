//! `channels.json` of the state folder: which channels run with the gateway, and with which settings. Reads it with its
//! limits, and changes it under the command lock.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::channel_name::{Name, is_word};
use super::layout::Layout;
use super::lock::Lock;
use crate::exit::Outcome;
use crate::private_file;

const VERSION: u32 = 1;
const MAX_CHANNELS: usize = 32;
const MAX_VARS: usize = 32;
const MAX_VAR_NAME_BYTES: usize = 64;
const MAX_VAR_BYTES: usize = 8 * 1024;
const MAX_CERTIFICATES: usize = 8;
/// Bindings that every channel's Worker has.
const RESERVED: [&str; 4] = ["ACCOUNT", "GATEWAY", "SEALING_KEYS", "STORAGE"];
const PATIENCE: Duration = Duration::from_secs(45);
const REPAIR: &str = "Correct the file; or remove it, and start the channels again that you want.";

/// `channels.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    version: u32,
    #[serde(default)]
    pub channels: BTreeMap<Name, Entry>,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            version: VERSION,
            channels: BTreeMap::new(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Entry {
    pub enabled: bool,
    /// Variables and secrets of the Worker.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// PEM files of further certificate authorities that this channel trusts, for a proxy or a test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_certificates: Vec<PathBuf>,
}

/// Without the values of variables, which may be secret.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars = self.vars.len();
        write!(f, "Entry {{ enabled: {}, vars: {vars}, .. }}", self.enabled)
    }
}

/// A missing file is an empty one.
pub fn read(layout: &Layout) -> Outcome<Content> {
    let path = layout.channels();
    let Some(text) = private_file::read_private(&path, REPAIR)? else {
        return Ok(Content::default());
    };
    // The parser's own message would repeat the content, which may be secret.
    let content = serde_json::from_str(&text).map_err(|error| {
        let what = if error.is_data() {
            "it has an unknown field or value"
        } else {
            "it is not JSON"
        };
        format!("{what} (line {}, column {})", error.line(), error.column())
    });
    content
        .and_then(checked)
        .map_err(|why| private_file::unusable(&path, &why, REPAIR))
}

fn checked(content: Content) -> Result<Content, String> {
    if content.version != VERSION {
        return Err(format!("its version is {}, not {VERSION}", content.version));
    }
    if content.channels.len() > MAX_CHANNELS {
        return Err(format!("it names more than {MAX_CHANNELS} channels"));
    }
    for (name, entry) in &content.channels {
        if entry.vars.len() > MAX_VARS || entry.trusted_certificates.len() > MAX_CERTIFICATES {
            return Err(format!("{name} has too many variables or certificates"));
        }
        for (var, value) in &entry.vars {
            if !is_var_name(var) {
                return Err(format!(
                    "{name} has a variable whose name is not of A-Z, 0-9 and _, or is one of {}",
                    RESERVED.join(", ")
                ));
            }
            if value.len() > MAX_VAR_BYTES {
                return Err(format!("{var} of {name} has more than {MAX_VAR_BYTES} bytes"));
            }
        }
    }
    Ok(content)
}

fn is_var_name(text: &str) -> bool {
    text.len() <= MAX_VAR_NAME_BYTES && is_word(text, u8::is_ascii_uppercase) && !RESERVED.contains(&text)
}

/// Returns what `edit` returns: whether it changed the content.
pub fn change(layout: &Layout, edit: impl FnOnce(&mut Content) -> bool) -> Outcome<bool> {
    layout.ensure()?;
    let _command_lock = Lock::take(&layout.command_lock(), PATIENCE)?;
    let mut content = read(layout)?;
    let is_changed = edit(&mut content);
    if is_changed {
        let text = serde_json::to_string_pretty(&content).unwrap_or_default();
        private_file::write(&layout.channels(), text)?;
    }
    Ok(is_changed)
}
