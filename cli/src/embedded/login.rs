//! The first admin token of the gateway on this machine, and the local config that goes with it. Never loses a token: the
//! config is written before its hash.

use std::fs;
use std::path::{Path, PathBuf};

use gsv_link::Target;

use super::bootstrap::{Bootstrap, NewToken, sha256_hex};
use super::layout::Layout;
use super::sealing_key::SealingKeys;
use super::{ports, url};
use crate::config::{Config, FormerLogin, Key};
use crate::exit::Outcome;

/// What happened to the local config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// It was right already.
    Kept,
    /// Address and token of this gateway were stored. An earlier token is in the backup. `replaced`: the gateway revokes the first
    /// token that it had. `is_new`: the token was made now.
    Stored {
        backup: Option<PathBuf>,
        replaced: bool,
        is_new: bool,
    },
    /// It has the token of this gateway and another port. The address is stored when the gateway answers: a start may fail.
    Moved,
    /// It belongs to another gateway and was not changed. The token is stored with the former logins.
    Elsewhere { url: String },
    /// It belongs to another gateway and was not changed, and only the hash of this one's first token is known.
    ElsewhereTokenLost { url: String },
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
    let elsewhere = elsewhere(layout, &config).map(str::to_owned);
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
        if let Some(url) = elsewhere {
            if let Some(new) = &of_cluster {
                config.remember(Some(&folder(layout)), &here, &new.token)?;
            }
            let login = login_elsewhere(&config, &bootstrap, url);
            return Ok((bootstrap, login));
        }
        let login = own_login(&mut config, layout, &bootstrap, &here)?;
        return Ok((bootstrap, login));
    }
    let replaced = path.exists();
    let NewToken { token, bootstrap } = match of_cluster {
        Some(new) => new,
        None => NewToken::generate()?,
    };
    let login = if let Some(url) = elsewhere {
        // The token first, its hash second, as below.
        config.remember(None, &here, &token)?;
        Login::Elsewhere { url }
    } else {
        // The token may belong to another state folder, so it is kept in a backup.
        let had_token = config.get(Key::Token).is_some();
        let backup = had_token.then(|| config.back_up()).transpose()?.flatten();
        if !is_nodes_gateway(&config, layout, &here) {
            config.unset(Key::NodeToken);
        }
        config.set(Key::Url, &here)?;
        config.set(Key::Token, &token)?;
        // The token first, its hash second: an interruption between the two loses no token.
        config.save()?;
        Login::Stored {
            backup,
            replaced,
            is_new: true,
        }
    };
    bootstrap.write(&path)?;
    // Only a token whose hash is stored is known as this folder's.
    config.remember(Some(&folder(layout)), &here, &token)?;
    Ok((bootstrap, login))
}

/// What is said of the local config while it is for another gateway: this one is used with its address, which finds its token.
fn login_elsewhere(config: &Config, bootstrap: &Bootstrap, url: String) -> Login {
    let logins = config.former_logins();
    if logins.iter().any(|login| is_first(bootstrap, &login.token)) {
        Login::Elsewhere { url }
    } else {
        Login::ElsewhereTokenLost { url }
    }
}

/// The first token of this folder's gateway, where the local config is for another one and `address` is this gateway's.
pub fn own_token(layout: &Layout, config: &Config, address: &str) -> Option<String> {
    let bootstrap = Bootstrap::read(&layout.bootstrap()).ok()??;
    // Else the token of the local config is this gateway's, and the owner has chosen it.
    let is_own = elsewhere(layout, config).is_some() && is_own_address(layout, address);
    let logins = is_own.then(|| config.former_logins())?;
    let found = logins.into_iter().find(|login| is_first(&bootstrap, &login.token))?;
    Some(found.token)
}

/// Whether it is the address of this folder's gateway, by the port of its last start.
pub fn is_own_address(layout: &Layout, address: &str) -> bool {
    let port = ports::last_port(layout);
    is_unpinned_loopback(address) && Target::parse(address).is_ok_and(|target| Some(target.port) == port)
}

/// However its path is written.
fn folder(layout: &Layout) -> PathBuf {
    fs::canonicalize(&layout.home).unwrap_or_else(|_| layout.home.clone())
}

fn is_first(bootstrap: &Bootstrap, token: &str) -> bool {
    sha256_hex(token.as_bytes()) == bootstrap.sha256
}

/// Decides whether the login of the local config is this gateway's, and else puts back the one that it had (rule BK25). Another token of
/// this gateway, which the owner chose, stays. A token of another gateway never gets this one's address.
fn own_login(config: &mut Config, layout: &Layout, bootstrap: &Bootstrap, here: &str) -> Outcome<Login> {
    let home = folder(layout);
    let (stored, token) = (config.get(Key::Url), config.get(Key::Token));
    match (token, stored) {
        // The owner has removed it.
        (None, Some(_)) => return Ok(Login::TokenLost),
        (None, None) => {}
        (Some(token), stored) => {
            let is_first = is_first(bootstrap, token);
            let is_own_address = || stored.is_none_or(|stored| is_here(layout, stored, here));
            if is_first || (is_own_address() && !is_of_another(config, &home, token)) {
                if is_first {
                    config.remember(Some(&home), here, token)?;
                }
                let is_here = stored == Some(here);
                return Ok(if is_here { Login::Kept } else { Login::Moved });
            }
        }
    }
    let keeps_node = token.is_none();
    put_back(config, layout, bootstrap, here, keeps_node)
}

