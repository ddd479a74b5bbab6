//! `gsv status`: the gateway, machines, channels and recent conversations.

use std::time::Duration;

use gsv_protocol::NoParams;
use gsv_protocol::methods::{ApprovalList, NodesList, SessionStats, SessionsList, UsageGet};
use gsv_protocol::types::{
    ApprovalEntry, ApprovalListParams, CronUpcomingResult, NodeEntry, PolicyMode, SessionEntry, SessionStatsParams,
    SessionsListParams, StopState, UsageGetParams,
};
use serde_json::{Value, json};

use super::approval_view::{codes, in_order};
use super::backup_schedule::{self, Standing};
use super::channel_account;
use super::channel_overview::{Asked, Overview};
use super::context::Context;
use super::cron_calendar;
use super::heartbeat;
use super::local::Local;
use super::machine_view::machines;
use super::node::start_command;
use super::notifications;
use super::own_gateway::is_own;
use super::session_view::{run_state, waits_for};
use super::stop_state;
use super::{service, service_gateway};
use crate::chat::glance::own_mode;
use crate::clean::{one_line, visible};
use crate::client::{Account, Client, find_url};
use crate::config::Config;
use crate::embedded::health::{self, Health, Unhealthy};
use crate::embedded::layout::Layout;
use crate::embedded::state::State;
use crate::embedded::url as local_url;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::service::Found;
use crate::table::Table;
use crate::units::{ago, clock, duration, now_ms};

const SESSIONS: u8 = 5;
/// Only sessions that were active this recently may do something. Others are not asked, because asking wakes them.
const RECENT_MS: u64 = 10 * 60_000;
const HEALTH_PATIENCE: Duration = Duration::from_secs(3);

/// Everything that the command shows.
struct Report {
    local: Local,
    url: Option<String>,
    /// Whether the address is that of this machine's gateway, or there is none.
    here: bool,
    health: Option<Result<Health, Unhealthy>>,
    /// The service of the gateway, if it is installed on this machine.
    service: Option<Outcome<Found>>,
    /// The scheduled backups of the gateway on this machine.
    backups: Option<Standing>,
    remote: Outcome<Remote>,
}

/// The answers of the gateway.
struct Remote {
    version: Option<String>,
    stopped: Option<StopState>,
    nodes: Vec<NodeEntry>,
    sessions: Vec<(SessionEntry, Option<String>)>,
    /// Absent: this token may not ask, or the gateway is older.
    channels: Option<Overview>,
    /// Questions that wait for your word. Absent: this token may not ask, or the gateway is older.
    approvals: Option<Vec<ApprovalEntry>>,
    /// Limits that are nearly or wholly used up, and places of notifications that do not work. Empty too when the gateway is older.
    attention: Vec<String>,
    /// The next jobs and heartbeats. Absent: this token may not ask, or the gateway is older.
    coming: Option<CronUpcomingResult>,
}

pub async fn run(context: &Context) -> Outcome {
    let out = context.out;
    let layout = Layout::find()?;
    let local = Local::look(&layout);
    let account = context.account();
    // Known also without a token, as on a machine that is only a node of another one's gateway.
    let config = Config::load().ok();
    let url = config
        .as_ref()
        .and_then(|config| find_url(&context.global, config).ok());
    let here = (url.as_deref()).is_none_or(|url| is_own(&local, &layout, url, config.as_ref()));
    let health = match &local {
        Local::Running(state) | Local::Orphaned(state) if here => {
            Some(health::check(state.port, HEALTH_PATIENCE).await)
        }
        _ => None,
    };
    let remote = match account {
        Ok(account) => ask(&account).await,
        Err(failure) => Err(failure),
    };
    let remote = remote.map_err(|failure| match &local {
        Local::Stopped | Local::GaveUp(_) if here && !is_about_the_token(&failure) => not_running(&local),
        _ => failure,
    });
    let service = if here {
        service_gateway::service()?.glance()
    } else {
        None
    };
    let report = Report {
        local,
        url,
        here,
        health,
        service,
        backups: here.then(|| backup_schedule::standing(&layout)).flatten(),
        remote,
    };
    if out.json {
        out.json_document(&report.json());
    } else {
        report.print(out);
    }
    report.remote.map(drop)
}

