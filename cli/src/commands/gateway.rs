//! `gsv up` and `gsv down`: the gateway on this machine.

use serde_json::json;

use super::context::{Context, block_on};
use crate::args::Up;
use crate::clean::clean;
use crate::embedded::layout::Layout;
use crate::embedded::supervisor::{self, Mode};
use crate::embedded::up::{self, Login, Preparation, Request, Started};
use crate::embedded::{DEFAULT_PORT, down, url};
use crate::exit::Outcome;
use crate::output::Output;
use crate::units::{duration, millis};

pub fn up(context: &Context, args: &Up) -> Outcome {
    let out = context.out;
    let layout = Layout::find()?;
    if args.supervise {
        let port = args.port.unwrap_or(DEFAULT_PORT);
        return block_on(supervisor::main(layout, port));
    }
    let request = Request {
        port: args.port,
        new_token: args.new_token,
    };
    let prepared = match up::prepare(&layout, request)? {
        Preparation::Running(started) => {
            report(out, &layout, &started);
            return Ok(());
        }
        Preparation::Ready(prepared) => prepared,
    };
    if args.foreground {
        let port = prepared.port;
        let shown = layout.clone();
        let (mut started, turn) = prepared.into_started();
        let mut turn = Some(turn);
        let mode = Mode::Foreground(Box::new(move |pid| {
            // Only the first start is reported; restarts are in the log on stderr.
            if started.pid.replace(pid).is_none() {
                drop(turn.take());
                started.answers();
                report(out, &shown, &started);
            }
        }));
        return block_on(supervisor::run(layout, port, mode));
    }
    let started = up::start(&layout, prepared)?;
    report(out, &layout, &started);
    Ok(())
}

const TOKEN_LOST: &str = "the local config has no token for this gateway. Set one, or create a new first one: `gsv down && gsv up --new-token`";

fn report(out: Output, layout: &Layout, started: &Started) {
    let url = url(started.port);
    let took_ms = millis(started.took);
    let document = json!({
        "url": url, "port": started.port, "pid": started.pid, "version": started.version,
        "alreadyRunning": started.already_running, "readyMs": took_ms, "home": layout.home,
    });
    out.show(document, |_| out.line(&url));
    let version = clean(&started.version);
    if started.already_running {
        out.note(&format!("The gateway is already running (version {version})."));
        if started.login == Login::TokenLost {
            out.warn(TOKEN_LOST);
        }
        return;
    }
    started.warnings.iter().for_each(|warning| out.warn(warning));
    let after = match took_ms {
        0 => String::new(),
        took_ms => format!(" after {}", duration(took_ms)),
    };
    out.note(&format!("The gateway is up{after} (version {version})."));
    match &started.login {
        Login::Kept => {}
        Login::Moved => out.aside("The gateway's new address is stored in the local config."),
        Login::Stored { backup, replaced } => {
            match backup {
                None => out.aside("Address and token are stored in the local config. Try it: `gsv chat hello`"),
                Some(path) => out.note(&format!(
                    "Address and token are stored in the local config; its former content is in {}.",
                    path.display()
                )),
            }
            if *replaced {
                out.note("The first admin token that this gateway had before is revoked. Other tokens stay valid: `gsv token list`");
            }
        }
        Login::Elsewhere { url: other, token } => out.warn(&format!(
            "the local config is for {other} and was not changed. To use this gateway: GSV_URL={url} GSV_TOKEN={token}"
        )),
        Login::TokenLost => out.warn(TOKEN_LOST),
    }
    out.aside(&format!("The agent's files: {}", layout.workspace().display()));
}

pub fn down(context: &Context) -> Outcome {
    let was_running = down::stop(&Layout::find()?)?;
    let words = if was_running {
        "The gateway is stopped."
    } else {
        "The gateway was not running."
    };
    context
        .out
        .show(json!({ "wasRunning": was_running }), |_| context.out.note(words));
    Ok(())
}
