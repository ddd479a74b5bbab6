//! `gsv up` and `gsv down`: the gateway on this machine.

use serde_json::json;

use super::Context;
use crate::args::Up;
use crate::embedded::layout::Layout;
use crate::embedded::supervisor::{self, Mode};
use crate::embedded::up::{self, Login, Preparation, Request, Started};
use crate::embedded::{DEFAULT_PORT, down, url};
use crate::exit::Outcome;
use crate::output::Output;
use crate::units::duration;

pub fn up(context: &Context, args: &Up) -> Outcome {
    let out = context.out;
    let layout = Layout::find()?;
    if args.supervise {
        let port = args.port.unwrap_or(DEFAULT_PORT);
        return crate::block_on(supervisor::main(layout, port));
    }
    let request = Request {
        port: args.port,
        new_token: args.new_token,
    };
    let prepared = match up::prepare(&layout, request)? {
        Preparation::Running(started) => {
            tell(out, &layout, &started);
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
            // Only the first start is news for the caller; restarts are in the log on stderr.
            if started.pid.replace(pid).is_none() {
                drop(turn.take());
                tell(out, &shown, &started);
            }
        }));
        return crate::block_on(supervisor::run(layout, port, mode));
    }
    let started = up::start(&layout, prepared)?;
    tell(out, &layout, &started);
    Ok(())
}

fn tell(out: Output, layout: &Layout, started: &Started) {
    let url = url(started.port);
    let took_ms = u64::try_from(started.took.as_millis()).unwrap_or(u64::MAX);
    if out.json {
        out.json_document(&json!({
            "url": url, "port": started.port, "pid": started.pid, "version": started.version,
            "alreadyRunning": started.already_running, "readyMs": took_ms, "home": layout.home,
        }));
    } else {
        out.line(&url);
    }
    if started.already_running {
        out.note(&format!(
            "The gateway runs already (version {}).",
            crate::clean::clean(&started.version)
        ));
        return;
    }
    for warning in &started.warnings {
        out.warn(warning);
    }
    let state = if took_ms == 0 {
        "is up".to_owned()
    } else {
        format!("is up after {}", duration(took_ms))
    };
    out.note(&format!(
        "The gateway {state} (version {}).",
        crate::clean::clean(&started.version)
    ));
    match &started.login {
        Login::Kept => {}
        Login::Stored { backup: None } => {
            out.aside("Address and token are in the local config; `gsv chat hello` works now.");
        }
        Login::Stored { backup: Some(path) } => {
            out.note(&format!(
                "Address and token are in the local config now; what it had before is in {}.",
                path.display()
            ));
        }
        Login::Elsewhere { url: other, token } => {
            out.warn(&format!("the local config belongs to {other} and was left as it is. To use this gateway: GSV_URL={url} GSV_TOKEN={token}"));
        }
        Login::TokenLost => {
            out.warn("the local config has no token for this gateway. Set one, or make a new first one: `gsv down && gsv up --new-token`.");
        }
    }
    out.aside(&format!("The agent's files: {}", layout.workspace().display()));
}

pub fn down(context: &Context) -> Outcome {
    let layout = Layout::find()?;
    let was_running = down::stop(&layout)?;
    if context.out.json {
        context.out.json_document(&json!({ "wasRunning": was_running }));
    } else {
        context.out.note(if was_running {
            "The gateway is stopped."
        } else {
            "The gateway was not running."
        });
    }
    Ok(())
}
