//! `gsv doctor`: checks this machine and the gateway, and says how to fix each problem. Changes nothing.

use gsv_protocol::limits::RECONNECT_MAX_MS;
use gsv_protocol::methods::{
    ConfigGet, HookList, ModelTest, ModelsList, NodesList, PROTOCOL_FINGERPRINT, SessionStats, SessionsList,
    TelemetryStatus,
};
use gsv_protocol::types::{
    ChannelAccount, ConfigGetParams, ConnectResult, ModelTestParams, ModelTestResult, ModelsListParams,
    SessionStatsParams, SessionsListParams,
};
use gsv_protocol::{NoParams, errors};
use serde_json::Value;

use super::backup_schedule;
use super::channel_account::{self, Standing};
use super::channel_enable;
use super::channel_overview::{Asked, Overview};
use super::context::Context;
use super::doctor_audit;
use super::doctor_machine::{check_config, check_local, check_sandbox};
use super::doctor_node::{check_node, check_only_node, has_node};
use super::doctor_report::Report;
use super::doctor_service::check_services;
use super::heartbeat;
use super::local::Local;
use super::node::start_command;
use super::node_files::{Running, log_file, nodes_here};
use super::notifications;
use super::own_gateway::is_own;
use super::status::own_gateway_words;
use super::stop_state;
use crate::clean::one_line;
use crate::client::{Account, Client, find_url, is_only_node};
use crate::config::Config;
use crate::embedded::layout::Layout;
use crate::embedded::sealing_key;
use crate::embedded::up::is_loopback;
use crate::exit::Outcome;
use crate::units::{duration, grouped, in_seconds, now_ms, time};

const CLOCK_TOLERANCE_MS: u64 = 60_000;

/// `offline`: the model is not called, which costs a few tokens.
pub async fn run(context: &Context, offline: bool) -> Outcome {
    let mut report = Report::new(context.out);
    let config = check_config(&mut report);
    let layout = Layout::find()?;
    let url = find_url(&context.global, config.as_ref().unwrap_or(&Config::empty()));
    let mut stopped = false;
    match &url {
        Ok(url) => {
            report.ok("address", url);
            let local = Local::look(&layout);
            let is_own = is_own(&local, &layout, url, config.as_ref());
            if let Local::Running(state) | Local::Orphaned(state) = &local
                && !is_own
            {
                report.ok("gateway", own_gateway_words(state.port));
            }
            if is_own {
                stopped = check_local(&mut report, &layout).await;
                backup_schedule::check(&mut report, &layout);
            } else if !is_loopback(url) && (url.starts_with("ws://") || url.starts_with("http://")) {
                let found = "the address is not encrypted, so others can read the token on its way";
                report.warn("transport", found, "Use wss:// or https://.");
            }
        }
        Err(failure) => report.failure("address", failure.clone()),
    }
    check_services(&mut report);
    check_sandbox(&mut report, &layout, config.as_ref());
    if let Some(config) = config {
        match (Account::find(&context.global, &config), url) {
            (Ok(account), _) => {
                let is_rejected = check_gateway(&mut report, &account, stopped, offline).await;
                if is_rejected && has_node(&config, &account.url) {
                    check_node(&mut report, &config, &account.url, offline).await;
                }
            }
            (Err(_), Ok(url)) if is_only_node(&url, &config) => {
                check_only_node(&mut report, &config, &url, offline).await;
            }
            (Err(failure), _) => report.failure("token", failure),
        }
    }
    report.finish()
}

/// Whether the gateway rejects the token.
async fn check_gateway(report: &mut Report, account: &Account, stopped: bool, offline: bool) -> bool {
    let client = match account.connect().await {
        Ok(client) => client,
        Err(failure) => {
            let is_rejected = failure.is_refusal();
            match failure {
                failure if is_rejected => report.failure("token", failure),
                _ if stopped => report.fail("connect", "the gateway does not answer", "Start it with `gsv up`."),
                failure => report.failure("connect", failure),
            }
            return is_rejected;
        }
    };
    report.ok("token", "the gateway accepts this token");
    if let Some(hello) = client.hello() {
        check_version(report, &hello);
    }
    check_clock(report, &client).await;
    if let Some(state) = stop_state::stopped(&client).await {
        let (found, next) = stop_state::explain(&state, &account.url);
        report.warn("stop", format!("GSV is {found}"), next);
    }
    check_nodes(report, &client).await;
    check_model(report, &client, offline).await;
    check_channels(report, account, &client).await;
    check_hooks(report, &client).await;
    notifications::check(report, &client).await;
    heartbeat::check(report, &client).await;
    check_traces(report, &client).await;
    doctor_audit::check(report, &client).await;
    client.close().await;
    false
}

