//! `gsv memory list|search|add|forget|export`: the facts that an agent keeps between conversations. Texts may come from strangers, so
//! control characters are shown as escapes.

use std::io::Write;
use std::path::Path;

use gsv_protocol::errors;
use gsv_protocol::methods::{MemoryAdd, MemoryForget, MemoryList, MemorySearch};
use gsv_protocol::types::{
    AgentId, Memory, MemoryAddParams, MemoryEmbedding, MemoryForgetParams, MemoryForgetResult, MemoryListParams,
    MemorySearchParams, VectorIndexBehind, WaitingEmbeddings,
};
use serde_json::json;
use uuid::Uuid;

use super::context::Context;
use crate::args;
use crate::ask;
use crate::clean::{clean, visible};
use crate::client::Client;
use crate::exit::{Failure, OrFail, Outcome};
use crate::new_file;
use crate::output::{Output, Style};
use crate::paths::shell;
use crate::units::{date, grouped, now_ms, until};

/// Memories of one request.
const PAGE: u8 = 100;

pub async fn list(context: &Context, args: args::MemoryList) -> Outcome {
    let agent = flag(args.of.agent.as_ref());
    let params = MemoryListParams {
        agent_id: args.of.agent,
        before: args.before,
        superseded: args.all.then_some(true),
        limit: Some(args.limit),
    };
    let out = context.out;
    let show = context.show::<MemoryList>(params, |page| {
        for memory in &page.memories {
            print(out, memory, None);
        }
        match page.memories.last() {
            None => out.aside(&format!("The agent has no long-term memories. {}", others(&agent))),
            Some(last) if page.more => {
                out.aside(&format!(
                    "More: `gsv memory list --before {}{agent}`",
                    visible(&last.id)
                ));
            }
            Some(_) => {}
        }
        if let Some(embeddings) = &page.embeddings {
            for line in without_vectors(embeddings, now_ms()) {
                out.warn(&line);
            }
        }
        if let Some(index) = &page.vector_index {
            out.warn(&index_behind(index, now_ms()));
        }
    });
    show.await
}

/// Where else an agent keeps what it should remember. `of`: the flag that names the agent, with a space before it, or nothing.
fn others(of: &str) -> String {
    format!(
        "What it has noted in its files is in MEMORY.md: `gsv workspace cat MEMORY.md{of}`, `gsv search WORDS{of}`."
    )
}

pub async fn search(context: &Context, args: args::MemorySearch) -> Outcome {
    let agent = flag(args.of.agent.as_ref());
    let params = MemorySearchParams {
        query: args.query.join(" "),
        agent_id: args.of.agent,
        limit: args.limit,
    };
    let out = context.out;
    let show = context.show::<MemorySearch>(params, |found| {
        for hit in &found.memories {
            print(out, &hit.memory, Some(hit.score));
        }
        if found.memories.is_empty() {
            out.aside(&format!("Nothing was found. {}", others(&agent)));
        }
        for note in &found.notes {
            out.warn(&clean(note));
        }
    });
    show.await
}

pub async fn add(context: &Context, args: args::MemoryAdd) -> Outcome {
    let text = if args.text == "-" {
        context.read_stdin("the memory")?
    } else {
        args.text
    };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(Failure::usage(
            "The memory is empty.",
            "Write the fact as one argument, in quotes.",
        ));
    }
    let agent = flag(args.of.agent.as_ref());
    let params = MemoryAddParams {
        text,
        agent_id: args.of.agent,
        metadata: None,
        supersedes: args.supersedes,
        request_id: Uuid::new_v4().to_string(),
    };
    context
        .change::<MemoryAdd>(params, |added| {
            let id = visible(&added.memory.id);
            format!("Kept as {id}. Remove it: `gsv memory forget {id}{agent}`.")
        })
        .await
}

pub async fn forget(context: &Context, args: args::MemoryForget) -> Outcome {
    let mut ids = args.ids;
    ids.sort();
    ids.dedup();
    let asked = ids.len() as u64;
    if !args.yes {
        let question = format!("Remove {} for good?", memories(asked));
        ask::confirm(context.out, &question, "forget", "Nothing was removed.")?;
    }
    let client = context.connect().await?;
    let mut result = MemoryForgetResult { ok: true, forgotten: 0 };
    let mut unknown = Vec::new();
    // The answer is a number, so each id has a request of its own: the unknown ones can be named.
    for id in ids {
        let params = MemoryForgetParams {
            ids: vec![id.clone()],
            agent_id: args.of.agent.clone(),
        };
        match client.call::<MemoryForget>(params).await {
            Ok(gone) if gone.forgotten == 0 => unknown.push(id),
            Ok(gone) => result.forgotten += gone.forgotten,
            Err(failure) => return Err(partly(failure, result.forgotten)),
        }
    }
    client.close().await;
    if unknown.is_empty() {
        context
            .out
            .done(&result, &format!("Removed {} for good", memories(result.forgotten)));
        return Ok(());
    }
    if context.out.json {
        context.out.json_document(&result);
    }
    Err(not_there(&unknown, result.forgotten, &flag(args.of.agent.as_ref())))
}