/// Whether a stored address is the one that this gateway has, or had at its last start.
fn is_here(layout: &Layout, stored: &str, here: &str) -> bool {
    stored == here || ports::last_port(layout).is_some_and(|last| url(last) == stored)
}

/// Whether the stored node can belong to this gateway: the stored address is this one's, and the stored token is not another folder's, which
/// had the same port before.
fn is_nodes_gateway(config: &Config, layout: &Layout, here: &str) -> bool {
    let is_others = |token| is_of_another(config, &folder(layout), token);
    config.get(Key::Url).is_none_or(|stored| is_here(layout, stored, here))
        && !config.get(Key::Token).is_some_and(is_others)
}

/// Whether it is the first token of another state folder.
fn is_of_another(config: &Config, home: &Path, token: &str) -> bool {
    let logins = config.former_logins();
    let is_others = |login: &FormerLogin| login.token == token && login.home.as_deref().is_some_and(|of| of != home);
    logins.iter().any(is_others)
}

/// The last login that the local config had for this gateway, other than the present one.
fn former_login(config: &Config, bootstrap: &Bootstrap, here: &str) -> Option<FormerLogin> {
    let present = config.get(Key::Token);
    let logins = config.former_logins().into_iter();
    logins
        .filter(|login| Some(login.token.as_str()) != present)
        .find(|login| is_first(bootstrap, &login.token) || (login.home.is_none() && login.url == here))
}

/// Whether `gsv up` has another login for this folder's gateway than the one of the local config.
pub fn has_former_login(layout: &Layout, config: &Config) -> bool {
    let bootstrap = Bootstrap::read(&layout.bootstrap()).ok().flatten();
    let port = ports::last_port(layout);
    bootstrap
        .zip(port)
        .is_some_and(|(bootstrap, port)| former_login(config, &bootstrap, &url(port)).is_some())
}

/// Puts back the login that the local config had for this gateway. `keeps_node`: the stored node belongs to this gateway, or there is none.
fn put_back(
    config: &mut Config,
    layout: &Layout,
    bootstrap: &Bootstrap,
    here: &str,
    keeps_node: bool,
) -> Outcome<Login> {
    let Some(found) = former_login(config, bootstrap, here) else {
        return Ok(Login::TokenLost);
    };
    let home = is_first(bootstrap, &found.token).then(|| folder(layout));
    let backup = config.return_login(home.as_deref(), here, &found.token, keeps_node)?;
    Ok(Login::Stored {
        backup,
        replaced: false,
        is_new: false,
    })
}

/// What the local config has for a gateway that runs already, on this port.
pub fn present(layout: &Layout, port: u16) -> Outcome<Login> {
    let mut config = Config::load()?;
    let bootstrap = Bootstrap::read(&layout.bootstrap())?;
    if let Some(url) = elsewhere(layout, &config) {
        let login = bootstrap.map(|bootstrap| login_elsewhere(&config, &bootstrap, url.to_owned()));
        return Ok(login.unwrap_or(Login::Kept));
    }
    if let Some(bootstrap) = bootstrap {
        return own_login(&mut config, layout, &bootstrap, &url(port));
    }
    let has_token = config.get(Key::Token).is_some();
    Ok(if has_token { Login::Kept } else { Login::TokenLost })
}

/// The token that is stored for this gateway, where it is not the first one: only the gateway knows whether it is valid.
pub fn unproven(layout: &Layout, port: u16) -> Outcome<Option<String>> {
    let config = Config::load()?;
    let Some(bootstrap) = Bootstrap::read(&layout.bootstrap())? else {
        return Ok(None);
    };
    let token = config.get(Key::Token).filter(|token| !is_first(&bootstrap, token));
    let is_here = config.get(Key::Url) == Some(url(port).as_str());
    Ok(token.filter(|_| is_here).map(str::to_owned))
}

/// The gateway has rejected the stored token.
pub fn rejected(layout: &Layout, port: u16) -> Outcome<Login> {
    let mut config = Config::load()?;
    match Bootstrap::read(&layout.bootstrap())? {
        Some(bootstrap) => {
            let here = url(port);
            let keeps_node = is_nodes_gateway(&config, layout, &here);
            put_back(&mut config, layout, &bootstrap, &here, keeps_node)
        }
        None => Ok(Login::TokenLost),
    }
}

/// Stores the address of a gateway that has moved to another port.
pub fn store_address(port: u16) -> Outcome {
    let mut config = Config::load()?;
    config.set(Key::Url, &url(port))?;
    config.save()
}

/// The address of another machine's gateway in the local config: one that is not on this machine, that has the certificate of an
/// invitation, or of which this machine is only a node (a tunnel).
pub fn elsewhere<'a>(layout: &Layout, config: &'a Config) -> Option<&'a str> {
    let stored = config.get(Key::Url)?;
    let is_own = || ports::last_port(layout).is_some_and(|port| stored == url(port));
    (!is_unpinned_loopback(stored) || (has_only_node_token(config) && !is_own())).then_some(stored)
}

/// Whether the local config has the token of a node and none of a client.
pub fn has_only_node_token(config: &Config) -> bool {
    config.get(Key::NodeToken).is_some() && config.get(Key::Token).is_none()
}

/// Whether it can be this machine's gateway: the address that `gsv up` stores has no certificate.
pub fn is_unpinned_loopback(url: &str) -> bool {
    Target::parse(url).is_ok_and(|target| target.is_loopback() && target.pin.is_none())
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &str) -> bool {
    Target::parse(url).is_ok_and(|target| target.is_loopback())
}
