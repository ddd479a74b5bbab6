//! `gsv status`: the gateway, the machines, what is going on.

use std::time::Duration;

use gsv_protocol::NoParams;
use gsv_protocol::methods::{NodesList, SessionStats, SessionsList};
use gsv_protocol::types::{NodeEntry, SessionEntry, SessionStatsParams, SessionsListParams};
use serde_json::{Value, json};

use super::channel::{Asked, Overview};
use super::session::state_word;
use super::{Context, channel_state};
use crate::clean::one_line;
use crate::client::{Account, Client};
use crate::embedded::health::{self, Health, Unhealthy};
use crate::embedded::layout::Layout;
use crate::embedded::lock;
use crate::embedded::state::{Found, Phase, State};
use crate::embedded::up::is_loopback;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::table::Table;
use crate::units::{ago, duration, now_ms};

const SESSIONS: u8 = 5;
/// Only such sessions are asked what they do: asking wakes them.
const RECENT_MS: u64 = 10 * 60_000;
const HEALTH_PATIENCE: Duration = Duration::from_secs(3);

/// The embedded gateway, as far as this machine knows without asking it.
#[derive(Debug)]
pub enum Local {
    /// There has never been one here, or it was stopped.
    Stopped,
    Running(Box<State>),
    /// Its supervisor was killed; workerd may still be there.
    Orphaned(Box<State>),
    GaveUp(Box<State>),
    /// The supervisor runs, but what it wrote can't be read.
    Unknown,
}

impl Local {
    pub fn look(layout: &Layout) -> Self {
        let held = lock::is_held(&layout.supervisor_lock());
        match (State::read(&layout.state()), held) {
            (Found::State(state), true) => Self::Running(state),
            (Found::State(state), false) if state.phase == Phase::Failed => Self::GaveUp(state),
            (Found::State(state), false) if state.workerd().is_some_and(|workerd| workerd.is_alive()) => {
                Self::Orphaned(state)
            }
            (_, false) => Self::Stopped,
            (Found::Absent | Found::Damaged, true) => Self::Unknown,
        }
    }

    fn state(&self) -> Option<&State> {
        match self {
            Self::Running(state) | Self::Orphaned(state) | Self::GaveUp(state) => Some(state),
            Self::Stopped | Self::Unknown => None,
        }
    }

    pub fn words(&self) -> String {
        match self {
            Self::Stopped => "not running; start it with `gsv up`".to_owned(),
            Self::Unknown => "running, but its state can't be read; run `gsv down && gsv up`".to_owned(),
            Self::Orphaned(_) => "running without its supervisor; run `gsv up` to mend that".to_owned(),
            Self::GaveUp(state) => format!(
                "given up: {} Then `gsv up`.",
                state.reason.as_deref().unwrap_or("no reason is known.")
            ),
            Self::Running(state) => match state.phase {
                Phase::Ready => "running".to_owned(),
                Phase::Starting => "starting".to_owned(),
                Phase::Restarting => "being restarted after a crash".to_owned(),
                Phase::Failed => "failing".to_owned(),
            },
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
            Self::Orphaned(_) => "orphaned",
            Self::GaveUp(_) => "failed",
            Self::Running(state) => match state.phase {
                Phase::Ready => "running",
                Phase::Starting => "starting",
                Phase::Restarting => "restarting",
                Phase::Failed => "failed",
            },
        }
    }
}

struct Remote {
    version: Option<String>,
    nodes: Vec<NodeEntry>,
    sessions: Vec<(SessionEntry, Option<String>)>,
    /// Absent: this token may not ask, or the gateway is of an older version.
    channels: Option<Overview>,
}

