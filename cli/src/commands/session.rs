//! `gsv session`.

use gsv_protocol::errors;
use gsv_protocol::methods::{
    SessionCompact, SessionGet, SessionHistory, SessionPatch, SessionPreview, SessionReset, SessionStats, SessionsList,
};
use gsv_protocol::types::{
    AgentId, ModelRef, ResetMode, ResetPolicy, ResetPolicyPatch, RunState, SessionCompactParams, SessionGetParams,
    SessionGetResult, SessionHistoryParams, SessionKey, SessionPatchParams, SessionPreviewParams, SessionResetParams,
    SessionSettings, SessionStatsParams, SessionStatsResult, SessionsListParams, ThinkLevel, TokenUsage,
};
use serde_json::Value;

use super::{Context, export, transcript};
use crate::args::{Reset, SessionCommand, SessionSet, Think};
use crate::clean::clean;
use crate::exit::{Failure, Outcome};
use crate::output::Style;
use crate::table::Table;
use crate::units::{ago, bytes, dollars, grouped, now_ms, time};

pub async fn run(context: &Context, command: SessionCommand) -> Outcome {
    match command {
        SessionCommand::List { limit, offset } => list(context, limit, offset).await,
        SessionCommand::Get(session) => get(context, key(session.key)?).await,
        SessionCommand::Stats(session) => stats(context, key(session.key)?).await,
        SessionCommand::Reset(session) => reset(context, key(session.key)?).await,
        SessionCommand::Compact { session, keep } => compact(context, key(session.key)?, keep).await,
        SessionCommand::History(session) => history(context, key(session.key)?).await,
        SessionCommand::Show {
            target,
            limit,
            offset,
            agent,
        } => transcript::show(context, target, agent.agent.map(AgentId), offset.unwrap_or(0), limit).await,
        SessionCommand::Export {
            target,
            format,
            output,
            force,
            agent,
        } => export::run(context, target, agent.agent.map(AgentId), format, output, force).await,
        SessionCommand::Preview { session, limit } => preview(context, key(session.key)?, limit).await,
        SessionCommand::Set(args) => set(context, args).await,
    }
}

fn key(key: Option<String>) -> Outcome<SessionKey> {
    Context::session(key).map(SessionKey)
}

async fn list(context: &Context, limit: Option<u8>, offset: Option<u64>) -> Outcome {
    let client = context.connect().await?;
    let result = client
        .call::<SessionsList>(SessionsListParams { offset, limit })
        .await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
        return Ok(());
    }
    if result.sessions.is_empty() {
        context.out.aside("No conversations yet. Begin one: `gsv chat hello`.");
        return Ok(());
    }
    let now = now_ms();
    let mut table = Table::new(["SESSION", "ACTIVE", "CREATED", "LABEL"]);
    let shown = result.sessions.len() as u64;
    for session in result.sessions {
        table.row(&[
            session.session_key.0,
            ago(session.last_active_at, now),
            ago(session.created_at, now),
            session.label.unwrap_or_default(),
        ]);
    }
    context.out.table(&table);
    let skipped = offset.unwrap_or(0);
    if skipped + shown < result.count {
        context.out.aside(&format!(
            "{} more: --offset {}",
            result.count - skipped - shown,
            skipped + shown
        ));
    }
    Ok(())
}

async fn get(context: &Context, session_key: SessionKey) -> Outcome {
    let client = context.connect().await?;
    let result = client.call::<SessionGet>(SessionGetParams { session_key }).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        context.out.fields(&described(result));
    }
    Ok(())
}

fn described(session: SessionGetResult) -> Vec<(&'static str, String)> {
    let now = now_ms();
    let mut fields = vec![("session", session.session_key.0)];
    fields.extend(session.label.map(|label| ("label", label)));
    fields.extend(session.state.map(|state| ("state", state_word(state).to_owned())));
    fields.push(("messages", grouped(session.message_count)));
    fields.push(("tokens", tokens(&session.tokens)));
    let settings = session.settings;
    fields.extend(
        settings
            .model
            .map(|model| ("model", format!("{}/{}", model.provider, model.id))),
    );
    fields.extend(
        settings
            .thinking_level
            .map(|level| ("thinking", level.as_str().to_owned())),
    );
    fields.extend(settings.max_tokens.map(|max| ("max tokens", grouped(max.into()))));
    fields.extend(
        settings
            .system_prompt
            .map(|prompt| ("system prompt", crate::clean::one_line(&prompt, 60))),
    );
    fields.extend(session.reset_policy.map(|policy| ("reset", policy_words(&policy))));
    fields.push((
        "created",
        format!("{} ({})", time(session.created_at), ago(session.created_at, now)),
    ));
    fields.push((
        "active",
        format!("{} ({})", time(session.updated_at), ago(session.updated_at, now)),
    ));
    fields.extend(session.last_reset_at.map(|at| ("last reset", time(at))));
    fields.push((
        "earlier",
        format!("{} conversations", session.previous_session_ids.len()),
    ));
    fields.push(("id", session.session_id));
    fields
}

