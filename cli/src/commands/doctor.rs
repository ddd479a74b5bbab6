//! `gsv doctor`: looks at everything that has to be right, and says for each what to do. Changes nothing.

use std::time::Duration;

use gsv_protocol::methods::{ConfigGet, NodesList, PROTOCOL_FINGERPRINT, SessionStats, SessionsList};
use gsv_protocol::types::{ChannelAccount, ConfigGetParams, ConnectResult, SessionStatsParams, SessionsListParams};
use gsv_protocol::{NoParams, errors};
use serde::Serialize;
use serde_json::{Value, json};

use super::channel::{Asked, Overview};
use super::channel_state::{self, Standing};
use super::status::Local;
use super::{Context, channel_here};
use crate::client::{Account, Client, find_url};
use crate::config::Config;
use crate::embedded::bootstrap::Bootstrap;
use crate::embedded::health;
use crate::embedded::layout::Layout;
use crate::embedded::runtime::Runtime;
use crate::embedded::up::is_loopback;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::paths;
use crate::units::{duration, now_ms};

const HEALTH_PATIENCE: Duration = Duration::from_secs(3);
const CLOCK_TOLERANCE_MS: u64 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    level: Level,
    found: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
}

struct Report {
    out: Output,
    checks: Vec<Check>,
}

impl Report {
    fn ok(&mut self, name: &'static str, found: impl Into<String>) {
        self.add(Check {
            name,
            level: Level::Ok,
            found: found.into(),
            next: String::new(),
        });
    }

    fn warn(&mut self, name: &'static str, found: impl Into<String>, next: impl Into<String>) {
        self.add(Check {
            name,
            level: Level::Warn,
            found: found.into(),
            next: next.into(),
        });
    }

    fn fail(&mut self, name: &'static str, failure: &Failure) {
        self.add(Check {
            name,
            level: Level::Fail,
            found: failure.message.clone(),
            next: failure.next.clone(),
        });
    }

    /// Shown as soon as it is known: some checks take seconds.
    fn add(&mut self, check: Check) {
        if !self.out.json {
            let (style, mark) = match check.level {
                Level::Ok => (Style::Green, "ok  "),
                Level::Warn => (Style::Yellow, "warn"),
                Level::Fail => (Style::Red, "fail"),
            };
            let found = crate::clean::one_line(&check.found, usize::MAX);
            self.out
                .line(&format!("{}  {:9}  {found}", self.out.paint(style, mark), check.name));
            if !check.next.is_empty() {
                let next = crate::clean::one_line(&check.next, usize::MAX);
                self.out.line(&format!("                 → {next}"));
            }
        }
        self.checks.push(check);
    }
}

pub async fn run(context: &Context) -> Outcome {
    let mut report = Report {
        out: context.out,
        checks: Vec::new(),
    };
    let config = check_config(&mut report);
    let layout = Layout::find()?;
    let url = match config.as_ref().map_or_else(
        || find_url(&context.global, &Config::empty()),
        |config| find_url(&context.global, config),
    ) {
        Ok(url) => {
            report.ok("address", &url);
            Some(url)
        }
        Err(failure) => {
            report.fail("address", &failure);
            None
        }
    };
    let mut stopped = false;
    if url.as_deref().is_some_and(is_loopback) {
        stopped = check_local(&mut report, &layout).await;
    } else if url
        .as_deref()
        .is_some_and(|url| url.starts_with("ws://") || url.starts_with("http://"))
    {
        report.warn(
            "transport",
            "the address is not encrypted; the token travels in the clear",
            "Use wss:// or https://.",
        );
    }
    if let Some(config) = &config {
        match Account::find(&context.global, config) {
            Ok(account) => check_gateway(&mut report, &account, stopped).await,
            Err(failure) => report.fail("token", &failure),
        }
    }
    finish(&report)
}

fn finish(report: &Report) -> Outcome {
    let count = |level| report.checks.iter().filter(|check| check.level == level).count();
    let (failed, warned) = (count(Level::Fail), count(Level::Warn));
    if report.out.json {
        report
            .out
            .json_document(&json!({ "ok": failed == 0, "checks": report.checks }));
    }
    if failed > 0 {
        return Err(Failure::failed(
            format!("{failed} of {} checks failed.", report.checks.len()),
            "Do what the lines above say, then run `gsv doctor` again.",
        ));
    }
    if !report.out.json {
        report.out.aside(if warned == 0 {
            "All is well."
        } else {
            "Nothing is broken."
        });
    }
    Ok(())
}

