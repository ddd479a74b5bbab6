//! `gsv invite`: one line for another machine, with which it gets a token of its own. The line goes to stdout, alone, once, and can be taken
//! back while it was not used.

use std::net::{IpAddr, SocketAddr};

use gsv_link::{Fingerprint, Target};
use gsv_protocol::NoParams;
use gsv_protocol::methods::{InviteCreate, InviteList, InviteRevoke};
use gsv_protocol::types::{InviteCreateParams, InviteKind, InviteRevokeParams};
use serde_json::json;

use super::context::Context;
use super::local::Local;
use super::own_gateway::is_own;
use crate::args::{Invite, InviteCommand};
use crate::clean::clean;
use crate::embedded::layout::Layout;
use crate::embedded::listen::Listening;
use crate::exit::{Failure, Outcome};
use crate::join_code::{JoinCode, MAX_ADDRESSES};
use crate::table::Table;
use crate::units::time;

const ALL: &str = "all";
const NONE: &str = "No invitation can be used now.";

pub async fn run(context: &Context, command: InviteCommand) -> Outcome {
    match command {
        InviteCommand::Node(args) => create(context, InviteKind::Node, args).await,
        InviteCommand::Client(args) => create(context, InviteKind::Client, args).await,
        InviteCommand::List => list(context).await,
        InviteCommand::Revoke { id } => revoke(context, id).await,
    }
}

async fn list(context: &Context) -> Outcome {
    let out = context.out;
    let list = context.show::<InviteList>(NoParams {}, |result| {
        if result.invites.is_empty() {
            return out.line(NONE);
        }
        let rows = result.invites.into_iter().map(|invite| {
            [
                invite.invite_id,
                invite.kind.as_str().to_owned(),
                invite.name.unwrap_or_default(),
                time(invite.expires_at),
            ]
        });
        out.table(&Table::new(["ID", "KIND", "NAME", "EXPIRES"], rows));
    });
    list.await
}

async fn revoke(context: &Context, id: String) -> Outcome {
    let invite_id = (id != ALL).then_some(id);
    let revoke = context.change::<InviteRevoke>(InviteRevokeParams { invite_id }, |result| {
        match result.revoked.as_slice() {
            [] => NONE.to_owned(),
            [id] => format!("invitation {} is revoked; its line no longer works", clean(id)),
            ids => format!("{} invitations are revoked; their lines no longer work", ids.len()),
        }
    });
    revoke.await
}

async fn create(context: &Context, kind: InviteKind, args: Invite) -> Outcome {
    let Invite { name, address } = args;
    if address.len() > MAX_ADDRESSES {
        return Err(Failure::usage(
            format!("An invitation has at most {MAX_ADDRESSES} addresses."),
            "Give fewer --address.",
        ));
    }
    let account = context.account()?;
    let is_given = !address.is_empty();
    let (addresses, pin) = reach(&account.url, address)?;
    let invited = context.ask::<InviteCreate>(InviteCreateParams { kind, name }).await?;
    if let Some(warning) = &invited.warning {
        context.out.warn(&clean(warning));
    }
    let code = JoinCode {
        kind,
        addresses,
        pin,
        secret: invited.secret,
    };
    let line = format!("gsv join {}", code.write());
    let document = json!({
        "inviteId": invited.invite_id, "command": line, "addresses": code.addresses, "expiresAt": invited.expires_at,
    });
    let out = context.out;
    out.show(document, |_| out.line(&line));
    out.aside(&format!(
        "Run this line on the other machine. It works once, until {}. Keep it secret: anyone who has it can connect. Take it back with `gsv invite revoke {}`.",
        time(invited.expires_at),
        clean(&invited.invite_id)
    ));
    out.aside(&format!("It connects to {}.", code.addresses.join(" or ")));
    // A person who names such an address with --address has a tunnel that ends there.
    if !is_given && code.addresses.iter().all(|address| is_only_here(address)) {
        out.warn("no other machine reaches this address: the gateway listens for programs on this machine. Let it listen for others: `gsv down`, then `gsv up --listen 0.0.0.0:8788`, and make another invitation. Behind a tunnel or proxy with TLS: give its name with --address.");
    }
    Ok(())
}

fn is_only_here(address: &str) -> bool {
    address
        .parse::<SocketAddr>()
        .is_ok_and(|address| address.ip().is_loopback())
}

/// The addresses of the gateway as other machines reach it, and the certificate that it has there.
fn reach(url: &str, given: Vec<String>) -> Outcome<(Vec<String>, Option<Fingerprint>)> {
    let layout = Layout::find()?;
    let local = Local::look(&layout);
    if is_own(&local, &layout, url, None) {
        let listening = local.state().and_then(|state| state.listening.as_ref());
        return of_this_machine(listening, given);
    }
    let target = Target::parse(url).map_err(|error| Failure::usage(error.to_string(), ""))?;
    if !given.is_empty() {
        return Ok((given, target.pin));
    }
    if !target.tls || target.is_loopback() {
        return Err(Failure::failed(
            format!("The address {} is not one for other machines.", target.shown),
            "Say how they reach the gateway: --address HOST:PORT. It must answer with TLS there.",
        ));
    }
    Ok((vec![target.authority().to_owned()], target.pin))
}

