//! What a start of the gateway did to the local config, in words.

use crate::client::without_login;
use crate::config::Config;
use crate::embedded::listen::Listening;
use crate::embedded::up::Login;
use crate::output::Output;

pub const TOKEN_LOST: &str = "the local config has no token for this gateway. Set one, or create a new first one: `gsv down && gsv up --new-token`";

/// Where other machines reach the gateway. `None`: nowhere.
pub fn report_listening(out: Output, listening: Option<&Listening>) {
    let Some(listening) = listening else { return };
    out.note(&format!("Listening for other machines on {}.", listening.words()));
    if listening.listen.proxy.is_some() {
        out.warn("this address is not encrypted: make sure that only the proxy can reach it");
    }
}

/// What a start did to the local config.
pub fn report_login(out: Output, url: &str, login: &Login) {
    match login {
        Login::Kept => {}
        Login::Moved => out.aside("The gateway's new address is stored in the local config."),
        Login::Stored {
            backup,
            replaced,
            is_new,
        } => {
            match backup {
                None => out.aside("Address and token are stored in the local config. Try it: `gsv chat hello`"),
                Some(path) => out.note(&format!(
                    "Address and token are stored in the local config; its former content is in {}.",
                    path.display()
                )),
            }
            if *is_new && backup.is_some() && !replaced {
                out.note("The token is a new first admin token of this gateway.");
            }
            if *replaced {
                out.note("The first admin token that this gateway had before is revoked. Other tokens stay valid: `gsv token list`");
            }
        }
        Login::Elsewhere { url: other } => out.warn(&format!(
            "the local config is for the gateway at {} and was not changed. To use this gateway, which has its token from {}: `gsv --url {url} chat`. To use this machine's gateway by default again: `gsv local-config unset url`, then `gsv up`",
            without_login(other),
            Config::path().map_or_else(|_| "logins.json".to_owned(), |path| path.with_file_name("logins.json").display().to_string())
        )),
        Login::ElsewhereTokenLost { url: other } => out.warn(&format!(
            "the local config is for the gateway at {} and was not changed, and no token of this gateway is known. Create a new first one: `gsv down && gsv up --new-token`. Then use this gateway with `gsv --url {url} chat`",
            without_login(other)
        )),
        Login::TokenLost => out.warn(TOKEN_LOST),
    }
}
