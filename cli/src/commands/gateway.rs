//! `gsv up` and `gsv down`: the gateway on this machine.

use std::time::Instant;

use gsv_protocol::errors;
use serde_json::json;

use super::context::{Context, block_on};
use super::local::Local;
use super::login_report::{TOKEN_LOST, report_listening, report_login};
use super::service_gateway;
use crate::args::{Place, Up};
use crate::clean::clean;
use crate::client::{Account, without_login};
use crate::config::Config;
use crate::embedded::cluster;
use crate::embedded::layout::Layout;
use crate::embedded::listen::{Listen, Wanted};
use crate::embedded::log::Log;
use crate::embedded::login;
use crate::embedded::supervisor::{self, Mode};
use crate::embedded::up::{self, Login, Preparation, Prepared, Request, Started};
use crate::embedded::{DEFAULT_PORT, down, url};
use crate::exit::{OrFail, Outcome};
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
        listen: wanted(args),
        cluster: (args.cluster.as_deref())
            .map(|bucket| cluster::Wanted::parse(bucket, args.cluster_listen.as_deref()))
            .transpose()?,
        out: (!args.service).then_some(out),
    };
    if args.service {
        return serve(layout, &request);
    }
    let prepared = match up::prepare(&layout, &request)? {
        Preparation::Running(mut started) => {
            prove(&layout, &mut started)?;
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
    let (mut started, note) = begin(out, &layout, prepared)?;
    prove(&layout, &mut started)?;
    report(out, &layout, &started);
    if let Some(note) = note {
        out.aside(note);
    }
    Ok(())
}

/// Whether the gateway takes the stored token, where only it knows that. One that it rejects is not its login (rule BK25).
fn prove(layout: &Layout, started: &mut Started) -> Outcome {
    let Some(token) = login::unproven(layout, started.port)? else {
        return Ok(());
    };
    let url = url(started.port);
    let mut is_rejected = false;
    block_on(async {
        let account = Account::of_command(&url, &token);
        match account.connect().await {
            Ok(client) => client.close().await,
            // Any other failure says nothing about the token.
            Err(failure) => is_rejected = failure.is(&errors::AUTH_REQUIRED),
        }
        Ok(())
    })?;
    if is_rejected {
        started.login = login::rejected(layout, started.port)?;
    }
    Ok(())
}

fn wanted(args: &Up) -> Wanted {
    match args.listen {
        None => Wanted::Same,
        Some(Place::Loopback) => Wanted::None,
        Some(Place::At(address)) => Wanted::At(Listen {
            address,
            proxy: args.behind_proxy.clone(),
        }),
    }
}

/// In the background, or as its service where it is one. The note is about the service.
fn begin(out: Output, layout: &Layout, prepared: Prepared) -> Outcome<(Started, Option<&'static str>)> {
    if !is_service() {
        return Ok((up::start(layout, prepared)?, None));
    }
    if can_service_start(layout, prepared.port) {
        let started = start_service(out, layout, prepared)?;
        return Ok((started, Some("It runs as its service.")));
    }
    let note = "It is installed as a service, and this start is not the service's: `gsv service install` takes over.";
    Ok((up::start(layout, prepared)?, Some(note)))
}

/// Starts the gateway of this machine if it does not run, and says so only to people.
/// `port`: absent as at the last start.
pub fn ensure(out: Output, layout: &Layout, port: Option<u16>) -> Outcome {
    let request = Request {
        port,
        out: Some(out),
        ..Request::default()
    };
    if let Preparation::Ready(prepared) = up::prepare(layout, &request)? {
        let (started, _) = begin(out, layout, prepared)?;
        started.warnings.iter().for_each(|warning| out.warn(warning));
        out.note("The gateway is started.");
        report_login(out, &url(started.port), &started.login);
    }
    Ok(())
}

fn is_service() -> bool {
    service_gateway::service().is_ok_and(|service| service.is_installed())
}

/// Whether its service would start the same: this program, on this port. The service takes the port of the last start.
fn can_service_start(layout: &Layout, port: u16) -> bool {
    let found = service_gateway::service().and_then(|service| service.find());
    found.is_ok_and(|found| found.old.is_empty()) && up::last_port(layout).unwrap_or(DEFAULT_PORT) == port
}

fn start_service(out: Output, layout: &Layout, prepared: Prepared) -> Outcome<Started> {
    let began = Instant::now();
    let (mut started, turn) = prepared.into_started();
    // The service prepares its start itself.
    drop(turn);
    service_gateway::start(out, layout.clone())?;
    if let Some(state) = Local::look(layout).state() {
        started.pid = state.workerd_pid;
        started.version.clone_from(&state.version);
    }
    started.took = began.elapsed();
    Ok(started)
}

/// Who writes a line of the log.
const SERVICE: &str = "service";

/// As the process of a service. All words go to the log, and the token of a new gateway goes nowhere: `gsv service install` shows it.
fn serve(layout: Layout, request: &Request) -> Outcome {
    let prepared = up::prepare(&layout, request);
    let mut log = Log::open(&layout.log(), false).or_fail("open the log", "Check that the disk is not full.")?;
    let prepared = match prepared {
        Err(failure) => {
            log.line(SERVICE, &format!("{} {}", failure.message, failure.next));
            return Err(failure);
        }
        // It is the owner's: the service does not take it over by itself, and does not wait for its end either.
        Ok(Preparation::Running(_)) => {
            log.line(
                SERVICE,
                "the gateway already runs outside of the service, which ends; `gsv service start` takes over",
            );
            return Ok(());
        }
        Ok(Preparation::Ready(prepared)) => prepared,
    };
    let port = prepared.port;
    let (mut started, turn) = prepared.into_started();
    for warning in started.warnings.drain(..) {
        log.line(SERVICE, &warning);
    }
    let mut waiting = Some((turn, log));
    let mode = Mode::Service(Box::new(move |_| {
        if let Some((turn, mut log)) = waiting.take() {
            drop(turn);
            started.answers();
            started.warnings.iter().for_each(|warning| log.line(SERVICE, warning));
        }
    }));
    block_on(supervisor::run(layout, port, mode))
}

fn report(out: Output, layout: &Layout, started: &Started) {
    let url = url(started.port);
    let took_ms = millis(started.took);
    let document = json!({
        "url": url, "port": started.port, "pid": started.pid, "version": started.version,
        "alreadyRunning": started.already_running, "readyMs": took_ms, "home": layout.home,
        "listening": started.listening, "cluster": started.cluster,
    });
    out.show(document, |_| out.line(&url));
    let version = clean(&started.version);
    if started.already_running {
        out.note(&format!("The gateway is already running (version {version})."));
        match &started.login {
            Login::TokenLost => out.warn(TOKEN_LOST),
            login => report_login(out, &url, login),
        }
        started.warnings.iter().for_each(|warning| out.warn(warning));
        report_listening(out, started.listening.as_ref());
        report_cluster(out, started);
        return;
    }
    started.warnings.iter().for_each(|warning| out.warn(warning));
    let after = match took_ms {
        0 => String::new(),
        took_ms => format!(" after {}", duration(took_ms)),
    };
    out.note(&format!("The gateway is up{after} (version {version})."));
    report_login(out, &url, &started.login);
    report_listening(out, started.listening.as_ref());
    if report_cluster(out, started) {
        out.aside("The agent's files are in the bucket: `gsv workspace ls`.");
    } else {
        out.aside(&format!("The agent's files: {}", layout.workspace().display()));
    }
}

/// Whether it is one of a cluster.
fn report_cluster(out: Output, started: &Started) -> bool {
    let Some(cluster) = &started.cluster else { return false };
    out.note(&format!(
        "It is an instance of the cluster {} (experimental).",
        cluster.bucket
    ));
    true
}

pub fn down(context: &Context) -> Outcome {
    let layout = Layout::find()?;
    let was_running = down::stop(&layout)?;
    let words = if was_running { "is stopped" } else { "was not running" };
    context.out.show(json!({ "wasRunning": was_running }), |_| {
        context
            .out
            .note(&format!("The gateway of {} {words}.", layout.home.display()));
    });
    // The one that other commands go to may be another one.
    if let Ok(config) = Config::load()
        && let Some(url) = login::elsewhere(&layout, &config)
    {
        context.out.aside(&format!(
            "The local config is for another gateway, at {}, which was not stopped.",
            without_login(url)
        ));
    }
    if is_service() {
        context
            .out
            .aside("Its service starts it again with the machine; `gsv service uninstall` removes the service.");
    }
    Ok(())
}