fn of_this_machine(listening: Option<&Listening>, given: Vec<String>) -> Outcome<(Vec<String>, Option<Fingerprint>)> {
    let Some(listening) = listening else {
        if !given.is_empty() {
            // A tunnel or proxy of the owner's, with a public certificate.
            return Ok((given, None));
        }
        return Err(Failure::failed(
            "The gateway listens only for programs on this machine.",
            "Let it listen for others too: `gsv down`, then `gsv up --listen 0.0.0.0:8788`. Behind a tunnel or proxy with TLS: give its name with --address.",
        ));
    };
    let pin = listening.fingerprint.as_deref().and_then(Fingerprint::parse);
    let address = listening.listen.address;
    let addresses = match &listening.listen.proxy {
        _ if !given.is_empty() => given,
        Some(proxy) => vec![proxy.clone()],
        None if !address.ip().is_unspecified() => vec![address.to_string()],
        None => interfaces(address),
    };
    if addresses.is_empty() {
        return Err(Failure::failed(
            "This machine has no network address now.",
            "Connect it, or say how others reach it: --address HOST:PORT.",
        ));
    }
    Ok((addresses, pin))
}

/// The addresses of this machine's interfaces that others may reach.
fn interfaces(listen: SocketAddr) -> Vec<String> {
    let found = if_addrs::get_if_addrs().unwrap_or_default();
    let mut ips: Vec<IpAddr> = found.into_iter().map(|interface| interface.ip()).collect();
    ips.retain(|ip| is_reachable(*ip) && (ip.is_ipv4() || listen.is_ipv6()));
    // IPv4 first: it is what most home networks forward.
    ips.sort_by_key(|ip| (ip.is_ipv6(), *ip));
    ips.dedup();
    let written = ips.into_iter().map(|ip| SocketAddr::new(ip, listen.port()).to_string());
    written.take(MAX_ADDRESSES).collect()
}

fn is_reachable(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !ip.is_loopback() && !ip.is_unspecified() && !is_link_local
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;
    use crate::embedded::listen::Listen;

    fn listening(address: &str, proxy: Option<&str>) -> Listening {
        Listening {
            listen: Listen {
                address: address.parse().unwrap(),
                proxy: proxy.map(str::to_owned),
            },
            fingerprint: proxy.is_none().then(|| Fingerprint::of(b"c").to_string()),
        }
    }

    #[test]
    fn rm10_the_addresses_are_the_given_ones_else_the_proxys_else_those_of_the_listener() {
        let given = || vec!["gsv.example.org:1".to_owned()];
        let addresses = |listening: &Listening, given| of_this_machine(Some(listening), given).unwrap();
        let fixed = listening("192.168.1.7:8788", None);
        assert_eq!(
            addresses(&fixed, vec![]),
            (vec!["192.168.1.7:8788".to_owned()], Some(Fingerprint::of(b"c")))
        );
        assert_eq!(addresses(&fixed, given()), (given(), Some(Fingerprint::of(b"c"))));
        let proxied = listening("192.168.1.7:8788", Some("gsv.example.org"));
        assert_eq!(addresses(&proxied, vec![]), (vec!["gsv.example.org".to_owned()], None));
        assert_eq!(of_this_machine(None, given()).unwrap(), (given(), None));
        let alone = of_this_machine(None, vec![]).unwrap_err();
        assert!(alone.next.contains("gsv up --listen"), "{alone:?}");
    }

    #[test]
    fn rm10_an_address_of_this_machine_alone_is_known() {
        for (address, only_here) in [
            ("127.0.0.1:8938", true),
            ("[::1]:8938", true),
            ("192.168.1.7:8938", false),
            ("gsv.example.org:443", false),
        ] {
            assert_eq!(is_only_here(address), only_here, "{address}");
        }
    }

    #[test]
    fn rm10_addresses_that_no_other_machine_reaches_are_left_out() {
        for (ip, reachable) in [
            ("192.168.1.7", true),
            ("100.64.0.1", true),
            ("2001:db8::1", true),
            ("127.0.0.1", false),
            ("169.254.1.1", false),
            ("fe80::1", false),
            ("::1", false),
        ] {
            assert_eq!(is_reachable(ip.parse().unwrap()), reachable, "{ip}");
        }
        for address in interfaces("0.0.0.0:8788".parse().unwrap()) {
            assert!(address.ends_with(":8788") && !address.starts_with('['), "{address}");
        }
    }
}
