//! What `gsv session` shows of conversations.

use gsv_protocol::types::{
    AgentId, ApprovalEntry, ResetMode, ResetPolicy, RunState, SessionGetResult, SessionPreviewResult,
    SessionStatsResult, SessionsListResult, TokenUsage,
};
use serde_json::{Value, json};

use super::approval_view::codes;
use super::machine_view::awaited;
use super::messages::{speaker, text_at, thoughts, time_of, words};
use crate::clean::{clean, one_line, visible};
use crate::output::{Output, Style};
use crate::table::Table;
use crate::units::{ago, counted, dollars, grouped, now_ms, time};

/// The list with the codes of the questions that wait.
pub fn with_questions(result: &SessionsListResult, waiting: &[ApprovalEntry]) -> Value {
    let mut list = json!(result);
    for (session, value) in result
        .sessions
        .iter()
        .zip(list["sessions"].as_array_mut().into_iter().flatten())
    {
        let codes = codes(waiting, session.session_key.as_str());
        if !codes.is_empty() {
            value["questions"] = json!(codes);
        }
    }
    list
}

/// What a conversation waits for, in few words. Empty: for no answer.
pub fn waits_for(codes: &[String]) -> String {
    if codes.is_empty() {
        return String::new();
    }
    format!("waits for your answer ({})", codes.join(", "))
}

pub fn list(out: Output, result: SessionsListResult, waiting: &[ApprovalEntry], skipped: u64, agent: Option<&AgentId>) {
    if result.sessions.is_empty() {
        let of = agent.map(|id| format!(" --agent {}", id.as_str())).unwrap_or_default();
        return out.aside(&format!("No conversations yet. Start one: `gsv chat{of} hello`."));
    }
    let now = now_ms();
    let next = skipped + result.sessions.len() as u64;
    let rows = result.sessions.into_iter().map(|session| {
        let codes = codes(waiting, session.session_key.as_str());
        [
            session.session_key.into_inner(),
            ago(session.last_active_at, now),
            ago(session.created_at, now),
            waits_for(&codes),
            session.label.unwrap_or_default(),
        ]
    });
    out.table(&Table::new(["SESSION", "ACTIVE", "CREATED", "STATE", "LABEL"], rows));
    if let Some(first) = waiting.first() {
        out.aside(&format!("See a question: `gsv approval show {}`", visible(&first.code)));
    }
    if next < result.count {
        out.aside(&format!("{} more: --offset {next}", result.count - next));
    }
}

pub fn described(out: Output, session: SessionGetResult) {
    let now = now_ms();
    let when = |at: u64| format!("{} ({})", time(at), ago(at, now));
    let settings = session.settings;
    let model = settings.model.map(|model| format!("{}/{}", model.provider, model.id));
    let earlier = session.previous_session_ids.len();
    let fields = [
        ("session", Some(session.session_key.into_inner())),
        ("label", session.label),
        ("state", session.state.map(|state| state.as_str().to_owned())),
        ("question", session.questions.as_deref().and_then(asked)),
        (
            "waits for",
            session.machines.as_deref().and_then(|calls| awaited(calls, now)),
        ),
        ("messages", Some(grouped(session.message_count))),
        ("tokens", Some(tokens(&session.tokens))),
        ("model", model),
        (
            "thinking",
            settings.thinking_level.map(|level| level.as_str().to_owned()),
        ),
        (
            "mode",
            settings
                .mode
                .filter(|_| settings.mode_until.is_none_or(|end| end > now))
                .map(|mode| match settings.mode_until {
                    Some(end) => format!("{} until {}", mode.as_str(), time(end)),
                    None => mode.as_str().to_owned(),
                }),
        ),
        ("max tokens", settings.max_tokens.map(|max| grouped(max.into()))),
        (
            "system prompt",
            settings.system_prompt.map(|prompt| one_line(&prompt, 60)),
        ),
        ("reset", session.reset_policy.map(|policy| reset_words(&policy))),
        ("created", Some(when(session.created_at))),
        ("active", Some(when(session.updated_at))),
        ("last reset", session.last_reset_at.map(time)),
        (
            "earlier",
            Some(counted(earlier as u64, "conversation", "conversations")),
        ),
        ("id", Some(session.session_id)),
    ];
    out.fields(fields);
}

pub fn stats(out: Output, result: SessionStatsResult) {
    let state = run_state(&result).to_owned();
    let fields = [
        ("session", Some(result.session_key.into_inner())),
        ("state", Some(state)),
        ("question", result.questions.as_deref().and_then(asked)),
        (
            "waits for",
            result.machines.as_deref().and_then(|calls| awaited(calls, now_ms())),
        ),
        ("run", result.run_id.map(|run| run.0)),
        ("steps", result.steps.map(grouped)),
        ("queue", Some(grouped(result.queue_size))),
        ("messages", Some(grouped(result.message_count))),
        ("tokens", Some(tokens(&result.tokens))),
        ("runs", result.runs_completed.map(grouped)),
        ("active", Some(ago(result.updated_at, now_ms()))),
    ];
    out.fields(fields);
}

/// The questions that wait, and how to see the first.
fn asked(codes: &[String]) -> Option<String> {
    let first = visible(codes.first()?);
    Some(format!(
        "{} (`gsv approval show {first}`)",
        waits_for(&codes.iter().map(|code| visible(code)).collect::<Vec<_>>())
    ))
}

/// The state of a run, also from a gateway that only says whether there is one.
pub fn run_state(stats: &SessionStatsResult) -> &'static str {
    let usual = if stats.is_processing { "busy" } else { "idle" };
    stats.state.map_or(usual, RunState::as_str)
}

fn tokens(tokens: &TokenUsage) -> String {
    let cost = tokens
        .cost_usd
        .map(|cost| format!(", {}", dollars(cost)))
        .unwrap_or_default();
    format!("{} in, {} out{cost}", grouped(tokens.input), grouped(tokens.output))
}

fn reset_words(policy: &ResetPolicy) -> String {
    match (policy.mode, policy.at_hour, policy.idle_minutes) {
        (ResetMode::Manual, _, _) => "manual".to_owned(),
        (ResetMode::Daily, Some(hour), _) => format!("daily at {hour}:00"),
        (ResetMode::Daily, None, _) => "daily".to_owned(),
        (ResetMode::Idle, _, Some(minutes)) => format!("after {minutes} idle minutes"),
        (ResetMode::Idle, _, None) => "when idle".to_owned(),
    }
}

pub fn preview(out: Output, result: &SessionPreviewResult, thinking: bool) {
    if result.messages.is_empty() {
        out.aside("No messages.");
    }
    for message in &result.messages {
        let role = match text_at(message, "role") {
            "" => "?".to_owned(),
            "note" => speaker(message),
            role => role.to_owned(),
        };
        let heading = clean(&format!("{role}  {}", time_of(message)));
        out.line(&out.paint(Style::Bold, heading.trim_end()));
        if thinking {
            for thought in thoughts(message) {
                out.line(&out.paint(Style::Dim, clean(&format!("Thinking: {thought}")).trim_end()));
            }
        }
        out.content(&format!("{}\n\n", words(message)));
    }
}