fn check_config(report: &mut Report) -> Option<Config> {
    match Config::load() {
        Ok(config) => {
            let path = Config::path()
                .map(|path| path.display().to_string())
                .unwrap_or_default();
            report.ok("config", format!("{path} is private and valid"));
            Some(config)
        }
        Err(failure) => {
            report.fail("config", &failure);
            None
        }
    }
}

/// Whether no gateway runs here.
async fn check_local(report: &mut Report, layout: &Layout) -> bool {
    if layout.exists() {
        let folders = [layout.home.clone(), layout.gateway(), layout.workspace()];
        match folders.iter().try_for_each(|dir| paths::ensure_private_dir(dir)) {
            Ok(()) => match disk_writable(layout) {
                Ok(()) => report.ok("disk", format!("{} is private and writable", layout.home.display())),
                Err(failure) => report.fail("disk", &failure),
            },
            Err(failure) => report.fail("disk", &failure),
        }
        if let Err(failure) = Bootstrap::read(&layout.bootstrap()) {
            report.fail("bootstrap", &failure);
        }
    }
    match Runtime::find(layout) {
        Ok(runtime) => report.ok(
            "runtime",
            format!("{} in {}", runtime.manifest.version, runtime.dir.display()),
        ),
        Err(failure) => report.fail("runtime", &failure),
    }
    let local = Local::look(layout);
    match &local {
        Local::Running(state) => match health::check(state.port, HEALTH_PATIENCE).await {
            Ok(_) => report.ok("gateway", format!("running on port {}, healthy", state.port)),
            Err(problem) => {
                let failure = Failure::failed(
                    format!("running on port {}, but {problem}", state.port),
                    format!("Look into {}, then `gsv down && gsv up`.", layout.log().display()),
                );
                report.fail("gateway", &failure);
            }
        },
        Local::Stopped => report.warn("gateway", "not running on this machine", "Start it with `gsv up`."),
        Local::GaveUp(_) | Local::Orphaned(_) | Local::Unknown => {
            let next = format!("The log is {}.", layout.log().display());
            report.fail("gateway", &Failure::failed(local.words(), next));
        }
    }
    matches!(local, Local::Stopped)
}

/// Writes and removes a small file: the only way to know.
fn disk_writable(layout: &Layout) -> Outcome {
    use crate::exit::OrFail;
    let probe = layout.gateway().join(format!(".doctor-{}", std::process::id()));
    paths::write_private_file(&probe, b"probe")
        .and_then(|()| std::fs::remove_file(&probe))
        .or_fail(
            format_args!("write in {}", layout.gateway().display()),
            "Check the free space (`df -h`) and the permissions.",
        )
}

async fn check_gateway(report: &mut Report, account: &Account, stopped: bool) {
    let client = match account.connect().await {
        Ok(client) => client,
        // Said already, with what to do.
        Err(failure) if stopped && !failure.is_refusal() => return report.fail("connect", &not_running()),
        Err(failure) => return report.fail(if failure.is_refusal() { "token" } else { "connect" }, &failure),
    };
    report.ok("token", "the gateway lets this token in");
    if let Some(hello) = client.hello() {
        check_version(report, &hello);
    }
    check_clock(report, &client).await;
    check_nodes(report, &client).await;
    check_model(report, &client).await;
    check_channels(report, account, &client).await;
    client.close().await;
}

fn not_running() -> Failure {
    Failure::failed("no gateway answers", "Start it with `gsv up`.")
}

fn check_version(report: &mut Report, hello: &ConnectResult) {
    let (ours, theirs) = (env!("CARGO_PKG_VERSION"), hello.server.version.as_str());
    let same_contract = hello
        .fingerprint
        .as_deref()
        .is_none_or(|print| print == PROTOCOL_FINGERPRINT);
    // What follows a `+` names the build.
    if ours != theirs.split('+').next().unwrap_or_default() {
        report.warn(
            "version",
            format!("this program is {ours}, the gateway {theirs}"),
            "They understand each other; update the older one when it suits you.",
        );
    } else if same_contract {
        report.ok("version", format!("{ours}, the gateway {theirs}"));
    } else {
        report.warn(
            "version",
            format!("both say {ours}, but their contracts differ"),
            "Build both from the same source: `gsv down`, build, `gsv up`.",
        );
    }
}

