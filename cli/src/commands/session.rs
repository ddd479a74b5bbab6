//! `gsv session`: lists, shows and changes conversations.

use gsv_protocol::errors;
use gsv_protocol::methods::{
    ApprovalList, SessionCompact, SessionDelete, SessionGet, SessionHistory, SessionPatch, SessionPreview,
    SessionReset, SessionStats, SessionsList,
};
use gsv_protocol::types::{
    ApprovalListParams, ArchiveKind, ModelPatch, ResetPolicyPatch, SessionCompactParams, SessionDeleteParams,
    SessionGetParams, SessionHistoryParams, SessionHistoryResult, SessionKey, SessionPatchParams, SessionPreviewParams,
    SessionResetParams, SessionSettingsPatch, SessionStatsParams, SessionsListParams,
};
use serde_json::json;

use super::approval_view::in_order;
use super::context::Context;
use super::session_view::{described, list, preview, stats, with_questions};
use super::{session_export, transcript};
use crate::args::{self, SessionCommand, SessionSet};
use crate::ask::confirm;
use crate::clean::{clean, one_line};
use crate::exit::{Failure, Outcome};
use crate::table::Table;
use crate::units::{bytes, counted, grouped, time};

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
            let waiting = waiting.map(|result| in_order(result.approvals)).unwrap_or_default();
            client.close().await;
            if out.json {
                out.json_document(&with_questions(&result, &waiting));
            } else {
                list(out, result, &waiting, offset.unwrap_or(0), agent.as_ref());
            }
            Ok(())
        }
        SessionCommand::Get(session) => {
            let session_key = Context::session(session.named())?;
            let get = context.show::<SessionGet>(SessionGetParams { session_key }, |result| described(out, result));
            get.await
        }
        SessionCommand::Stats(session) => {
            let session_key = Context::session(session.named())?;
            let stats = context.show::<SessionStats>(SessionStatsParams { session_key }, |result| stats(out, result));
            stats.await
        }
        SessionCommand::Reset(session) => {
            let session_key = Context::session(session.named())?;
            let reset = context.change::<SessionReset>(SessionResetParams { session_key }, |result| {
                let archived = archived(result.archived_messages, result.archived_to.as_deref());
                format!("{archived}; a new conversation begins")
            });
            reset.await
        }
        SessionCommand::Compact { session, keep } => {
            let params = SessionCompactParams {
                session_key: Context::session(session.named())?,
                keep_messages: keep,
            };
            let compacted = context.change::<SessionCompact>(params, |result| {
                let archived = archived(result.trimmed_messages, result.archived_to.as_deref());
                format!("{archived}; {} kept", grouped(result.kept_messages))
            });
            compacted.await
        }
        SessionCommand::Delete(args) => delete(context, args).await,
        SessionCommand::History(session) => history(context, Context::session(session.named())?).await,
        SessionCommand::Show(args) => transcript::show(context, args).await,
        SessionCommand::Export(args) => session_export::run(context, args).await,
        SessionCommand::Preview {
            session,
            limit,
            thinking,
        } => {
            let session_key = Context::session(session.named())?;
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
            let session_key = params.session_key.clone();
            let name = clean(session_key.as_str());
            let has_mode = params.settings.as_ref().is_some_and(|settings| settings.mode.is_some());
            let mut set = changes(&params);
            let result = context.ask::<SessionPatch>(params).await?;
            // The change is made, also when its end can't be asked for.
            if has_mode
                && let Ok(now) = context.ask::<SessionGet>(SessionGetParams { session_key }).await
                && let (Some(mode), Some(until)) = (now.settings.mode, now.settings.mode_until)
            {
                let plain = format!("mode {}", mode.as_str());
                set.iter_mut()
                    .filter(|change| **change == plain)
                    .for_each(|change| *change = format!("{plain} until {}", time(until)));
            }
            let words = format!("{name} from now on: {}", set.join(", "));
            out.done(&result, &words);
            out.warn_all(result.warnings.as_deref());
            Ok(())
        }
    }
}

async fn delete(context: &Context, args: args::SessionDelete) -> Outcome {
    // The usual conversation is never meant by itself here.
    let Some(session_key) = args.named().cloned() else {
        return Err(Failure::usage(
            "No conversation is named.",
            "Name one: `gsv session delete KEY`.",
        ));
    };
    let name = clean(session_key.as_str());
    if !args.yes {
        // A conversation that does not exist needs no answer.
        let params = SessionGetParams {
            session_key: session_key.clone(),
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
        session_key,
        stop: args.stop.then_some(true),
    };
    let deleted = context.change::<SessionDelete>(params, |result| {
        let name = clean(result.session_key.as_str());
        if !result.done {
            return format!("{name} is being deleted; GSV goes on with it in the background");
        }
        let parts: Vec<String> = [
            (result.archives, "transcript", "transcripts"),
            (result.files, "file", "files"),
        ]
        .into_iter()
        .filter_map(|(count, one, many)| Some(counted(count.filter(|count| *count > 0)?, one, many)))
        .collect();
        if parts.is_empty() {
            format!("{name} is deleted, with its messages")
        } else {
            format!("{name} is deleted, with {}", parts.join(" and "))
        }
    });
    deleted.await
}

fn archived(messages: u64, path: Option<&str>) -> String {
    let to = path.map(|path| format!(" to {}", clean(path))).unwrap_or_default();
    format!("{} messages archived{to}", grouped(messages))
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

/// What a change sets, for people.
fn changes(params: &SessionPatchParams) -> Vec<String> {
    let mut set = Vec::new();
    if let Some(settings) = &params.settings {
        if let Some(ModelPatch {
            provider: Some(provider),
            id: Some(id),
        }) = &settings.model
        {
            set.push(format!("model {}/{}", clean(provider), clean(id)));
        }
        set.extend(
            settings
                .thinking_level
                .map(|level| format!("thinking {}", level.as_str())),
        );
        set.extend(settings.system_prompt.as_ref().map(|_| "this system prompt".to_owned()));
        set.extend(
            settings
                .max_tokens
                .map(|most| format!("answers of at most {} tokens", grouped(most.into()))),
        );
        set.extend(settings.mode.map(|mode| format!("mode {}", mode.as_str())));
    }
    set.extend(
        params
            .label
            .as_ref()
            .map(|label| format!("label {}", one_line(label, 100))),
    );
    if let Some(policy) = &params.reset_policy {
        set.extend(policy.mode.map(|mode| format!("reset {}", mode.as_str())));
        set.extend(policy.at_hour.map(|hour| format!("daily reset at {hour}:00")));
        set.extend(
            policy
                .idle_minutes
                .map(|most| format!("idle reset after {}", counted(most.into(), "minute", "minutes"))),
        );
    }
    let cleared = params.clear.iter().flatten();
    set.extend(cleared.map(|name| format!("{} as configured", clean(name))));
    set
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
        session_key: Context::session(args.session.named())?,
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