pub async fn run(context: &Context) -> Outcome {
    let layout = Layout::find()?;
    let local = Local::look(&layout);
    let account = context.account();
    let url = account.as_ref().map(|account| account.url.clone()).ok();
    let here = url.as_deref().is_none_or(is_loopback);
    let port = local.state().map(|state| state.port).filter(|_| here);
    let health = match (port, &local) {
        (Some(port), Local::Running(_) | Local::Orphaned(_)) => Some(health::check(port, HEALTH_PATIENCE).await),
        _ => None,
    };
    let remote = match account {
        Ok(account) => ask(&account).await,
        Err(failure) => Err(failure),
    };
    let refused = |failure: &Failure| {
        failure
            .reason
            .as_deref()
            .is_some_and(|reason| reason.starts_with("auth."))
    };
    let stopped = here && matches!(local, Local::Stopped | Local::GaveUp(_));
    let remote = remote.map_err(|failure| {
        if stopped && !refused(&failure) {
            not_running(&local)
        } else {
            failure
        }
    });
    let out = context.out;
    if out.json {
        out.json_document(&as_json(&local, url.as_deref(), health.as_ref(), &remote));
    } else {
        show(
            out,
            here.then_some(&local),
            url.as_deref(),
            health.as_ref(),
            remote.as_ref().ok(),
        );
    }
    remote.map(|_| ())
}

fn not_running(local: &Local) -> Failure {
    let why = match local {
        Local::GaveUp(state) => state.reason.as_deref().unwrap_or_default(),
        _ => "",
    };
    Failure::failed(
        format!("The gateway is not running. {why}").trim_end(),
        "Start it with `gsv up`.",
    )
}

async fn ask(account: &Account) -> Outcome<Remote> {
    let client = account.connect().await?;
    let nodes = client.call::<NodesList>(NoParams {}).await?.nodes;
    let listed = client
        .call::<SessionsList>(SessionsListParams {
            offset: None,
            limit: Some(SESSIONS),
        })
        .await?
        .sessions;
    let now = now_ms();
    let mut sessions = Vec::new();
    for session in listed {
        let recent = now.saturating_sub(session.last_active_at) < RECENT_MS;
        let state = if recent {
            state_of(&client, &session).await
        } else {
            None
        };
        sessions.push((session, state));
    }
    let channels = Overview::ask(&client).await.ok();
    let version = client.hello().map(|hello| hello.server.version);
    client.close().await;
    Ok(Remote {
        version,
        nodes,
        sessions,
        channels,
    })
}

async fn state_of(client: &Client, session: &SessionEntry) -> Option<String> {
    let params = SessionStatsParams {
        session_key: session.session_key.clone(),
    };
    let counters = client.call::<SessionStats>(params).await.ok()?;
    let fallback = if counters.is_processing { "busy" } else { "idle" };
    let word = counters.state.map_or(fallback, state_word);
    Some(if counters.queue_size > 0 {
        format!("{word}, {} waiting", counters.queue_size)
    } else {
        word.to_owned()
    })
}

fn as_json(
    local: &Local,
    url: Option<&str>,
    health: Option<&Result<Health, Unhealthy>>,
    remote: &Outcome<Remote>,
) -> Value {
    let state = local.state();
    let overview = remote.as_ref().ok().and_then(|remote| remote.channels.as_ref());
    json!({
        "url": url,
        "reachable": remote.is_ok(),
        "version": remote.as_ref().ok().and_then(|remote| remote.version.as_deref()),
        "gateway": {
            "state": local.word(),
            "running": matches!(local, Local::Running(_) | Local::Orphaned(_) | Local::Unknown),
            "healthy": health.map(Result::is_ok),
            "pid": state.and_then(|state| state.workerd_pid),
            "supervisorPid": state.map(|state| state.supervisor_pid),
            "port": state.map(|state| state.port),
            "version": state.map(|state| &state.version),
            "startedAt": state.map(|state| state.started_at),
            "uptimeMs": state.filter(|_| matches!(local, Local::Running(_))).map(|state| now_ms().saturating_sub(state.started_at)),
            "restarts": state.map(|state| state.restarts),
            "reason": state.and_then(|state| state.reason.as_deref()),
        },
        "nodes": remote.as_ref().map(|remote| &remote.nodes[..]).unwrap_or_default(),
        "sessions": remote.as_ref().map(|remote| remote.sessions.iter().map(|(session, state)| {
            let mut value = serde_json::to_value(session).unwrap_or_default();
            if let (Some(fields), Some(state)) = (value.as_object_mut(), state) {
                fields.insert("state".to_owned(), Value::from(state.as_str()));
            }
            value
        }).collect::<Vec<_>>()).unwrap_or_default(),
        "channels": overview.map(|overview| overview.channels.iter().map(Asked::json).collect::<Vec<_>>()),
        "strangers": overview.and_then(|overview| overview.strangers),
        "error": remote.as_ref().err().map(|failure| json!({ "message": failure.message, "reason": failure.reason })),
    })
}

