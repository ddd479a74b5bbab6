//! `gsv session export`: writes a whole conversation to a file: its archived parts, then its live messages. The file appears
//! whole or not at all, and replaces another only with `--force`.

use std::io::Write;
use std::path::Path;

use gsv_protocol::methods::SessionGet;
use gsv_protocol::types::{AgentId, SessionGetParams, SessionKey};
use serde_json::Value;

use super::context::Context;
use super::messages::{Block, blocks, is_note, is_summary, speaker, text_at, time_of};
use super::transcript::{Item, Source, Target, archives, read};
use crate::args::{ExportFormat, SessionExport};
use crate::clean::clean;
use crate::client::Client;
use crate::exit::{Failure, OrFail, Outcome};
use crate::new_file;
use crate::paths::shell;
use crate::units::grouped;

/// A conversation that is archived while it is read is read again this often.
const TRIES: usize = 3;

pub async fn run(context: &Context, args: SessionExport) -> Outcome {
    let target = Target::of(args.target.clone(), args.session.clone())?;
    if let Some(path) = &args.output {
        new_file::check(path, args.force)?;
    }
    let client = context.connect().await?;
    let damage = match &args.output {
        Some(path) => {
            let (count, damage) = to_file(&client, &target, &args, path).await?;
            let words = format!("{} messages written to {}", grouped(count), shell(path));
            context.out.aside(&words);
            damage
        }
        None => to_stdout(context, &client, &target, &args).await?,
    };
    client.close().await;
    damage.map_or(Ok(()), |failure| {
        Err(Failure {
            next: "The readable messages were exported.".to_owned(),
            ..failure
        })
    })
}

/// As named, else by the file's ending.
fn format_of(args: &SessionExport) -> ExportFormat {
    let ending = args.output.as_deref().and_then(Path::extension);
    let markdown =
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case("md") || ending.eq_ignore_ascii_case("markdown"));
    let usual = if markdown {
        ExportFormat::Markdown
    } else {
        ExportFormat::Jsonl
    };
    args.format.unwrap_or(usual)
}

/// Session id and transcripts of a live conversation. Both change when it is reset or compacted.
async fn live_state(client: &Client, key: &SessionKey) -> Outcome<(String, Vec<String>)> {
    let params = SessionGetParams {
        session_key: key.clone(),
    };
    let id = client.call::<SessionGet>(params).await?.session_id;
    let all = archives(client, None, Some(key.clone())).await?;
    let own = all.into_iter().rev().filter(|entry| entry.session_id == id);
    let own = own.map(|entry| entry.path).collect();
    Ok((id, own))
}

/// Gives all messages to `each` in order. False: the conversation was reset or compacted meanwhile.
async fn read_all(
    client: &Client,
    target: &Target,
    agent_id: Option<AgentId>,
    each: &mut impl FnMut(Item) -> Outcome,
) -> Outcome<(bool, Option<Failure>)> {
    let mut live = None;
    let mut sources = Vec::new();
    if let Target::Session(key) = target {
        let state = live_state(client, key).await?;
        let agent_id = agent_id.clone().or_else(|| agent_of(key.as_str()));
        sources.extend(state.1.iter().map(|path| Source::archive(agent_id.as_ref(), path)));
        live = Some((key, state));
    }
    sources.extend(target.sources(client, agent_id).await?);
    let mut damage = None;
    for source in &sources {
        let read = read(client, source, 0, None, each).await?;
        damage = damage.or(read.damage);
    }
    let whole = match live {
        Some((key, before)) => before == live_state(client, key).await?,
        None => true,
    };
    Ok((whole, damage))
}

/// The agent that a session key names; a short key names none.
fn agent_of(key: &str) -> Option<AgentId> {
    key.strip_prefix("agent:")?.split(':').next().map(AgentId::from)
}

fn keeps_changing() -> Failure {
    Failure::later(
        "The conversation was archived while it was read.",
        "Try again in a moment.",
    )
}