/// The gateway's present time is in the age of any conversation.
async fn check_clock(report: &mut Report, client: &Client) {
    let newest = SessionsListParams {
        offset: None,
        limit: Some(1),
    };
    let Ok(list) = client.call::<SessionsList>(newest).await else {
        return;
    };
    let Some(session) = list.sessions.into_iter().next() else {
        return;
    };
    let params = SessionStatsParams {
        session_key: session.session_key,
    };
    let Ok(stats) = client.call::<SessionStats>(params).await else {
        return;
    };
    let (here, there) = (now_ms(), stats.created_at.saturating_add(stats.uptime));
    let apart = here.abs_diff(there);
    if apart <= CLOCK_TOLERANCE_MS {
        report.ok("clock", "agrees with the gateway's");
    } else {
        let word = if here > there { "ahead of" } else { "behind" };
        report.warn(
            "clock",
            format!("{} {word} the gateway's", duration(apart)),
            "Set this machine's clock (`timedatectl set-ntp true`); times that are shown are wrong until then.",
        );
    }
}

async fn check_nodes(report: &mut Report, client: &Client) {
    match client.call::<NodesList>(NoParams {}).await {
        Ok(result) => {
            let online: Vec<&str> = result
                .nodes
                .iter()
                .filter(|node| node.online)
                .map(|node| node.node_id.as_str())
                .collect();
            if online.is_empty() {
                report.warn(
                    "machines",
                    "none is connected, so the agent has no hands",
                    "Start one: `gsv node --id laptop`.",
                );
            } else {
                report.ok("machines", format!("online: {}", online.join(", ")));
            }
        }
        Err(failure) => report.fail("machines", &failure),
    }
}

async fn check_channels(report: &mut Report, account: &Account, client: &Client) {
    const NAME: &str = "channels";
    let overview = match Overview::ask(client).await {
        Ok(overview) => overview,
        Err(failure) => return report.fail(NAME, &failure),
    };
    let now = now_ms();
    for asked in &overview.channels {
        match &asked.accounts {
            Ok(accounts) => {
                for account in accounts {
                    check_channel(report, asked, account, now);
                }
            }
            Err(failure) => {
                let found = format!("{}: {}", asked.channel, failure.message);
                report.fail(NAME, &Failure::failed(found, failure.next.clone()));
            }
        }
    }
    // Without an account a channel says nothing; a local one that should run and does not is found by its settings.
    for missing in channel_here::missing(&account.url, client).await {
        report.warn(
            NAME,
            format!("{missing} is switched on, but the gateway runs without it"),
            "`gsv down && gsv up` starts it, or says why not.",
        );
    }
    if let Some((words, next)) = overview.strangers_line() {
        report.warn(NAME, words, next);
    }
}

fn check_channel(report: &mut Report, asked: &Asked, account: &ChannelAccount, now: u64) {
    let channel = asked.channel.as_str();
    let id = account.account_id.as_str();
    let standing = Standing::of(account);
    let found = format!("{}: {}", channel_state::name(channel, id), asked.line(account, now));
    let look = format!("{} tells more.", channel_state::command(channel, id, "status"));
    let troubled = asked.lost(account).is_some()
        || account.error.is_some()
        || channel_state::gap(account).is_some()
        || channel_state::too_late(account).is_some();
    match standing {
        Standing::Failing => report.fail("channels", &Failure::failed(found, look)),
        Standing::Connected | Standing::Stopped if !troubled => report.ok("channels", found),
        _ => report.warn("channels", found, look),
    }
}

async fn check_model(report: &mut Report, client: &Client) {
    let config = match client.call::<ConfigGet>(ConfigGetParams { path: None }).await {
        Ok(result) => result.config.or(result.value).unwrap_or(Value::Null),
        Err(failure) if failure.is(&errors::AUTH_FORBIDDEN) => {
            report.warn(
                "model",
                "this token may not read the configuration",
                "Run the doctor with an admin token to check the model.",
            );
            return;
        }
        Err(failure) => return report.fail("model", &failure),
    };
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (provider, id) = (text("/model/provider"), text("/model/id"));
    if provider == "demo" {
        let next = "It follows a few phrases only. Set a real one: `gsv config set model '{\"provider\": \"anthropic\", \"id\": \"claude-sonnet-4-5\"}'` and `gsv config set apiKeys.anthropic -`.";
        report.warn("model", "the built-in demo model", next);
        return;
    }
    let has_key = config.pointer("/apiKeys").and_then(|keys| keys.get(provider)).is_some();
    let own_server = !text("/model/baseUrl").is_empty()
        || config
            .pointer("/providers")
            .and_then(|providers| providers.get(provider))
            .is_some();
    if has_key || own_server {
        report.ok("model", format!("{provider}/{id}"));
    } else {
        let failure = Failure::failed(
            format!("{provider}/{id} has no key"),
            format!("Set it: `gsv config set apiKeys.{provider} -` (it is read from stdin)."),
        );
        report.fail("model", &failure);
    }
}
