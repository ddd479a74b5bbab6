//! `gsv session`: lists, shows and changes conversations.

use gsv_protocol::errors;
use gsv_protocol::methods::{
    ApprovalList, SessionCompact, SessionDelete, SessionGet, SessionHistory, SessionPatch, SessionPreview,
    SessionReset, SessionStats, SessionsList,
};
use gsv_protocol::types::{
    AgentId, ApprovalEntry, ApprovalListParams, ArchiveKind, ModelPatch, ResetMode, ResetPolicy, ResetPolicyPatch,
    RunState, SessionCompactParams, SessionDeleteParams, SessionGetParams, SessionGetResult, SessionHistoryParams,
    SessionHistoryResult, SessionKey, SessionPatchParams, SessionPreviewParams, SessionPreviewResult,
    SessionResetParams, SessionSettingsPatch, SessionStatsParams, SessionStatsResult, SessionsListParams,
    SessionsListResult, TokenUsage,
};
use serde_json::{Value, json};

use super::approval_view::codes;
use super::context::Context;
use super::machine_view::awaited;
use super::messages::{speaker, text_at, thoughts, time_of, words};
use super::{session_export, transcript};
use crate::args::{self, SessionCommand, SessionSet};
use crate::ask::confirm;
use crate::clean::{clean, one_line, visible};
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::table::Table;
use crate::units::{ago, bytes, dollars, grouped, now_ms, time};

pub async fn run(context: &Context, command: SessionCommand) -> Outcome {
    let out = context.out;
    match command {
        SessionCommand::List { limit, offset, agent } => {
            let params = SessionsListParams {
                offset,
                limit,
                agent_id: agent.clone(),
            };
            let client = context.connect().await?;
            let result = client.call::<SessionsList>(params).await?;
            // A token that only reads may not ask, and an older gateway has no questions.
            let everywhere = ApprovalListParams { session_key: None };
            let waiting = client.call::<ApprovalList>(everywhere).await;
            let waiting = waiting.map(|result| result.approvals).unwrap_or_default();
            client.close().await;
            if out.json {
                out.json_document(&with_questions(&result, &waiting));
            } else {
                list(out, result, &waiting, offset.unwrap_or(0), agent.as_ref());
            }
            Ok(())
        }
        SessionCommand::Get(session) => {
            let session_key = Context::session(session.key)?;
            let get = context.show::<SessionGet>(SessionGetParams { session_key }, |result| described(out, result));
            get.await
        }
        SessionCommand::Stats(session) => {
            let session_key = Context::session(session.key)?;
            let stats = context.show::<SessionStats>(SessionStatsParams { session_key }, |result| stats(out, result));
            stats.await
        }
        SessionCommand::Reset(session) => {
            let session_key = Context::session(session.key)?;
            let reset = context.change::<SessionReset>(SessionResetParams { session_key }, |result| {
                let archived = archived(result.archived_messages, result.archived_to.as_deref());
                format!("{archived}; a new conversation begins")
            });
            reset.await
        }
        SessionCommand::Compact { session, keep } => {
            let params = SessionCompactParams {
                session_key: Context::session(session.key)?,
                keep_messages: keep,
            };
            let compacted = context.change::<SessionCompact>(params, |result| {
                let archived = archived(result.trimmed_messages, result.archived_to.as_deref());
                format!("{archived}; {} kept", grouped(result.kept_messages))
            });
            compacted.await
        }
        SessionCommand::Delete(args) => delete(context, args).await,
        SessionCommand::History(session) => history(context, Context::session(session.key)?).await,
        SessionCommand::Show(args) => transcript::show(context, args).await,
        SessionCommand::Export(args) => session_export::run(context, args).await,
        SessionCommand::Preview {
            session,
            limit,
            thinking,
        } => {
            let session_key = Context::session(session.key)?;
            let params = SessionPreviewParams {
                session_key,
                limit,
                notes: Some(true),
            };
            let preview = context.show::<SessionPreview>(params, |result| preview(out, &result, thinking));
            preview.await
        }
        SessionCommand::Set(args) => {
            let params = patch(args)?;
            let words = format!("{} is changed", clean(params.session_key.as_str()));
            context.change::<SessionPatch>(params, |_| words).await
        }
    }
}