pub fn state_word(state: RunState) -> &'static str {
    state.as_str()
}

fn tokens(tokens: &TokenUsage) -> String {
    let cost = tokens
        .cost_usd
        .map_or_else(String::new, |cost| format!(", {}", dollars(cost)));
    format!("{} in, {} out{cost}", grouped(tokens.input), grouped(tokens.output))
}

fn policy_words(policy: &ResetPolicy) -> String {
    match policy.mode {
        ResetMode::Manual => "by hand only".to_owned(),
        ResetMode::Daily => policy
            .at_hour
            .map_or_else(|| "daily".to_owned(), |hour| format!("daily at {hour}:00")),
        ResetMode::Idle => policy.idle_minutes.map_or_else(
            || "when idle".to_owned(),
            |minutes| format!("after {minutes} idle minutes"),
        ),
    }
}

async fn stats(context: &Context, session_key: SessionKey) -> Outcome {
    let client = context.connect().await?;
    let result: SessionStatsResult = client.call::<SessionStats>(SessionStatsParams { session_key }).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
        return Ok(());
    }
    let mut fields = vec![("session", result.session_key.0)];
    let state = result
        .state
        .map_or(if result.is_processing { "busy" } else { "idle" }, state_word);
    fields.push(("state", state.to_owned()));
    fields.extend(result.run_id.map(|run| ("run", run.0)));
    fields.extend(result.steps.map(|steps| ("steps", grouped(steps))));
    fields.push(("queue", grouped(result.queue_size)));
    fields.push(("messages", grouped(result.message_count)));
    fields.push(("tokens", tokens(&result.tokens)));
    fields.extend(result.runs_completed.map(|runs| ("runs", grouped(runs))));
    fields.push(("active", ago(result.updated_at, now_ms())));
    context.out.fields(&fields);
    Ok(())
}

async fn reset(context: &Context, session_key: SessionKey) -> Outcome {
    let client = context.connect().await?;
    let result = client.call::<SessionReset>(SessionResetParams { session_key }).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
        return Ok(());
    }
    let archive = result
        .archived_to
        .map(|path| format!(" to {}", clean(&path)))
        .unwrap_or_default();
    context.out.aside(&format!(
        "{} messages archived{archive}; the conversation starts afresh",
        grouped(result.archived_messages)
    ));
    Ok(())
}

async fn compact(context: &Context, session_key: SessionKey, keep: Option<u32>) -> Outcome {
    let client = context.connect().await?;
    let params = SessionCompactParams {
        session_key,
        keep_messages: keep,
    };
    let result = client.call::<SessionCompact>(params).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
        return Ok(());
    }
    let archive = result
        .archived_to
        .map(|path| format!(", archived to {}", clean(&path)))
        .unwrap_or_default();
    let text = format!(
        "{} messages taken out{archive}; {} kept",
        grouped(result.trimmed_messages),
        grouped(result.kept_messages)
    );
    context.out.aside(&text);
    Ok(())
}

