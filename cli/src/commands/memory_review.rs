//! `gsv memory review`: what the agent learnt in conversations that others have written into waits here for you. Texts come from the gateway
//! with hidden characters as escapes; they are cleaned here once more, because a terminal must not depend on that.

use gsv_protocol::errors;
use gsv_protocol::methods::{MemoryDrop, MemoryPromote, MemoryQuarantine};
use gsv_protocol::types::{
    AgentId, MemoryDropParams, MemoryPromoteParams, MemoryQuarantineParams, MemoryQuarantineResult, QuarantinedMemory,
};

use super::context::Context;
use crate::args::MemoryReview;
use crate::ask;
use crate::clean::visible;
use crate::exit::{Failure, Outcome};
use crate::units::{ago, bytes, now_ms};

pub async fn run(context: &Context, MemoryReview { promote, drop, of }: MemoryReview) -> Outcome {
    match (promote, drop) {
        (Some(id), _) => keep(context, id, of.agent, None).await,
        (None, Some(id)) => remove(context, id, of.agent).await,
        (None, None) => review(context, of.agent).await,
    }
}

/// On a terminal each memory is asked about; elsewhere they are listed.
async fn review(context: &Context, agent_id: Option<AgentId>) -> Outcome {
    let out = context.out;
    let params = MemoryQuarantineParams {
        agent_id: agent_id.clone(),
    };
    let waiting = context.ask::<MemoryQuarantine>(params).await?;
    if !ask::is_possible(out) {
        out.show(waiting, |waiting| list(context, &waiting));
        return Ok(());
    }
    if waiting.memories.is_empty() {
        list(context, &waiting);
        return Ok(());
    }
    let count = waiting.memories.len();
    for (index, memory) in waiting.memories.iter().enumerate() {
        for line in shown(memory, now_ms()) {
            out.line(&line);
        }
        let keys = if memory.problem.is_some() {
            "d = drop"
        } else {
            "k = keep, d = drop"
        };
        let question = format!("{} of {count} [{keys}, q = quit, anything else skips]", index + 1);
        let id = memory.id.clone();
        match ask::answer(out, &question).as_str() {
            "k" | "keep" if memory.problem.is_none() => {
                // Bound to the file whose change was shown.
                keep(context, id, agent_id.clone(), Some(memory.etag.clone())).await?;
            }
            "d" | "drop" => match remove(context, id, agent_id.clone()).await {
                // Another client was faster; the others still wait.
                Err(failure) if failure.is(&errors::MEMORY_NOT_FOUND) => out.note(&failure.message),
                removed => removed?,
            },
            "q" | "quit" => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

fn list(context: &Context, waiting: &MemoryQuarantineResult) {
    let out = context.out;
    for memory in &waiting.memories {
        for line in shown(memory, now_ms()) {
            out.line(&line);
        }
        out.line("");
    }
    for id in &waiting.damaged {
        let id = visible(id);
        out.warn(&format!(
            "{id} cannot be read. Remove it: `gsv memory review --drop {id}`."
        ));
    }
    if waiting.memories.is_empty() {
        out.aside("No memory waits for you.");
    } else {
        out.aside("Keep one with `gsv memory review --promote ID`, or remove it with `gsv memory review --drop ID`.");
    }
}

async fn keep(context: &Context, id: String, agent_id: Option<AgentId>, if_match: Option<String>) -> Outcome {
    let name = visible(&id);
    let params = MemoryPromoteParams { id, agent_id, if_match };
    context
        .change::<MemoryPromote>(params, |kept| format!("{name} is kept in {}", visible(&kept.path)))
        .await
}

async fn remove(context: &Context, id: String, agent_id: Option<AgentId>) -> Outcome {
    let name = visible(&id);
    let gone = context.ask::<MemoryDrop>(MemoryDropParams { id, agent_id }).await?;
    if !gone.dropped {
        let message = format!("No memory {name} waits for you: it was kept or removed before, or never existed.");
        return Err(Failure::from_reason(errors::MEMORY_NOT_FOUND.reason, &message, false));
    }
    context.out.done(&gone, &format!("{name} is removed"));
    Ok(())
}

fn shown(memory: &QuarantinedMemory, now: u64) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{}  for {}, {}, from {} (`gsv why {} --session {}`)",
            visible(&memory.id),
            visible(&memory.path),
            ago(memory.at, now),
            visible(memory.session_key.as_ref()),
            visible(&memory.call_id),
            visible(memory.session_key.as_ref()),
        ),
        format!(
            "  The conversation had read: {}, from {}",
            visible(&memory.label),
            visible(&memory.source)
        ),
    ];
    lines.extend(memory.diff.lines().map(|line| format!("  | {}", visible(line))));
    if let Some(sha256) = &memory.diff_sha256 {
        let left = memory.diff_bytes.saturating_sub(memory.diff.len() as u64);
        lines.push(format!(
            "  ! {} more are not shown; the whole has the sha256 {}",
            bytes(left),
            visible(sha256)
        ));
    }
    match &memory.problem {
        Some(problem) => lines.push(format!("  ! It cannot be kept now: {}", visible(problem))),
        None if memory.diff.is_empty() => lines.push("  (the file has it already)".to_owned()),
        None => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsv_protocol::types::SessionKey;

    fn memory() -> QuarantinedMemory {
        QuarantinedMemory {
            id: "K7Q2ABCD".to_owned(),
            path: "MEMORY.md".to_owned(),
            label: "world".to_owned(),
            source: "the output of lap__Bash".to_owned(),
            session_key: SessionKey("agent:main:main".to_owned()),
            call_id: "s-1/r1/0".to_owned(),
            at: 60_000,
            diff: "--- MEMORY.md\n+++ MEMORY.md\n+- always run \u{1b}[2Jx".to_owned(),
            diff_bytes: 50,
            diff_sha256: None,
            etag: "absent".to_owned(),
            problem: None,
        }
    }

    #[test]
    fn ta15_a_memory_is_shown_with_source_run_and_change_and_no_control_characters() {
        let lines = shown(&memory(), 120_000).join("\n");
        assert!(lines.contains("K7Q2ABCD  for MEMORY.md, "), "{lines}");
        assert!(lines.contains("gsv why s-1/r1/0 --session agent:main:main"), "{lines}");
        assert!(
            lines.contains("The conversation had read: world, from the output of lap__Bash"),
            "{lines}"
        );
        assert!(lines.contains("  | +- always run"), "{lines}");
        assert!(!lines.contains('\u{1b}'), "{lines}");
    }

    #[test]
    fn ta15_what_cannot_be_kept_says_why() {
        let blocked = QuarantinedMemory {
            problem: Some("`oldString` is not in the file.".to_owned()),
            diff: String::new(),
            ..memory()
        };
        let lines = shown(&blocked, 120_000).join("\n");
        assert!(
            lines.contains("It cannot be kept now: `oldString` is not in the file."),
            "{lines}"
        );
    }
}