fn check_version(report: &mut Report, hello: &ConnectResult) {
    let (ours, theirs) = (env!("CARGO_PKG_VERSION"), hello.server.version.as_str());
    let print = hello.fingerprint.as_deref();
    // The part after a `+` names the build.
    if ours != theirs.split('+').next().unwrap_or_default() {
        let found = format!("this program is {ours}, the gateway {theirs}");
        report.warn(
            "version",
            found,
            "They are compatible; update the older one when you can.",
        );
    } else if print.is_none_or(|print| print == PROTOCOL_FINGERPRINT) {
        report.ok("version", format!("{ours}, the gateway {theirs}"));
    } else {
        report.warn(
            "version",
            format!("both are {ours}, but their contracts differ"),
            "Build both from the same source: `gsv down`, build, `gsv up`.",
        );
    }
}

/// Difference of the clocks in ms, from the age of any conversation. None: there is none, or this token may not ask.
async fn clock_difference(client: &Client) -> Option<i128> {
    let newest = SessionsListParams {
        offset: None,
        limit: Some(1),
        agent_id: None,
    };
    let list = client.call::<SessionsList>(newest).await.ok()?;
    let params = SessionStatsParams {
        session_key: list.sessions.into_iter().next()?.session_key,
    };
    let stats = client.call::<SessionStats>(params).await.ok()?;
    Some(i128::from(now_ms()) - i128::from(stats.created_at) - i128::from(stats.uptime))
}

async fn check_clock(report: &mut Report, client: &Client) {
    let Some(ahead_ms) = clock_difference(client).await else {
        return;
    };
    let apart = u64::try_from(ahead_ms.unsigned_abs()).unwrap_or(u64::MAX);
    if apart <= CLOCK_TOLERANCE_MS {
        return report.ok("clock", "agrees with the gateway's");
    }
    let word = if ahead_ms > 0 { "ahead of" } else { "behind" };
    report.warn(
        "clock",
        format!("{} {word} the gateway's", duration(apart)),
        "Set this machine's clock (`timedatectl set-ntp true`); times are shown wrongly until then.",
    );
}

async fn check_nodes(report: &mut Report, client: &Client) {
    const NAME: &str = "machines";
    let nodes = match client.call::<NodesList>(NoParams {}).await {
        Ok(result) => result.nodes,
        Err(failure) => return report.failure(NAME, failure),
    };
    let online: Vec<&str> = nodes
        .iter()
        .filter(|node| node.online)
        .map(|node| node.node_id.as_str())
        .collect();
    if !online.is_empty() {
        report.ok(NAME, format!("online: {}", online.join(", ")));
    }
    // A node that runs here and is unknown to this gateway may be another gateway's.
    let may_be_its = |id: &str| online.is_empty() || nodes.iter().any(|node| node.node_id.as_str() == id);
    let connecting: Vec<(String, Running)> = nodes_here()
        .into_iter()
        .filter(|(id, _)| !online.contains(&id.as_str()) && may_be_its(id))
        .collect();
    for (id, node) in &connecting {
        let pid = match node {
            Running::Process(pid) => format!(" (pid {pid})"),
            Running::No | Running::Somewhere => String::new(),
        };
        let log = log_file(id).map_or_else(
            |_| String::new(),
            |log| format!(" If it is still not connected, its log says why: {}.", log.display()),
        );
        report.warn(
            NAME,
            format!("`{id}` runs on this machine{pid} and is not connected to this gateway, so the agent can't use it"),
            format!("After a restart of the gateway it connects by itself: wait {} and run `gsv doctor` again.{log} If it belongs to another gateway, start one for this gateway: `{}`.", in_seconds(RECONNECT_MAX_MS), start_command()),
        );
    }
    if online.is_empty() && connecting.is_empty() {
        let found = "none is connected, so the agent can't use any";
        report.warn(NAME, found, format!("Start one: `{}`.", start_command()));
    }
}