async fn to_stdout(
    context: &Context,
    client: &Client,
    target: &Target,
    args: &SessionExport,
) -> Outcome<Option<Failure>> {
    let format = format_of(args);
    // Printed text can't be taken back, so all of it is read first.
    for _ in 0..TRIES {
        let mut texts = Vec::new();
        let mut each = |item| {
            texts.push(text_of(&item, format));
            Ok(())
        };
        let (whole, damage) = read_all(client, target, args.of.agent.clone(), &mut each).await?;
        if whole {
            context.out.content(&texts.concat());
            return Ok(damage);
        }
    }
    Err(keeps_changing())
}

async fn to_file(
    client: &Client,
    target: &Target,
    args: &SessionExport,
    path: &Path,
) -> Outcome<(u64, Option<Failure>)> {
    let doing = new_file::doing(path);
    let format = format_of(args);
    for _ in 0..TRIES {
        let mut file = new_file::draft(path)?;
        let mut count = 0;
        let mut each = |item| {
            count += u64::from(matches!(&item, Item::Message(message) if !is_note(message)));
            file.write_all(text_of(&item, format).as_bytes())
                .or_fail(&doing, new_file::NEXT)
        };
        let (whole, damage) = read_all(client, target, args.of.agent.clone(), &mut each).await?;
        if whole {
            new_file::finish(file, path, args.force)?;
            return Ok((count, damage));
        }
    }
    Err(keeps_changing())
}

/// A message in the export, or a note about messages that can't be read.
fn text_of(item: &Item, format: ExportFormat) -> String {
    match (item, format) {
        (Item::Message(message), ExportFormat::Jsonl) => format!("{message}\n"),
        // Every line is a message; the command reports the damage at its end.
        (Item::Gap(_), ExportFormat::Jsonl) => String::new(),
        (Item::Message(message), ExportFormat::Markdown) => markdown(message),
        (Item::Gap(words), ExportFormat::Markdown) => format!("> **Damaged:** {words}\n\n"),
    }
}

fn markdown(message: &Value) -> String {
    let result = text_at(message, "role") == "toolResult";
    let tool = clean(text_at(message, "toolName")).replace('`', "'");
    let tool = if result { format!(" `{tool}`") } else { String::new() };
    let at = match time_of(message) {
        at if at.is_empty() => at,
        at => format!(" · {at}"),
    };
    let mut parts = vec![format!("## {}{tool}{at}\n\n", speaker(message))];
    for block in blocks(message) {
        parts.push(match block {
            Block::Text(words) if words.trim().is_empty() => String::new(),
            Block::Text(words) if result => fenced("", &words),
            Block::Text(words) if is_summary(message) => {
                let quoted = words
                    .lines()
                    .map(|line| format!("> {line}").trim_end().to_owned() + "\n");
                quoted.collect()
            }
            Block::Text(words) => format!("{}\n", words.trim_end()),
            Block::Call { name, args } => {
                let args = serde_json::to_string_pretty(&args).unwrap_or_default();
                format!("Calls `{}`:\n\n{}", name.replace('`', "'"), fenced("json", &args))
            }
            Block::Other(words) => format!("{}\n", clean(&words)),
        });
        parts.push("\n".to_owned());
    }
    parts.concat()
}

/// A code block that its content can't end.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_as_markdown() {
        let message = json!({"role": "assistant", "timestamp": 0, "content": [
            {"type": "text", "text": "Look:\n"}, {"type": "toolCall", "name": "lap__Bash", "arguments": {"command": "ls"}}]});
        assert_eq!(
            markdown(&message).split_once("\n\n").unwrap().1,
            "Look:\n\nCalls `lap__Bash`:\n\n```json\n{\n  \"command\": \"ls\"\n}\n```\n\n"
        );
        let result =
            json!({"role": "toolResult", "toolName": "lap__Read", "content": [{"type": "text", "text": "````\nx"}]});
        assert_eq!(markdown(&result), "## Tool `lap__Read`\n\n`````\n````\nx\n`````\n\n");
    }
}
