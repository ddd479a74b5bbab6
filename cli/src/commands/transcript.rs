//! Conversations to read: where a transcript is, its messages page by page, and how they look in a terminal. What is damaged is
//! read as far as it can be, and said.

use gsv_protocol::errors;
use gsv_protocol::methods::{ArchivesList, ArchivesRead, SessionMessages};
use gsv_protocol::types::{
    AgentId, ArchiveEntry, ArchiveKind, ArchivesListParams, ArchivesReadParams, SessionKey, SessionMessagesParams,
};
use serde_json::{Value, json};

use super::Context;
use crate::chat::view::args_summary;
use crate::clean::{clean, one_line};
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::markdown::{self, Look};
use crate::output::{Output, Style};
use crate::units::{grouped, time};

/// Messages asked for at once; the gateway answers as many as fit.
const PAGE: u64 = 1000;
const LIST_PAGE: u8 = 200;
const RESULT_COLUMNS: usize = 100;

pub const fn kind_word(kind: ArchiveKind) -> &'static str {
    match kind {
        ArchiveKind::Reset => "conversation",
        ArchiveKind::Part => "part",
    }
}

/// All transcripts of an agent, or of one conversation; the newest first.
pub async fn archives(
    client: &Client,
    agent_id: Option<AgentId>,
    session_key: Option<SessionKey>,
) -> Outcome<Vec<ArchiveEntry>> {
    let mut all = Vec::new();
    loop {
        let page = client
            .call::<ArchivesList>(ArchivesListParams {
                agent_id: agent_id.clone(),
                session_key: session_key.clone(),
                offset: Some(all.len() as u64),
                limit: Some(LIST_PAGE),
            })
            .await?;
        let more = !page.archives.is_empty();
        all.extend(page.archives);
        if !more || all.len() as u64 >= page.count {
            return Ok(all);
        }
    }
}

/// What a person named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Session(SessionKey),
    /// A transcript's path.
    Archive(String),
    SessionId(String),
}

/// Keys have colons, or are short names; session ids are UUIDs; transcripts are files.
pub fn target(given: Option<String>) -> Outcome<Target> {
    let text = Context::session(given)?;
    let uuid = text.len() == 36
        && text.chars().enumerate().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        });
    Ok(if text.contains(".jsonl") || text.contains('/') {
        Target::Archive(text)
    } else if uuid {
        Target::SessionId(text)
    } else {
        Target::Session(SessionKey(text))
    })
}

/// One run of messages that is asked for page by page.
#[derive(Debug, Clone)]
pub enum Source {
    Session(SessionKey),
    Archive { agent_id: Option<AgentId>, path: String },
}

struct Page {
    messages: Vec<Value>,
    next: Option<u64>,
    total: u64,
}

impl Source {
    /// Without a limit, the gateway checks a transcript as a whole before it answers its beginning.
    async fn page(&self, client: &Client, offset: u64, limit: Option<u64>) -> Outcome<Page> {
        let limit = limit.map(|limit| u16::try_from(limit.min(PAGE)).unwrap_or(u16::MAX));
        let offset = (offset > 0).then_some(offset);
        Ok(match self {
            Self::Session(session_key) => {
                let params = SessionMessagesParams {
                    session_key: session_key.clone(),
                    offset,
                    limit,
                };
                let result = client.call::<SessionMessages>(params).await?;
                Page {
                    messages: result.messages,
                    next: result.next_offset,
                    total: result.total,
                }
            }
            Self::Archive { agent_id, path } => {
                let params = ArchivesReadParams {
                    agent_id: agent_id.clone(),
                    path: path.clone(),
                    offset,
                    limit,
                };
                let result = client.call::<ArchivesRead>(params).await?;
                Page {
                    messages: result.messages,
                    next: result.next_offset,
                    total: result.total,
                }
            }
        })
    }
}

/// What reading came to.
#[derive(Debug, Default)]
pub struct Read {
    /// Messages of the whole, as far as is known.
    pub total: u64,
    /// Where reading stopped.
    pub end: u64,
    /// The first damage that was met. What could be read around it was.
    pub damage: Option<Failure>,
}

/// What reading comes across, in order.
pub enum Item {
    Message(Value),
    /// Words about what can't be read here.
    Gap(String),
}