async fn check_channels(report: &mut Report, account: &Account, client: &Client) {
    const NAME: &str = "channels";
    let overview = match Overview::ask(client).await {
        Ok(overview) => overview,
        Err(failure) => return report.failure(NAME, failure),
    };
    let now = now_ms();
    for asked in &overview.channels {
        match &asked.accounts {
            Ok(accounts) => accounts
                .iter()
                .for_each(|account| check_channel(report, asked, account, now)),
            Err(failure) => {
                let found = format!("{}: {}", asked.channel, failure.message);
                report.fail(NAME, found, &failure.next);
            }
        }
    }
    // A channel without an account is not asked; the settings of this machine show that it should run.
    for missing in channel_enable::missing(&account.url, client).await {
        let found = format!("{missing} is enabled, but the gateway runs without it");
        report.warn(NAME, found, "`gsv down && gsv up` starts it, or says why not.");
    }
    if let Some((words, next)) = overview.requests_line() {
        report.warn(NAME, words, next);
    }
}

/// Hooks whose deliveries are refused, such as those of a removed job.
async fn check_hooks(report: &mut Report, client: &Client) {
    const NAME: &str = "hooks";
    let hooks = match client.call::<HookList>(NoParams {}).await {
        Ok(result) => result.hooks,
        // An older gateway, or a token that may not ask.
        Err(failure) if failure.is(&errors::PROTOCOL_UNKNOWN_METHOD) || failure.is(&errors::AUTH_FORBIDDEN) => return,
        Err(failure) => return report.failure(NAME, failure),
    };
    let mut working = 0;
    for hook in &hooks {
        let name = one_line(&hook.name, 64);
        let Some(problem) = &hook.problem else {
            working += 1;
            continue;
        };
        let found = format!("{name} refuses its deliveries: {}", one_line(problem, 200));
        let next = format!("See what it does: `gsv hook show {name}`. Without a use for it: `gsv hook remove {name}`.");
        report.fail(NAME, found, next);
    }
    if working > 0 {
        report.ok(NAME, format!("{working} of {} can take deliveries", hooks.len()));
    }
}

/// Says nothing where no traces are exported.
async fn check_traces(report: &mut Report, client: &Client) {
    const NAME: &str = "traces";
    // An older gateway has none.
    let Ok(status) = client.call::<TelemetryStatus>(NoParams {}).await else {
        return;
    };
    if !status.enabled {
        return;
    }
    let dropped = match status.dropped {
        0 => String::new(),
        count => format!(", {} dropped", grouped(count)),
    };
    let counts = format!(
        "{} runs exported, {} wait{dropped}",
        grouped(status.exported),
        grouped(status.waiting)
    );
    match &status.problem {
        None => report.ok(NAME, counts),
        Some(problem) => {
            let at = status.failed_at.map(time).unwrap_or_default();
            let found = format!("the last export failed at {at}: {} {counts}", one_line(problem, 300));
            let next = "Check the collector and the settings: `gsv config get telemetry.otlp`. Runs that wait are exported when it answers.";
            report.warn(NAME, found, next);
        }
    }
}

fn check_channel(report: &mut Report, asked: &Asked, account: &ChannelAccount, now: u64) {
    let channel = asked.channel.as_str();
    let id = account.account_id.as_str();
    let found = format!("{}: {}", channel_account::name(channel, id), asked.line(account, now));
    let next = format!("Details: {}", channel_account::command(channel, id, "status"));
    let problem = asked.lost(account).is_some()
        || account.error.is_some()
        || channel_account::gap(account).is_some()
        || channel_account::too_late(account).is_some();
    if channel_account::is_unused(account) {
        return report.ok(
            "channels",
            format!("{}: not in use", channel_account::name(channel, id)),
        );
    }
    match Standing::of(account) {
        Standing::Failing => report.fail("channels", found, next),
        Standing::Connected | Standing::Stopped if !problem => report.ok("channels", found),
        _ => report.warn("channels", found, next),
    }
}

