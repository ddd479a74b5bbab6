//! `deploy.json` of the configuration folder: which account this machine has deployed to, where the gateway answers, and what a run that
//! broke off was to do. It holds no secret; without it, `gsv deploy` asks for the account again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::embedded::channel_name::Name;
use crate::embedded::lock::Lock;
use crate::exit::{Failure, Outcome};
use crate::{paths, private_file};

const FILE: &str = "deploy.json";
const LOCK: &str = "deploy.lock";
const REPAIR: &str = "Remove the file: `gsv deploy` then asks for the account again.";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    pub account_id: String,
    pub account_name: String,
    /// Where the gateway answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Given by the owner, not that of workers.dev.
    #[serde(default)]
    pub is_own_address: bool,
    /// What the last `gsv deploy up` was to do, until it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
}

/// The next run takes it over, unless it is told otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unfinished {
    pub channels: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectorize: Option<u32>,
    pub new_token: bool,
}

fn path() -> Outcome<PathBuf> {
    Ok(paths::config_dir()?.join(FILE))
}

/// Held while something is changed: of two runs at once, the second one would look before the first one has made.
pub fn hold() -> Outcome<Lock> {
    let folder = paths::config_dir()?;
    paths::ensure_private_dir(&folder)?;
    Lock::try_take(&folder.join(LOCK))?.ok_or_else(|| {
        Failure::later(
            "Another `gsv deploy` is running on this machine.",
            "Wait until it ends, then run this again.",
        )
    })
}

impl Record {
    pub fn read() -> Outcome<Option<Self>> {
        let path = path()?;
        let Some(text) = private_file::read_private(&path, REPAIR)? else {
            return Ok(None);
        };
        let record = serde_json::from_str(&text);
        record
            .map(Some)
            .map_err(|_| private_file::unusable(&path, "it is not a record of a deployment", REPAIR))
    }

    pub fn write(&self) -> Outcome {
        paths::ensure_private_dir(&paths::config_dir()?)?;
        private_file::write(&path()?, serde_json::to_string_pretty(self).unwrap_or_default())
    }

    pub fn remove() {
        // A record that stays names an account without a deployment, which `gsv deploy status` tells.
        let _ = path().map(std::fs::remove_file);
    }
}