/// What was removed before a failure.
fn partly(failure: Failure, forgotten: u64) -> Failure {
    if forgotten == 0 {
        return failure;
    }
    Failure {
        message: format!("{} Removed before that: {}.", failure.message, memories(forgotten)),
        ..failure
    }
}

fn not_there(unknown: &[String], forgotten: u64, agent: &str) -> Failure {
    let ids: Vec<String> = unknown.iter().map(|id| visible(id)).collect();
    let ids = ids.join(", ");
    let removed = match forgotten {
        0 => "Nothing was removed".to_owned(),
        some => format!("Removed {} for good", memories(some)),
    };
    let why = match unknown.len() {
        1 => format!("no memory of the agent has the id {ids}: it was removed before, or never existed"),
        _ => format!("no memories of the agent have the ids {ids}: they were removed before, or never existed"),
    };
    let next = format!("List the agent's memories: `gsv memory list --all{agent}`.");
    Failure {
        next,
        ..Failure::from_reason(errors::MEMORY_NOT_FOUND.reason, &format!("{removed}; {why}."), false)
    }
}

pub async fn export(context: &Context, args: args::MemoryExport) -> Outcome {
    if let Some(path) = &args.output {
        new_file::check(path, args.force)?;
    }
    let client = context.connect().await?;
    let (lines, count) = whole(&client, args.of.agent.as_ref()).await?;
    client.close().await;
    match &args.output {
        Some(path) => {
            write(path, &lines, args.force)?;
            context
                .out
                .aside(&format!("{} written to {}", memories(count), shell(path)));
        }
        None => context.out.content(&lines),
    }
    Ok(())
}

/// All memories, the newest first, with those that were superseded.
async fn whole(client: &Client, agent: Option<&AgentId>) -> Outcome<(String, u64)> {
    let mut lines = String::new();
    let mut count = 0;
    let mut before = None;
    loop {
        let page = client
            .call::<MemoryList>(MemoryListParams {
                agent_id: agent.cloned(),
                before: before.take(),
                superseded: Some(true),
                limit: Some(PAGE),
            })
            .await?;
        for memory in &page.memories {
            lines.push_str(&json!(memory).to_string());
            lines.push('\n');
            count += 1;
        }
        match page.memories.last() {
            Some(last) if page.more => before = Some(last.id.clone()),
            _ => return Ok((lines, count)),
        }
    }
}

fn write(path: &Path, text: &str, force: bool) -> Outcome {
    let mut draft = new_file::draft(path)?;
    draft
        .write_all(text.as_bytes())
        .or_fail(new_file::doing(path), new_file::NEXT)?;
    new_file::finish(draft, path, force)
}

fn memories(count: u64) -> String {
    match count {
        1 => "1 memory".to_owned(),
        many => format!("{} memories", grouped(many)),
    }
}

/// Memories that an embedding service has no vectors of, and why.
fn without_vectors(embeddings: &WaitingEmbeddings, now: u64) -> Vec<String> {
    let model = visible(&embeddings.model);
    let mut lines = Vec::new();
    if embeddings.waiting > 0 {
        let verb = if embeddings.waiting == 1 { "waits" } else { "wait" };
        let why = embeddings.problem.as_ref().map_or_else(String::new, |problem| {
            let next = embeddings.next_at.map_or_else(
                || "The next memory or a change of the settings begins again.".to_owned(),
                |next| format!("Next attempt {}.", until(next, now)),
            );
            format!(" {} {next}", visible(problem))
        });
        lines.push(format!(
            "{} {verb} for vectors of {model}; their words and the built-in table find them.{why}",
            memories(embeddings.waiting)
        ));
    }
    if embeddings.refused > 0 {
        lines.push(format!(
            "{model} does not take {}: words alone find them.",
            memories(embeddings.refused)
        ));
    }
    lines
}

/// That the vector index is behind, and why.
fn index_behind(index: &VectorIndexBehind, now: u64) -> String {
    let found = match index.waiting {
        0 => String::new(),
        1 => " 1 memory is found without it.".to_owned(),
        many => format!(" {} are found without it, which takes longer.", memories(many)),
    };
    let next = until(index.next_at, now);
    format!(
        "The vector index is behind: {}{found} Next attempt {next}.",
        visible(&index.problem)
    )
}