async fn delete(context: &Context, args: args::SessionDelete) -> Outcome {
    let name = clean(args.key.as_str());
    if !args.yes {
        // A conversation that does not exist needs no answer.
        let params = SessionGetParams {
            session_key: args.key.clone(),
        };
        context.ask::<SessionGet>(params).await?;
        confirm(
            context.out,
            &format!("Delete {name} with its messages, transcripts and files? It can't be undone."),
            "delete it",
            "Nothing was deleted.",
        )?;
    }
    let params = SessionDeleteParams {
        session_key: args.key,
        stop: args.stop.then_some(true),
    };
    let deleted = context.change::<SessionDelete>(params, |result| {
        let name = clean(result.session_key.as_str());
        if !result.done {
            return format!("{name} is being deleted; GSV goes on with it in the background");
        }
        let counted = |count: Option<u64>, one: &str, many: &str| match count.unwrap_or(0) {
            1 => format!("1 {one}"),
            count => format!("{} {many}", grouped(count)),
        };
        format!(
            "{name} is deleted, with {} and {}",
            counted(result.archives, "transcript", "transcripts"),
            counted(result.files, "file", "files")
        )
    });
    deleted.await
}

fn archived(messages: u64, path: Option<&str>) -> String {
    let to = path.map(|path| format!(" to {}", clean(path))).unwrap_or_default();
    format!("{} messages archived{to}", grouped(messages))
}

/// The list with the codes of the questions that wait.
fn with_questions(result: &SessionsListResult, waiting: &[ApprovalEntry]) -> Value {
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

fn list(out: Output, result: SessionsListResult, waiting: &[ApprovalEntry], skipped: u64, agent: Option<&AgentId>) {
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

fn described(out: Output, session: SessionGetResult) {
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
        ("earlier", Some(format!("{earlier} conversations"))),
        ("id", Some(session.session_id)),
    ];
    out.fields(fields);
}

fn stats(out: Output, result: SessionStatsResult) {
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

async fn history(context: &Context, session_key: SessionKey) -> Outcome {
    let out = context.out;
    let client = context.connect().await?;
    let params = SessionHistoryParams {
        session_key: session_key.clone(),
    };
    let result = client.call::<SessionHistory>(params).await?;
    let archives = match transcript::archives(&client, None, Some(session_key)).await {
        // An older gateway does not list archives.
        Err(failure) if failure.is(&errors::PROTOCOL_UNKNOWN_METHOD) || failure.is(&errors::METHOD_NOT_SERVED) => {
            Vec::new()
        }
        listed => listed?,
    };
    client.close().await;
    if out.json {
        let mut document = json!(result);
        document["archives"] = json!(archives);
        out.json_document(&document);
        return Ok(());
    }
    let bare = |id: &String, kind: &str| [id.clone(), kind.to_owned(), String::new(), String::new(), String::new()];
    let SessionHistoryResult {
        previous_session_ids: previous,
        current_session_id: current,
        ..
    } = &result;
    let lost = previous
        .iter()
        .filter(|id| !archives.iter().any(|archive| &archive.session_id == *id));
    let kept = archives.iter().rev().map(|archive| {
        let kind = match archive.kind {
            ArchiveKind::Reset => "conversation",
            ArchiveKind::Part => "part",
        };
        [
            archive.path.clone(),
            kind.to_owned(),
            time(archive.archived_at),
            archive.message_count.map(grouped).unwrap_or_default(),
            bytes(archive.size_bytes),
        ]
    });
    let rows = lost
        .map(|id| bare(id, "no transcript"))
        .chain(kept)
        .chain([bare(current, "now")]);
    out.table(&Table::new(
        ["TRANSCRIPT", "KIND", "ARCHIVED", "MESSAGES", "SIZE"],
        rows,
    ));
    if !archives.is_empty() {
        out.aside("Read one with `gsv session show TRANSCRIPT`.");
    }
    Ok(())
}

fn preview(out: Output, result: &SessionPreviewResult, thinking: bool) {
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

fn patch(args: SessionSet) -> Outcome<SessionPatchParams> {
    let model = args.model.map(|model| ModelPatch {
        provider: Some(model.provider),
        id: Some(model.id),
    });
    let settings = SessionSettingsPatch {
        model,
        thinking_level: args.think,
        system_prompt: args.system_prompt,
        max_tokens: args.max_tokens,
        mode: args.mode,
        mode_ms: args
            .mode_for
            .map(|time| u32::try_from(time.as_millis()).unwrap_or(u32::MAX)),
    };
    let reset_policy = ResetPolicyPatch {
        mode: args.reset,
        at_hour: args.at_hour,
        idle_minutes: args.idle_minutes,
    };
    let params = SessionPatchParams {
        session_key: Context::session(args.session.key)?,
        settings: (settings != SessionSettingsPatch::default()).then_some(settings),
        label: args.label,
        reset_policy: (reset_policy != ResetPolicyPatch::default()).then_some(reset_policy),
        clear: (!args.clear.is_empty()).then_some(args.clear),
    };
    if params.settings.is_none() && params.label.is_none() && params.reset_policy.is_none() && params.clear.is_none() {
        return Err(Failure::usage(
            "There is nothing to change.",
            "Name a setting; `gsv session set --help` lists them.",
        ));
    }
    Ok(params)
}
