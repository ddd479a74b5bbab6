//! The first admin token of the gateway on this machine, and the local config that goes with it. Never loses a token: the
//! config is written before its hash.

use std::path::PathBuf;

use gsv_link::Target;

use super::bootstrap::{Bootstrap, NewToken, sha256_hex};
use super::layout::Layout;
use super::sealing_key::SealingKeys;
use super::url;
use crate::config::{Config, FormerLogin, Key};
use crate::exit::Outcome;

/// What happened to the local config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// It was right already.
    Kept,
    /// Address and token of this gateway were stored. An earlier token is in the backup. `replaced`: the gateway revokes the first
    /// token that it had.
    Stored { backup: Option<PathBuf>, replaced: bool },
    /// It has the token of this gateway and another port. The address is stored when the gateway answers: a start may fail.
    Moved,
    /// It belongs to another gateway and was not changed. This is the only time that the token is shown.
    Elsewhere { url: String, token: String },
    /// It has no token, and only the hash of the first token is known.
    TokenLost,
}

/// Which first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// The one that there is, else a new one.
    Same,
    New,
    /// The one that follows from the key of the cluster that this home is in.
    OfCluster,
}

/// Finds or makes the first admin token, and writes the local config if it does not belong to another gateway.
pub fn login(layout: &Layout, port: u16, ask: Ask) -> Outcome<(Bootstrap, Login)> {
    let path = layout.bootstrap();
    let mut config = Config::load()?;
    let here = url(port);
    let elsewhere = config.get(Key::Url).filter(|url| !is_loopback(url)).map(str::to_owned);
    let of_cluster = match ask {
        Ask::OfCluster => Some(NewToken::of_cluster(&SealingKeys::ensure_file()?)?),
        Ask::Same | Ask::New => None,
    };
    // In a cluster it follows from a key, which may have changed.
    let is_current = |stored: &Bootstrap| {
        let wanted = of_cluster.as_ref().map(|new| &new.bootstrap.sha256);
        wanted.is_none_or(|wanted| *wanted == stored.sha256)
    };
    if ask != Ask::New
        && let Some(bootstrap) = Bootstrap::read(&path)?.filter(is_current)
    {
        if elsewhere.is_some() {
            return Ok((bootstrap, Login::Kept));
        }
        if config.get(Key::Token).is_none() {
            return Ok((bootstrap, Login::TokenLost));
        }
        if let Some(login) = return_login(&mut config, &bootstrap, &here)? {
            return Ok((bootstrap, login));
        }
        if config.get(Key::Url) == Some(here.as_str()) {
            return Ok((bootstrap, Login::Kept));
        }
        return Ok((bootstrap, Login::Moved));
    }
    let replaced = path.exists();
    let NewToken { token, bootstrap } = match of_cluster {
        Some(new) => new,
        None => NewToken::generate()?,
    };
    let login = if let Some(url) = elsewhere {
        Login::Elsewhere { url, token }
    } else {
        // The token may belong to another state folder, so it is kept in a backup.
        let had_token = config.get(Key::Token).is_some();
        let backup = had_token.then(|| config.back_up()).transpose()?;
        config.set(Key::Url, &here)?;
        config.set(Key::Token, &token)?;
        // The token first, its hash second: an interruption between the two loses no token.
        config.save()?;
        Login::Stored { backup, replaced }
    };
    bootstrap.write(&path)?;
    Ok((bootstrap, login))
}

/// The gateway of another state folder of this machine has put its login into the local config, and this gateway's is in the backup: the
/// two change places. Another token of this gateway, which the owner chose, stays.
fn return_login(config: &mut Config, bootstrap: &Bootstrap, here: &str) -> Outcome<Option<Login>> {
    if config.get(Key::Url) == Some(here) {
        return Ok(None);
    }
    config.settle()?;
    let is_ours = |former: &FormerLogin| former.url == here && sha256_hex(former.token.as_bytes()) == bootstrap.sha256;
    let Some(former) = config.former_login().filter(is_ours) else {
        return Ok(None);
    };
    let backup = Some(config.exchange(&former.url, &former.token)?);
    Ok(Some(Login::Stored {
        backup,
        replaced: false,
    }))
}

/// What the local config has for a gateway that runs already, on this port.
pub fn present(layout: &Layout, port: u16) -> Outcome<Login> {
    let mut config = Config::load()?;
    if config.get(Key::Url).is_some_and(is_loopback)
        && let Some(bootstrap) = Bootstrap::read(&layout.bootstrap())?
        && let Some(login) = return_login(&mut config, &bootstrap, &url(port))?
    {
        return Ok(login);
    }
    let is_ours = config.get(Key::Url).is_none_or(is_loopback);
    let has_token = config.get(Key::Token).is_some();
    Ok(if is_ours && !has_token {
        Login::TokenLost
    } else {
        Login::Kept
    })
}

/// Stores the address of a gateway that has moved to another port.
pub fn store_address(port: u16) -> Outcome {
    let mut config = Config::load()?;
    config.set(Key::Url, &url(port))?;
    config.save()
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &str) -> bool {
    Target::parse(url).is_ok_and(|target| target.is_loopback())
}