/// A gateway of this machine beside the one that the local config names.
pub fn own_gateway_words(port: u16) -> String {
    format!(
        "this machine runs a gateway of its own on port {port}: `gsv --url {} status`",
        local_url(port)
    )
}

fn is_about_the_token(failure: &Failure) -> bool {
    failure
        .reason
        .as_deref()
        .is_some_and(|reason| reason.starts_with("auth."))
}

fn not_running(local: &Local) -> Failure {
    let reason = local
        .state()
        .and_then(|state| state.reason.as_deref())
        .unwrap_or_default();
    let message = format!("The gateway is not running. {reason}");
    let next = local
        .state()
        .and_then(|state| state.next.as_deref())
        .unwrap_or("Start it with `gsv up`.");
    match local {
        Local::GaveUp(_) => Failure::failed(message.trim_end(), next),
        // As for every other command that finds no gateway.
        _ => Failure::later(message.trim_end(), next),
    }
}

async fn ask(account: &Account) -> Outcome<Remote> {
    let client = account.connect().await?;
    let stopped = stop_state::stopped(&client).await;
    let nodes = client.call::<NodesList>(NoParams {}).await?.nodes;
    let last = SessionsListParams {
        offset: None,
        limit: Some(SESSIONS),
        agent_id: None,
    };
    let listed = client.call::<SessionsList>(last).await?.sessions;
    let now = now_ms();
    let mut sessions = Vec::new();
    for session in listed {
        let is_recent = now.saturating_sub(session.last_active_at) < RECENT_MS;
        let activity = if is_recent {
            activity(&client, &session).await
        } else {
            None
        };
        let mode = mode_words(session.mode, session.mode_until, now);
        let words: Vec<String> = activity.into_iter().chain(mode).collect();
        sessions.push((session, (!words.is_empty()).then(|| words.join(", "))));
    }
    let channels = Overview::ask(&client).await.ok();
    let waiting = client
        .call::<ApprovalList>(ApprovalListParams { session_key: None })
        .await;
    let approvals = waiting.ok().map(|result| in_order(result.approvals));
    let today = UsageGetParams {
        by: None,
        days: Some(1),
    };
    let mut attention = client
        .call::<UsageGet>(today)
        .await
        .map_or_else(|_| Vec::new(), |usage| usage.attention);
    let coming = cron_calendar::ask(&client).await;
    attention.extend(notifications::attention(&client).await);
    attention.extend(heartbeat::attention(&client).await);
    let version = client.hello().map(|hello| hello.server.version);
    client.close().await;
    Ok(Remote {
        version,
        stopped,
        nodes,
        sessions,
        channels,
        approvals,
        attention,
        coming,
    })
}

async fn activity(client: &Client, session: &SessionEntry) -> Option<String> {
    let params = SessionStatsParams {
        session_key: session.session_key.clone(),
    };
    let counters = client.call::<SessionStats>(params).await.ok()?;
    let waiting = (counters.queue_size > 0).then(|| format!(", {} waiting", counters.queue_size));
    Some(format!("{}{}", run_state(&counters), waiting.unwrap_or_default()))
}

/// `mode full until 14:05`: the conversation's own mode, while it holds.
fn mode_words(mode: Option<PolicyMode>, until: Option<u64>, now: u64) -> Option<String> {
    let mode = own_mode(mode, until, now)?;
    Some(until.map_or_else(|| mode.clone(), |until| format!("{mode} until {}", clock(until))))
}

