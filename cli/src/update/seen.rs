//! The newest manifest of each channel that this user has seen at an address, so that an old one is noticed. In the configuration folder,
//! because it is about the program, not about one state.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::manifest::{Channel, Manifest, Seen};
use crate::embedded::bootstrap::sha256_hex;
use crate::exit::Outcome;
use crate::{paths, private_file};

/// By channel and a hash of the address, which may hold a password of the owner's proxy.
type Table = BTreeMap<String, Seen>;

fn path() -> Outcome<PathBuf> {
    Ok(paths::config_dir()?.join("releases-seen.json"))
}

fn key(channel: Channel, address: &str) -> String {
    let hash = sha256_hex(address.as_bytes());
    format!("{} {}", channel.as_str(), hash.get(..16).unwrap_or_default())
}

fn read() -> Outcome<Table> {
    let path = path()?;
    let repair = format!("Remove it: `rm {}`.", paths::shell(&path));
    let Some(text) = private_file::read_private(&path, &repair)? else {
        return Ok(Table::new());
    };
    serde_json::from_str(&text).map_err(|_| private_file::unusable(&path, "it is damaged", &repair))
}

pub fn find(channel: Channel, address: &str) -> Outcome<Seen> {
    Ok(read()?.remove(&key(channel, address)).unwrap_or_default())
}

/// Before anything is replaced.
pub fn note(channel: Channel, address: &str, manifest: &Manifest) -> Outcome {
    let mut table = read()?;
    let seen = Seen {
        version: manifest.version.to_string(),
        published_at: manifest.published_at,
    };
    if table.insert(key(channel, address), seen.clone()) == Some(seen) {
        return Ok(());
    }
    paths::ensure_private_dir(&paths::config_dir()?)?;
    private_file::write(&path()?, serde_json::to_vec_pretty(&table).unwrap_or_default())
}