fn show(
    out: Output,
    local: Option<&Local>,
    url: Option<&str>,
    health: Option<&Result<Health, Unhealthy>>,
    remote: Option<&Remote>,
) {
    let now = now_ms();
    let mut fields = Vec::new();
    fields.extend(url.map(|url| ("address", url.to_owned())));
    if let Some(local) = local {
        fields.push(("gateway", local.words()));
        if let Local::Running(state) | Local::Orphaned(state) = local {
            fields.extend(
                state
                    .workerd_pid
                    .map(|pid| ("process", format!("{pid}, supervised by {}", state.supervisor_pid))),
            );
            fields.push(("port", state.port.to_string()));
            fields.push(("uptime", duration(now.saturating_sub(state.started_at))));
            if state.restarts > 0 {
                fields.push(("restarts", state.restarts.to_string()));
            }
        }
    }
    match health {
        Some(Ok(_)) => fields.push(("health", "ok".to_owned())),
        Some(Err(problem)) => fields.push(("health", format!("bad: {problem}"))),
        None => {}
    }
    fields.extend(
        remote
            .and_then(|remote| remote.version.clone())
            .map(|version| ("version", version)),
    );
    out.fields(&fields);
    let Some(remote) = remote else { return };

    out.line("");
    if remote.nodes.is_empty() {
        out.aside("No machines yet. Give the agent hands: `gsv node --id laptop`.");
    } else {
        let mut table = Table::new(["MACHINE", "STATE", "SEEN", "TOOLS"]);
        for node in &remote.nodes {
            let seen = node.last_seen_at.or(node.last_connected_at);
            let seen = if node.online {
                "now".to_owned()
            } else {
                seen.map(|at| ago(at, now)).unwrap_or_default()
            };
            table.row(&[
                node.node_id.0.clone(),
                if node.online { "online" } else { "offline" }.to_owned(),
                seen,
                node.tools.join(" "),
            ]);
        }
        out.table(&table);
    }
    if let Some(overview) = &remote.channels {
        show_channels(out, overview, now);
    }
    if !remote.sessions.is_empty() {
        out.line("");
        let mut table = Table::new(["SESSION", "ACTIVE", "STATE", "LABEL"]);
        for (session, state) in &remote.sessions {
            let label = session.label.clone().unwrap_or_default();
            table.row(&[
                session.session_key.0.clone(),
                ago(session.last_active_at, now),
                state.clone().unwrap_or_default(),
                one_line(&label, 60),
            ]);
        }
        out.table(&table);
    }
}

/// A line for each account, never cut, and whoever waits to be let in.
fn show_channels(out: Output, overview: &Overview, now: u64) {
    let mut lines = Vec::new();
    for asked in &overview.channels {
        match &asked.accounts {
            Ok(accounts) => lines.extend(accounts.iter().map(|account| {
                (
                    channel_state::name(&asked.channel, &account.account_id),
                    asked.line(account, now),
                )
            })),
            Err(failure) => lines.push((asked.channel.clone(), failure.message.clone())),
        }
    }
    if !lines.is_empty() {
        out.line("");
        out.line(&out.paint(Style::Bold, "CHANNELS"));
        let lines: Vec<(&str, String)> = lines.iter().map(|(name, line)| (name.as_str(), line.clone())).collect();
        out.fields(&lines);
    }
    if let Some((words, next)) = overview.strangers_line() {
        out.line("");
        out.line(&format!("{words}: {next}"));
    }
}