impl Report {
    fn json(&self) -> Value {
        let remote = self.remote.as_ref().ok();
        let state = self.local.state();
        let running = matches!(self.local, Local::Running(_));
        let gateway = self.here.then(|| {
            json!({
                "state": self.local.word(),
                "running": running || matches!(self.local, Local::Orphaned(_) | Local::Unknown | Local::LeftOver(_)),
                "healthy": self.health.as_ref().map(Result::is_ok),
                "pid": state.and_then(|state| state.workerd_pid),
                "supervisorPid": state.map(|state| state.supervisor_pid),
                "port": state.map(|state| state.port),
                "listening": state.and_then(|state| state.listening.as_ref()),
                "version": state.map(|state| &state.version),
                "startedAt": state.map(|state| state.started_at),
                "uptimeMs": state.filter(|_| running).map(|state| now_ms().saturating_sub(state.started_at)),
                "restarts": state.map(|state| state.restarts),
                "reason": state.and_then(|state| state.reason.as_deref()),
            })
        });
        let own_gateway = self
            .own_gateway()
            .map(|state| json!({ "port": state.port, "version": state.version }));
        let session = |(session, state): &(SessionEntry, Option<String>)| {
            let mut value = json!(session);
            if let Some(state) = state {
                value["state"] = json!(state);
            }
            let codes = remote.map(|remote| remote.questions(session)).unwrap_or_default();
            if !codes.is_empty() {
                value["questions"] = json!(codes);
            }
            value
        };
        let channels = remote.and_then(|remote| remote.channels.as_ref());
        json!({
            "url": self.url,
            "service": self.service.as_ref().map(|found| found.as_ref().ok().map(service::in_json)),
            "backups": self.backups.as_ref().map(|backups| &backups.json),
            "reachable": remote.is_some(),
            "version": remote.and_then(|remote| remote.version.as_deref()),
            "gateway": gateway,
            "ownGateway": own_gateway,
            "stopped": remote.and_then(|remote| remote.stopped.as_ref()),
            "nodes": remote.map_or(&[][..], |remote| &remote.nodes),
            "sessions": remote.into_iter().flat_map(|remote| &remote.sessions).map(session).collect::<Vec<_>>(),
            "channels": channels.map(|overview| overview.channels.iter().map(Asked::json).collect::<Vec<_>>()),
            "approvals": remote.and_then(|remote| remote.approvals.as_ref()).map(Vec::len),
            "strangers": channels.and_then(|overview| overview.requests),
            "coming": remote.and_then(|remote| remote.coming.as_ref()),
            "attention": remote.map_or(&[][..], |remote| &remote.attention),
            "error": self.remote.as_ref().err().map(|failure| json!({ "message": failure.message, "reason": failure.reason })),
        })
    }

    /// The gateway that runs on this machine, where another one is in use.
    fn own_gateway(&self) -> Option<&State> {
        match &self.local {
            Local::Running(state) | Local::Orphaned(state) if !self.here => Some(state),
            _ => None,
        }
    }

    /// The failure behind it says what happened and what to do.
    fn gateway_words(&self) -> String {
        match &self.local {
            Local::Stopped if self.remote.is_err() => "stopped".to_owned(),
            Local::GaveUp(_) if self.remote.is_err() => "stopped after failures".to_owned(),
            local => local.words(),
        }
    }

    fn print(&self, out: Output) {
        let now = now_ms();
        let remote = self.remote.as_ref().ok();
        let running = match &self.local {
            Local::Running(state) | Local::Orphaned(state) if self.here => Some(state),
            _ => None,
        };
        let process = running.and_then(|state| Some((state.workerd_pid?, state.supervisor_pid)));
        let health = self.health.as_ref().map(|health| match health {
            Ok(_) => "ok".to_owned(),
            Err(problem) => format!("bad: {problem}"),
        });
        let restarts = running.map(|state| state.restarts).filter(|count| *count > 0);
        out.fields([
            ("address", self.url.clone()),
            ("gateway", self.here.then(|| self.gateway_words())),
            (
                "own gateway",
                self.own_gateway().map(|state| own_gateway_words(state.port)),
            ),
            ("service", self.service.as_ref().map(service::in_one_line)),
            ("process", process.map(|(pid, by)| format!("{pid}, supervised by {by}"))),
            (
                "listens",
                running.and_then(|state| Some(state.listening.as_ref()?.words())),
            ),
            ("port", running.map(|state| state.port.to_string())),
            (
                "uptime",
                running.map(|state| duration(now.saturating_sub(state.started_at))),
            ),
            ("restarts", restarts.map(|count| count.to_string())),
            ("health", health),
            ("version", remote.and_then(|remote| remote.version.clone())),
            ("backups", self.backups.as_ref().map(|backups| backups.line.clone())),
            (
                "work",
                remote
                    .and_then(|remote| remote.stopped.as_ref())
                    .map(|state| stop_state::explain(state, self.url.as_deref().unwrap_or_default()))
                    .map(|(found, next)| format!("{found}. {next}")),
            ),
        ]);
        for text in self.backups.iter().flat_map(|backups| &backups.attention) {
            out.line("");
            out.line(&out.paint(Style::Bold, text));
        }
        if let Some(remote) = remote {
            remote.print(out, now);
        }
    }
}