/// For a command that a person can paste.
fn flag(agent: Option<&AgentId>) -> String {
    agent.map_or_else(String::new, |agent| format!(" --agent {agent}"))
}

fn print(out: Output, memory: &Memory, score: Option<f64>) {
    for (index, line) in shown(memory, score).iter().enumerate() {
        let line = if index == 0 {
            out.paint(Style::Cyan, line)
        } else {
            line.clone()
        };
        out.line(&line);
    }
}

/// `score`: of a search, from 0 to 1. An agent's `memory_config.min_score` is compared with it.
fn shown(memory: &Memory, score: Option<f64>) -> Vec<String> {
    let mut head = vec![visible(&memory.id), date(memory.at)];
    head.extend(score.map(|score| format!("score {score:.2}")));
    if memory.label == "peer" || memory.label == "world" {
        head.push(format!(
            "{}, from {}",
            visible(&memory.label),
            visible(&memory.label_source)
        ));
    }
    match memory.embedding {
        Some(MemoryEmbedding::Pending) => head.push("waits for its vector".to_owned()),
        Some(MemoryEmbedding::Refused) => head.push("no vector".to_owned()),
        Some(MemoryEmbedding::Done) | None => {}
    }
    if let Some(newer) = &memory.superseded_by {
        head.push(format!("superseded by {}", visible(newer)));
    }
    let mut lines = vec![head.join("  ")];
    lines.extend(memory.text.lines().map(|line| format!("    {}", visible(line))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsv_protocol::types::MemoryAuthor;

    #[test]
    fn lm10_a_memory_is_shown_with_its_label_and_without_control_characters() {
        let memory = Memory {
            id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
            text: "pay\u{1b}[2J 77\nnow".to_owned(),
            metadata: None,
            author: MemoryAuthor::Agent,
            label: "world".to_owned(),
            label_source: "a mail".to_owned(),
            session_key: None,
            call_id: None,
            embedding: Some(MemoryEmbedding::Pending),
            supersedes: None,
            superseded_by: Some("01ARZ3NDEKTSV4RRFFQ69G5FAW".to_owned()),
            at: 0,
        };
        let lines = shown(&memory, None).join("\n");
        assert!(lines.starts_with("01ARZ3NDEKTSV4RRFFQ69G5FAV  1970-01-01"), "{lines}");
        assert!(
            lines.contains(
                "world, from a mail  waits for its vector  superseded by 01ARZ3NDEKTSV4RRFFQ69G5FAW\n    pay"
            ),
            "{lines}"
        );
        assert!(lines.ends_with("\n    now") && !lines.contains('\u{1b}'), "{lines}");
        let head = shown(&memory, Some(0.8349)).remove(0);
        assert!(
            head.starts_with("01ARZ3NDEKTSV4RRFFQ69G5FAV  1970-01-01  score 0.83  world"),
            "{head}"
        );
    }

    #[test]
    fn lm22_the_list_tells_that_the_vector_index_is_behind_and_why() {
        let line = |waiting| {
            let problem = "It\u{1b}[2J did not answer.".to_owned();
            let index = VectorIndexBehind {
                waiting,
                problem,
                next_at: 60_000,
            };
            index_behind(&index, 0)
        };
        assert!(
            line(0).ends_with("did not answer. Next attempt in 1 min."),
            "{}",
            line(0)
        );
        assert!(
            line(1).contains("answer. 1 memory is found without it. Next"),
            "{}",
            line(1)
        );
        assert!(line(2).contains("answer. 2 memories are found without it, which takes longer. Next"));
        assert!(line(2).starts_with("The vector index is behind: It") && !line(2).contains('\u{1b}'));
    }

    #[test]
    fn lm15_the_list_tells_how_many_memories_wait_and_why() {
        let mut embeddings = WaitingEmbeddings {
            model: "openai/text-embedding-3-small".to_owned(),
            waiting: 2,
            refused: 0,
            problem: Some("The service\u{1b}[2J is down.".to_owned()),
            next_at: Some(60_000),
        };
        let lines = without_vectors(&embeddings, 0);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("2 memories wait for vectors of openai/text-embedding-3-small"));
        assert!(lines[0].contains("is down. Next attempt in 1 min"), "{}", lines[0]);
        assert!(!lines[0].contains('\u{1b}'));
        embeddings.next_at = None;
        assert!(without_vectors(&embeddings, 0)[0].contains("begins again"));
        embeddings = WaitingEmbeddings {
            waiting: 0,
            refused: 1,
            problem: None,
            ..embeddings
        };
        assert_eq!(
            without_vectors(&embeddings, 0),
            ["openai/text-embedding-3-small does not take 1 memory: words alone find them."]
        );
    }
}