/// One call of a few tokens: only an answer proves that the key and the model work.
async fn call_model(report: &mut Report, client: &Client, configured: &str) {
    match client.call::<ModelTest>(ModelTestParams::default()).await {
        Ok(ModelTestResult { model, took_ms }) => {
            let found = format!("{}/{} answered in {}", model.provider, model.id, duration(took_ms));
            report.ok("model", found);
        }
        Err(failure) if failure.is(&errors::PROTOCOL_UNKNOWN_METHOD) || failure.is(&errors::METHOD_NOT_SERVED) => {
            report.ok("model", format!("{configured}, not called: the gateway is older"));
        }
        Err(failure) if failure.is(&errors::GATEWAY_STOPPED) => {
            let found = format!("{configured}, not called: everything is stopped");
            report.warn("model", found, failure.next);
        }
        Err(failure) => report.fail("model", format!("{configured}: {}", failure.message), failure.next),
    }
}

/// What is known without a call: whether the provider has a key, and whether the model is one of its models.
async fn check_settings(report: &mut Report, client: &Client, provider: &str, id: &str, own_address: bool) {
    let configured = format!("{provider}/{id}");
    let list = |of: Option<&str>| {
        client.call::<ModelsList>(ModelsListParams {
            provider: of.map(str::to_owned),
        })
    };
    // An older gateway lists nothing, and a provider of an own address has no list.
    let providers = list(None).await.ok().and_then(|all| all.providers).unwrap_or_default();
    let models = list(Some(provider))
        .await
        .ok()
        .and_then(|own| own.models)
        .unwrap_or_default();
    let has_no_key = providers.iter().any(|entry| entry.provider == provider && !entry.ready);
    if id.is_empty() {
        let next = format!("Set one: `gsv config set model.id ID`; `gsv model list {provider}` lists what is known.");
        report.fail("model", format!("no model of {provider} is set"), next);
    } else if has_no_key && !own_address {
        let next = format!("Run `gsv config set apiKeys.{provider} -`.");
        report.fail("model", format!("{configured}: no key is set"), next);
    } else if !own_address && !models.is_empty() && !models.iter().any(|model| model.id == id) {
        let next = format!("If it is a typing error, `gsv model list {provider}` lists the models.");
        report.warn(
            "model",
            format!("{configured} is not a known model; not called (--offline)"),
            next,
        );
    } else {
        report.ok("model", format!("{configured}, not called (--offline)"));
    }
}

/// Secrets that the gateway has stored and can't open.
fn check_secrets(report: &mut Report, unreadable: &[String]) {
    let Some(first) = unreadable.first() else {
        return;
    };
    let file = sealing_key::path().map_or_else(|_| "the key file".to_owned(), |path| path.display().to_string());
    report.fail(
        "secrets",
        format!(
            "{} can't be opened: the key that sealed them is missing",
            unreadable.join(", ")
        ),
        format!(
            "Put the earlier key back into {file} (on Cloudflare: the secret SEALING_KEYS) and restart. Or enter each of them again: `gsv config set {first} -`."
        ),
    );
}

async fn check_model(report: &mut Report, client: &Client, offline: bool) {
    let config = match client.call::<ConfigGet>(ConfigGetParams { path: None }).await {
        Ok(result) => {
            check_secrets(report, result.unreadable.as_deref().unwrap_or_default());
            result.config.or(result.value).unwrap_or(Value::Null)
        }
        Err(failure) if failure.is(&errors::AUTH_FORBIDDEN) => {
            let found = "this token may not read the configuration";
            return report.warn("model", found, "Run the doctor with an admin token to check the model.");
        }
        Err(failure) => return report.failure("model", failure),
    };
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (provider, id) = (text("/model/provider"), text("/model/id"));
    if provider == "demo" {
        let next = "It follows only a few phrases. `gsv setup` sets a real one: it asks for provider, key and model, and tests them.";
        report.warn("model", "the built-in demo model", next);
    } else if offline {
        let has_address = |of: &Value| of.get("baseUrl").is_some();
        let of_provider = config.get("providers").and_then(|providers| providers.get(provider));
        let own_address = config.get("model").is_some_and(has_address) || of_provider.is_some_and(has_address);
        check_settings(report, client, provider, id, own_address).await;
    } else {
        // The gateway says what is missing, such as a key: it knows what each provider needs.
        call_model(report, client, &format!("{provider}/{id}")).await;
    }
}