async fn history(context: &Context, session_key: SessionKey) -> Outcome {
    let client = context.connect().await?;
    let result = client
        .call::<SessionHistory>(SessionHistoryParams {
            session_key: session_key.clone(),
        })
        .await?;
    let archives = match transcript::archives(&client, None, Some(session_key)).await {
        Ok(archives) => archives,
        // A gateway of before has none to tell of.
        Err(failure) if failure.is(&errors::PROTOCOL_UNKNOWN_METHOD) || failure.is(&errors::METHOD_NOT_SERVED) => {
            Vec::new()
        }
        Err(failure) => return Err(failure),
    };
    client.close().await;
    if context.out.json {
        let archives = serde_json::to_value(&archives).unwrap_or_default();
        let mut document = serde_json::to_value(&result).unwrap_or_default();
        if let Some(fields) = document.as_object_mut() {
            fields.insert("archives".to_owned(), archives);
        }
        context.out.json_document(&document);
        return Ok(());
    }
    let mut table = Table::new(["TRANSCRIPT", "KIND", "ARCHIVED", "MESSAGES", "SIZE"]);
    for id in &result.previous_session_ids {
        if !archives.iter().any(|archive| &archive.session_id == id) {
            table.row(&[
                id.clone(),
                "no transcript".to_owned(),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
    }
    for archive in archives.iter().rev() {
        table.row(&[
            archive.path.clone(),
            transcript::kind_word(archive.kind).to_owned(),
            time(archive.archived_at),
            archive.message_count.map(grouped).unwrap_or_default(),
            bytes(archive.size_bytes),
        ]);
    }
    table.row(&[
        result.current_session_id,
        "now".to_owned(),
        String::new(),
        String::new(),
        String::new(),
    ]);
    context.out.table(&table);
    if !archives.is_empty() {
        context.out.aside("Read one with `gsv session show TRANSCRIPT`.");
    }
    Ok(())
}

async fn preview(context: &Context, session_key: SessionKey, limit: Option<u8>) -> Outcome {
    let client = context.connect().await?;
    let result = client
        .call::<SessionPreview>(SessionPreviewParams { session_key, limit })
        .await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&result);
        return Ok(());
    }
    if result.messages.is_empty() {
        out.aside("No messages.");
    }
    for message in &result.messages {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("?");
        let at = message
            .get("timestamp")
            .and_then(Value::as_u64)
            .map(time)
            .unwrap_or_default();
        out.line(&out.paint(Style::Bold, clean(&format!("{role}  {at}")).trim_end()));
        out.content(&format!("{}\n\n", message_words(message)));
    }
    Ok(())
}

/// A message of the model library as text: what is no text is named.
fn message_words(message: &Value) -> String {
    let blocks = match message.get("content") {
        Some(Value::String(text)) => return text.clone(),
        Some(Value::Array(blocks)) => blocks,
        _ => return String::new(),
    };
    let words = blocks.iter().map(|block| {
        let text = |field: &str| block.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" => text("text").to_owned(),
            "thinking" => String::new(),
            "toolCall" => format!(
                "[calls {} {}]",
                text("name"),
                block.get("arguments").unwrap_or(&Value::Null)
            ),
            kind => format!("[{kind}]"),
        }
    });
    words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n")
}

async fn set(context: &Context, args: SessionSet) -> Outcome {
    let params = patch(args)?;
    let key = params.session_key.0.clone();
    let client = context.connect().await?;
    let result = client.call::<SessionPatch>(params).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        context.out.aside(&format!("{} is changed", clean(&key)));
    }
    Ok(())
}

fn patch(args: SessionSet) -> Outcome<SessionPatchParams> {
    let settings = SessionSettings {
        model: args.model.as_deref().map(model_ref).transpose()?,
        thinking_level: args.think.map(think_level),
        system_prompt: args.system_prompt,
        max_tokens: args.max_tokens,
    };
    let reset_policy = ResetPolicyPatch {
        mode: args.reset.map(|reset| match reset {
            Reset::Manual => ResetMode::Manual,
            Reset::Daily => ResetMode::Daily,
            Reset::Idle => ResetMode::Idle,
        }),
        at_hour: args.at_hour,
        idle_minutes: args.idle_minutes,
    };
    let params = SessionPatchParams {
        session_key: key(args.session.key)?,
        settings: (settings != SessionSettings::default()).then_some(settings),
        label: args.label,
        reset_policy: (reset_policy != ResetPolicyPatch::default()).then_some(reset_policy),
        clear: (!args.clear.is_empty()).then_some(args.clear),
    };
    if params.settings.is_none() && params.label.is_none() && params.reset_policy.is_none() && params.clear.is_none() {
        return Err(Failure::usage(
            "Nothing to change was named.",
            "See `gsv session set --help`.",
        ));
    }
    Ok(params)
}

pub fn model_ref(text: &str) -> Outcome<ModelRef> {
    match text.split_once('/') {
        Some((provider, id)) if !provider.is_empty() && !id.is_empty() => Ok(ModelRef {
            provider: provider.to_owned(),
            id: id.to_owned(),
        }),
        _ => Err(Failure::usage(
            format!("`{text}` is not a model."),
            "Write it as provider/id, such as anthropic/claude-sonnet-4-5.",
        )),
    }
}

fn think_level(level: Think) -> ThinkLevel {
    match level {
        Think::None => ThinkLevel::None,
        Think::Minimal => ThinkLevel::Minimal,
        Think::Low => ThinkLevel::Low,
        Think::Medium => ThinkLevel::Medium,
        Think::High => ThinkLevel::High,
        Think::Xhigh => ThinkLevel::Xhigh,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn models_are_named_by_provider_and_id() {
        let model = model_ref("openrouter/meta/llama").unwrap();
        assert_eq!(
            (model.provider.as_str(), model.id.as_str()),
            ("openrouter", "meta/llama")
        );
        for wrong in ["gpt", "/x", "x/"] {
            assert!(model_ref(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_become_words() {
        let message = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Look:"},
            {"type": "toolCall", "name": "laptop__Bash", "arguments": {"command": "ls"}}, {"type": "image", "data": "…"}]});
        assert_eq!(
            message_words(&message),
            "Look:\n[calls laptop__Bash {\"command\":\"ls\"}]\n[image]"
        );
        assert_eq!(message_words(&json!({"role": "user", "content": "hi"})), "hi");
    }
}