/// All messages from `offset` on, at most `limit`, as they come.
pub async fn read(
    client: &Client,
    source: &Source,
    offset: u64,
    limit: Option<u64>,
    each: &mut impl FnMut(Item) -> Outcome,
) -> Outcome<Read> {
    let mut done = Read {
        end: offset,
        ..Read::default()
    };
    let last = limit.map_or(u64::MAX, |limit| offset.saturating_add(limit));
    // Where the damage begins that was met, and where it ends.
    let mut damage: Option<(u64, Option<u64>, String)> = None;
    while done.end < last {
        if let Some((from, resume, words)) = &damage
            && done.end >= *from
        {
            each(Item::Gap(words.clone()))?;
            match resume {
                Some(at) if *at > done.end => done.end = *at,
                _ => break,
            }
            damage = None;
            continue;
        }
        let until = damage.as_ref().map_or(last, |(from, _, _)| last.min(*from));
        let most = (until < u64::MAX).then(|| until - done.end);
        match source.page(client, done.end, most).await {
            Ok(page) => {
                done.total = done.total.max(page.total);
                done.end += page.messages.len() as u64;
                let empty = page.messages.is_empty();
                for message in page.messages {
                    each(Item::Message(message))?;
                }
                if empty || (page.next.is_none() && damage.is_none()) {
                    if let Some((_, _, words)) = damage {
                        each(Item::Gap(words))?;
                    }
                    break;
                }
                if page.next.is_none() {
                    // All that there is was read; the damage is in what was promised beyond it.
                    if let Some((from, _, _)) = &mut damage {
                        *from = (*from).min(done.end);
                    }
                }
            }
            Err(failure) if failure.is(&errors::ARCHIVE_DAMAGED) && damage.is_none() => {
                let number = |name: &str| failure.details.as_ref().and_then(|details| details.get(name)?.as_u64());
                let from = number("readable").unwrap_or(0).max(done.end);
                done.total = done.total.max(number("total").unwrap_or(0));
                damage = Some((from, number("resumeAt"), gap(&failure)));
                done.damage.get_or_insert(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(done)
}

/// The damage, without the advice that is for programs.
fn gap(failure: &Failure) -> String {
    let text = failure.message.split(". ").next().unwrap_or_default();
    format!("{}.", clean(text).trim_end_matches('.'))
}

/// The transcripts and the live rest that a target names, in order.
pub async fn sources(client: &Client, target: &Target, agent_id: Option<AgentId>) -> Outcome<Vec<Source>> {
    let archive = |path: String| Source::Archive {
        agent_id: agent_id.clone(),
        path,
    };
    match target {
        Target::Session(key) => Ok(vec![Source::Session(key.clone())]),
        Target::Archive(path) => Ok(vec![archive(path.clone())]),
        Target::SessionId(id) => {
            let mut all = archives(client, agent_id.clone(), None).await?;
            all.retain(|entry| &entry.session_id == id);
            if all.is_empty() {
                return Err(Failure::from_reason(
                    errors::PATH_NOT_FOUND.reason,
                    &format!("There is no transcript of the session {id}. `gsv session history` lists them."),
                    false,
                ));
            }
            Ok(all.into_iter().rev().map(|entry| archive(entry.path)).collect())
        }
    }
}

pub async fn show(
    context: &Context,
    given: Option<String>,
    agent_id: Option<AgentId>,
    offset: u64,
    limit: Option<u64>,
) -> Outcome {
    let target = target(given)?;
    let client = context.connect().await?;
    let sources = sources(&client, &target, agent_id).await?;
    let out = context.out;
    let mut shown = Vec::new();
    let mut gaps = Vec::new();
    let mut damage = None;
    let (mut skip, mut left, mut total, mut count) = (offset, limit, 0, 0_u64);
    for source in &sources {
        if left == Some(0) {
            break;
        }
        let before = count;
        let read = read(&client, source, skip, left, &mut |item| {
            match item {
                Item::Message(message) if out.json => {
                    count += 1;
                    shown.push(message);
                }
                Item::Message(message) => {
                    count += 1;
                    print(out, &message);
                }
                Item::Gap(words) if out.json => gaps.push(words),
                Item::Gap(words) => out.warn(&words),
            }
            Ok(())
        })
        .await?;
        total += read.total;
        skip = skip.saturating_sub(read.total);
        left = left.map(|left| left.saturating_sub(count - before));
        damage = damage.or(read.damage);
    }
    client.close().await;
    if out.json {
        let mut document = json!({"messages": shown, "offset": offset, "total": total});
        if !gaps.is_empty() {
            document["damage"] = json!(gaps);
        }
        out.json_document(&document);
    } else if count == 0 && damage.is_none() {
        out.aside("No messages.");
    } else if offset + count < total && damage.is_none() {
        let rest = total - offset - count;
        out.aside(&format!("{} more: --offset {}", grouped(rest), offset + count));
    }
    damage.map_or(Ok(()), Err)
}

pub fn text_at<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Who speaks, as a heading.
pub fn speaker(message: &Value) -> String {
    match text_at(message, "role") {
        "user" if is_summary(message) => "Summary".to_owned(),
        "user" => "You".to_owned(),
        "assistant" => "Agent".to_owned(),
        "toolResult" => "Tool".to_owned(),
        "" => "?".to_owned(),
        other => one_line(other, 40),
    }
}

/// What a compaction left in the place of older messages.
pub fn is_summary(message: &Value) -> bool {
    blocks(message)
        .iter()
        .find_map(Block::text)
        .is_some_and(|text| text.starts_with("[Summary made by GSV"))
}

/// A part of a message.
#[derive(Debug, PartialEq)]
pub enum Block {
    Text(String),
    Call {
        name: String,
        args: Value,
    },
    /// Anything that is not text, in a word.
    Other(String),
}

impl Block {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// What a message is made of. Thoughts are left out.
pub fn blocks(message: &Value) -> Vec<Block> {
    let content = match message.get("content") {
        Some(Value::String(text)) => return vec![Block::Text(text.clone())],
        Some(Value::Array(content)) => content,
        _ => return Vec::new(),
    };
    content
        .iter()
        .filter_map(|block| match text_at(block, "type") {
            "thinking" => None,
            "text" => Some(Block::Text(text_at(block, "text").to_owned())),
            "toolCall" => Some(Block::Call {
                name: one_line(text_at(block, "name"), RESULT_COLUMNS),
                args: block.get("arguments").cloned().unwrap_or(Value::Null),
            }),
            kind => {
                let kind = if kind.is_empty() { "something" } else { kind };
                let name = [
                    text_at(block, "filename"),
                    text_at(block, "r2Key"),
                    text_at(block, "mimeType"),
                ]
                .into_iter()
                .find(|name| !name.is_empty())
                .map_or_else(String::new, |name| format!(": {name}"));
                let said = text_at(block, "transcript");
                let said = if said.is_empty() {
                    String::new()
                } else {
                    format!(" - {said}")
                };
                Some(Block::Other(format!("[{kind}{name}{said}]")))
            }
        })
        .collect()
}

fn print(out: Output, message: &Value) {
    if text_at(message, "role") == "toolResult" {
        out.line(&result_line(out, message));
        return;
    }
    let at = message
        .get("timestamp")
        .and_then(Value::as_u64)
        .map(time)
        .unwrap_or_default();
    let heading = format!(
        "{}  {}",
        out.paint(Style::Bold, &speaker(message)),
        out.paint(Style::Dim, &at)
    );
    out.line(heading.trim_end());
    for block in blocks(message) {
        match block {
            Block::Text(text) if text.trim().is_empty() => {}
            Block::Text(text) if out.tty => {
                let look = Look {
                    width: out.size().0,
                    colour: out.colour(),
                };
                out.piece(&markdown::render(&text, look));
            }
            Block::Text(text) => out.piece(&format!("{}\n", clean(&text).trim_end_matches('\n'))),
            Block::Call { name, args } => {
                let args = args_summary(&args);
                let line = format!(
                    "{} {} {args}",
                    out.paint(Style::Cyan, "●"),
                    out.paint(Style::Bold, &name)
                );
                out.line(line.trim_end());
            }
            Block::Other(words) => out.line(&clean(&words)),
        }
    }
    out.line("");
}

/// `● laptop__Bash ok: first words`.
fn result_line(out: Output, message: &Value) -> String {
    let failed = message.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let (style, word) = if failed {
        (Style::Red, "failed")
    } else {
        (Style::Green, "ok")
    };
    let words: Vec<String> = blocks(message)
        .into_iter()
        .map(|block| match block {
            Block::Text(words) | Block::Other(words) => words,
            Block::Call { name, .. } => name,
        })
        .collect();
    let words = one_line(&words.join(" "), RESULT_COLUMNS);
    let name = one_line(text_at(message, "toolName"), RESULT_COLUMNS);
    let colon = if words.is_empty() { "" } else { ": " };
    format!(
        "{} {} {}{colon}{}",
        out.paint(style, "●"),
        out.paint(Style::Bold, &name),
        out.paint(style, word),
        out.paint(Style::Dim, &words)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_key_a_transcript_or_a_session_id() {
        let of = |text: &str| target(Some(text.to_owned())).unwrap();
        assert_eq!(
            of("agent:main:main"),
            Target::Session(SessionKey("agent:main:main".to_owned()))
        );
        assert_eq!(of("main"), Target::Session(SessionKey("main".to_owned())));
        for path in ["sessions/a.jsonl.gz", "agents/main/sessions/a-part5.jsonl.gz"] {
            assert_eq!(of(path), Target::Archive(path.to_owned()));
        }
        let id = "0b0e7c1e-0000-4000-8000-000000000000";
        assert_eq!(of(id), Target::SessionId(id.to_owned()));
    }

    #[test]
    fn a_message_is_made_of_blocks() {
        let message = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Look:"},
            {"type": "toolCall", "name": "laptop__Bash", "arguments": {"command": "ls"}},
            {"type": "image", "r2Key": "media/x/1.png", "filename": "cat.png"},
            {"type": "audio", "r2Key": "media/x/2.ogg", "transcript": "hello"}]});
        assert_eq!(
            blocks(&message),
            [
                Block::Text("Look:".to_owned()),
                Block::Call {
                    name: "laptop__Bash".to_owned(),
                    args: json!({"command": "ls"})
                },
                Block::Other("[image: cat.png]".to_owned()),
                Block::Other("[audio: media/x/2.ogg - hello]".to_owned()),
            ]
        );
        assert_eq!(
            speaker(&json!({"role": "user", "content": "[Summary made by GSV, not ...]"})),
            "Summary"
        );
    }

    #[test]
    fn th19_a_result_is_one_clean_line() {
        let message = json!({"role": "toolResult", "toolName": "lap__Bash\u{1b}[2J", "isError": true,
            "content": [{"type": "text", "text": "one\n\u{1b}[31mtwo"}]});
        assert_eq!(result_line(Output::plain(), &message), "● lap__Bash failed: one two");
    }
}