impl Remote {
    /// The questions of a conversation that wait.
    fn questions(&self, session: &SessionEntry) -> Vec<String> {
        codes(
            self.approvals.as_deref().unwrap_or_default(),
            session.session_key.as_str(),
        )
    }

    /// A conversation that waits for its owner or for a machine does nothing else.
    fn state(&self, session: &SessionEntry, state: Option<&str>) -> String {
        match waits_for(&self.questions(session)) {
            waits if waits.is_empty() => self
                .machine_for(session)
                .or_else(|| state.map(str::to_owned))
                .unwrap_or_default(),
            waits => waits,
        }
    }

    /// The first machine that a call of the conversation waits for, and until when.
    fn machine_for(&self, session: &SessionEntry) -> Option<String> {
        self.nodes.iter().find_map(|node| {
            let mut calls = node.waiting.iter().flatten();
            let call = calls.find(|call| call.session_key == session.session_key)?;
            Some(format!(
                "waits for {} until {}",
                visible(node.node_id.as_str()),
                clock(call.until)
            ))
        })
    }

    fn print(&self, out: Output, now: u64) {
        let jobs = self.coming.as_ref().map(|coming| cron_calendar::attention(coming, now));
        for text in self.attention.iter().chain(jobs.iter().flatten()) {
            out.line("");
            out.line(&out.paint(Style::Bold, text));
        }
        out.line("");
        if self.nodes.is_empty() {
            out.aside(&format!(
                "No machines yet. Let the agent use this one: `{}`.",
                start_command()
            ));
        } else {
            out.table(&machines(&self.nodes, now));
        }
        if let Some(overview) = &self.channels {
            print_channels(out, overview, now);
        }
        if let Some(table) = self
            .coming
            .as_ref()
            .and_then(|coming| cron_calendar::next_table(coming, now))
        {
            out.line("");
            out.table(&table);
        }
        if let Some(line) = self.approvals.as_deref().and_then(approvals_line) {
            out.line("");
            out.line(&line);
        }
        if !self.sessions.is_empty() {
            let rows = self.sessions.iter().map(|(session, state)| {
                [
                    session.session_key.to_string(),
                    ago(session.last_active_at, now),
                    self.state(session, state.as_deref()),
                    one_line(session.label.as_deref().unwrap_or_default(), 60),
                ]
            });
            out.line("");
            out.table(&Table::new(["SESSION", "ACTIVE", "STATE", "LABEL"], rows));
        }
    }
}

fn approvals_line(waiting: &[ApprovalEntry]) -> Option<String> {
    let codes: Vec<_> = waiting.iter().map(|entry| visible(&entry.code)).collect();
    match codes.as_slice() {
        [] => None,
        [code] => Some(format!("1 question waits for your word: `gsv approval show {code}`")),
        codes => Some(format!(
            "{} questions wait for your word ({}): `gsv approval list`",
            codes.len(),
            codes.join(", ")
        )),
    }
}

/// One line per account, never cut, and the number of pairing requests.
fn print_channels(out: Output, overview: &Overview, now: u64) {
    let mut lines = Vec::new();
    for asked in &overview.channels {
        match &asked.accounts {
            Ok(accounts) => lines.extend(accounts.iter().map(|account| {
                let name = channel_account::name(&asked.channel, &account.account_id);
                (name, asked.line(account, now))
            })),
            Err(failure) => lines.push((asked.channel.clone(), failure.message.clone())),
        }
    }
    if !lines.is_empty() {
        out.line("");
        out.line(&out.paint(Style::Bold, "CHANNELS"));
        out.fields(lines);
    }
    if let Some((words, next)) = overview.requests_line() {
        out.line("");
        out.line(&format!("{words}: {next}"));
    }
}
