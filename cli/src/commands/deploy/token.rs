//! The first admin token of a deployment, and the local config that goes with it. Cloudflare gets only its hash, and the config is written
//! before: an interruption loses no token that the config has.

use std::path::PathBuf;

use gsv_link::Target;

use crate::ask;
use crate::config::{Config, Key};
use crate::embedded::bootstrap::{NewToken, sha256_hex};
use crate::exit::Outcome;
use crate::output::Output;

pub struct First {
    pub token: String,
    pub hash: String,
    /// The local config has it.
    pub is_stored: bool,
    /// Where an earlier login was put.
    pub backup: Option<PathBuf>,
    /// The config had it before.
    pub is_known: bool,
}

/// Makes a token, or takes the one that the local config has for this address, unless that is to be replaced.
pub fn first(out: Output, target: &Target, replace: bool, login: bool, yes: bool) -> Outcome<First> {
    let mut config = Config::load()?;
    let known = config.get(Key::Token).map(str::to_owned);
    let is_here = config.get(Key::Url) == Some(target.shown.as_str());
    if let Some(token) = known
        .clone()
        .filter(|token| !replace && is_here && token.starts_with("gsv_admin_"))
    {
        let hash = sha256_hex(token.as_bytes());
        return Ok(First {
            token,
            hash,
            is_stored: true,
            backup: None,
            is_known: true,
        });
    }
    let NewToken { token, bootstrap } = NewToken::generate()?;
    let mut first = First {
        token,
        hash: bootstrap.sha256,
        is_stored: is_here || (config.get(Key::Url).is_none() && known.is_none()) || login,
        backup: None,
        is_known: false,
    };
    if !first.is_stored && !yes && ask::is_possible(out) {
        let now = config.get(Key::Url).unwrap_or("a gateway on this machine");
        let question = format!(
            "`gsv` uses {now} here. Use the deployed gateway from now on? Its login is kept in a backup. [y = yes, anything else keeps it]"
        );
        first.is_stored = matches!(ask::answer(out, &question).as_str(), "y" | "yes");
    }
    if first.is_stored {
        first.backup = known.is_some().then(|| config.back_up()).transpose()?.flatten();
        config.set(Key::Url, &target.shown)?;
        config.set(Key::Token, &first.token)?;
        config.save()?;
    }
    Ok(first)
}
