//! What the names of this state folder's services begin with.

use std::path::{Path, PathBuf};

use super::records::Records;
use super::spec::Spec;
use crate::embedded::bootstrap::sha256_hex;
use crate::exit::Outcome;
use crate::paths;

/// `gsv`, and a mark of the state folder if that is not the usual one. Two state folders are two gateways, and one that is written in two
/// ways is one. A service that is installed keeps its name.
pub fn prefix() -> Outcome<String> {
    let home = paths::real(&paths::state_dir()?);
    let usual = paths::home().ok().map(|user| user.join(".gsv"));
    let own = if usual.as_deref().is_some_and(|usual| paths::real(usual) == home) {
        "gsv".to_owned()
    } else {
        let mark = sha256_hex(home.as_os_str().as_encoded_bytes());
        format!("gsv.{}", &mark[..8])
    };
    let records = Records::find()?;
    let present: Vec<_> = records
        .names()
        .iter()
        .filter_map(|name| records.get(name))
        // A copied folder has the records of the original.
        .filter(|record| {
            folder(&record.spec)
                .or(usual.clone())
                .is_some_and(|of| paths::real(&of) == home)
        })
        .filter_map(|record| Some(record.spec.name.split_once('-')?.0.to_owned()))
        .collect();
    match present.first() {
        Some(first) if !present.contains(&own) => Ok(first.clone()),
        _ => Ok(own),
    }
}

/// The state folder that a service was told.
fn folder(spec: &Spec) -> Option<PathBuf> {
    let (_, folder) = spec.env.iter().find(|(name, _)| name == "GSV_HOME")?;
    Some(Path::new(folder).to_owned())
}
