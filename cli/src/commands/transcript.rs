//! Reads conversations and archived transcripts page by page, and shows them. A damaged transcript is read around its damage.

use gsv_protocol::errors;
use gsv_protocol::methods::{ArchivesList, ArchivesRead, SessionMessages};
use gsv_protocol::types::{
    AgentId, ArchiveEntry, ArchivesListParams, ArchivesReadParams, SessionKey, SessionMessagesParams,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::context::Context;
use super::messages::print;
use crate::args::SessionShow;
use crate::clean::clean;
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::units::grouped;

/// Messages requested at once; the gateway answers as many as fit.
const PAGE: u64 = 1000;
const LIST_PAGE: u8 = 200;

/// All transcripts of an agent, or of one conversation; the newest first.
pub async fn archives(
    client: &Client,
    agent_id: Option<AgentId>,
    session_key: Option<SessionKey>,
) -> Outcome<Vec<ArchiveEntry>> {
    let mut all = Vec::new();
    loop {
        let params = ArchivesListParams {
            agent_id: agent_id.clone(),
            session_key: session_key.clone(),
            offset: Some(all.len() as u64),
            limit: Some(LIST_PAGE),
        };
        let page = client.call::<ArchivesList>(params).await?;
        let more = !page.archives.is_empty();
        all.extend(page.archives);
        if !more || all.len() as u64 >= page.count {
            return Ok(all);
        }
    }
}

/// The conversation or transcript that an argument names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Session(SessionKey),
    /// A transcript's path.
    Archive(String),
    SessionId(String),
}

impl Target {
    /// Keys have colons, or are short names; session ids are UUIDs; transcripts are files.
    pub fn of(argument: Option<String>, session: Option<SessionKey>) -> Outcome<Self> {
        if let Some(key) = session {
            return Ok(Self::Session(key));
        }
        let key = Context::session(argument.map(SessionKey))?;
        let text = key.as_str();
        Ok(if text.contains(".jsonl") || text.contains('/') {
            Self::Archive(key.into_inner())
        } else if text.len() == 36 && Uuid::try_parse(text).is_ok() {
            Self::SessionId(key.into_inner())
        } else {
            Self::Session(key)
        })
    }

    /// The transcripts and the live messages of a target, in order.
    pub async fn sources(&self, client: &Client, agent_id: Option<AgentId>) -> Outcome<Vec<Source>> {
        match self {
            Self::Session(key) => Ok(vec![Source::Session(key.clone())]),
            Self::Archive(path) => Ok(vec![Source::archive(agent_id.as_ref(), path)]),
            Self::SessionId(id) => {
                let mut all = archives(client, agent_id.clone(), None).await?;
                all.retain(|entry| &entry.session_id == id);
                if all.is_empty() {
                    let message =
                        format!("There is no transcript of the session {id}. `gsv session history` lists them.");
                    return Err(Failure::from_reason(errors::PATH_NOT_FOUND.reason, &message, false));
                }
                let oldest_first = all.iter().rev();
                Ok(oldest_first
                    .map(|entry| Source::archive(agent_id.as_ref(), &entry.path))
                    .collect())
            }
        }
    }
}

/// Messages that are requested page by page.
#[derive(Debug, Clone)]
pub enum Source {
    Session(SessionKey),
    Archive { agent_id: Option<AgentId>, path: String },
}

impl Source {
    pub fn archive(agent_id: Option<&AgentId>, path: &str) -> Self {
        Self::Archive {
            agent_id: agent_id.cloned(),
            path: path.to_owned(),
        }
    }

    /// Messages, whether more follow, and how many there are. Without a limit, the gateway checks a whole transcript first.
    async fn page(&self, client: &Client, offset: u64, limit: Option<u64>) -> Outcome<(Vec<Value>, bool, u64)> {
        let limit = limit.map(|limit| u16::try_from(limit.min(PAGE)).unwrap_or(u16::MAX));
        let offset = (offset > 0).then_some(offset);
        match self.clone() {
            Self::Session(session_key) => {
                let params = SessionMessagesParams {
                    session_key,
                    offset,
                    limit,
                    notes: Some(true),
                };
                let page = client.call::<SessionMessages>(params).await?;
                Ok((page.messages, page.next_offset.is_some(), page.total))
            }
            Self::Archive { agent_id, path } => {
                let params = ArchivesReadParams {
                    agent_id,
                    path,
                    offset,
                    limit,
                };
                let page = client.call::<ArchivesRead>(params).await?;
                Ok((page.messages, page.next_offset.is_some(), page.total))
            }
        }
    }
}

/// What was read.
#[derive(Debug, Default)]
pub struct Read {
    /// Messages of the whole source, as far as is known.
    pub total: u64,
    /// The offset where reading stopped.
    pub end: u64,
    /// The first damage. The messages around it were read.
    pub damage: Option<Failure>,
}

/// A message, or words about messages that can't be read.
pub enum Item {
    Message(Value),
    Gap(String),
}

/// Where damage begins, where messages follow it, and what to say about it.
struct Damage {
    from: u64,
    resume: Option<u64>,
    words: String,
}

/// All messages from `offset` on, at most `limit`, given to `each` in order.
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
    let mut damage: Option<Damage> = None;
    while done.end < last {
        if let Some(Damage { resume, words, .. }) = damage.take_if(|damage| done.end >= damage.from) {
            each(Item::Gap(words))?;
            match resume {
                Some(at) if at > done.end => done.end = at,
                _ => break,
            }
            continue;
        }
        let until = damage.as_ref().map_or(last, |damage| last.min(damage.from));
        let most = (until < u64::MAX).then(|| until - done.end);
        match source.page(client, done.end, most).await {
            Ok((messages, more, total)) => {
                let empty = messages.is_empty();
                done.total = done.total.max(total);
                done.end += messages.len() as u64;
                for message in messages {
                    each(Item::Message(message))?;
                }
                match &mut damage {
                    _ if more && !empty => {}
                    // All readable messages were read: the damage is behind them.
                    Some(damage) => damage.from = damage.from.min(done.end),
                    None => break,
                }
                if empty && let Some(damage) = damage.take() {
                    each(Item::Gap(damage.words))?;
                    break;
                }
            }
            Err(failure) if failure.is(&errors::ARCHIVE_DAMAGED) && damage.is_none() => {
                let number = |name: &str| failure.details.as_ref().and_then(|details| details.get(name)?.as_u64());
                done.total = done.total.max(number("total").unwrap_or(0));
                damage = Some(Damage {
                    from: number("readable").unwrap_or(0).max(done.end),
                    resume: number("resumeAt"),
                    words: first_sentence(&failure.message),
                });
                done.damage.get_or_insert(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(done)
}

/// The damage, without the advice that is for programs.
fn first_sentence(message: &str) -> String {
    let text = message.split(". ").next().unwrap_or_default();
    format!("{}.", clean(text).trim_end_matches('.'))
}

pub async fn show(context: &Context, args: SessionShow) -> Outcome {
    let out = context.out;
    let target = Target::of(args.target, args.session)?;
    let client = context.connect().await?;
    let offset = args.offset;
    let (mut shown, mut gaps) = (Vec::new(), Vec::new());
    let (mut skip, mut left, mut total, mut count) = (offset, args.limit, 0, 0_u64);
    let mut damage = None;
    for source in &target.sources(&client, args.of.agent).await? {
        if left == Some(0) {
            break;
        }
        let before = count;
        let mut each = |item| {
            match item {
                Item::Message(message) => {
                    count += 1;
                    if out.json {
                        shown.push(message);
                    } else {
                        print(out, &message);
                    }
                }
                Item::Gap(words) if out.json => gaps.push(words),
                Item::Gap(words) => out.warn(&words),
            }
            Ok(())
        };
        let read = read(&client, source, skip, left, &mut each).await?;
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
        let rest = grouped(total - offset - count);
        out.aside(&format!("{rest} more: --offset {}", offset + count));
    }
    damage.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_key_a_transcript_or_a_session_id() {
        let of = |text: &str| Target::of(Some(text.to_owned()), None).unwrap();
        for key in ["agent:main:main", "main"] {
            assert_eq!(of(key), Target::Session(SessionKey::from(key)));
        }
        for path in ["sessions/a.jsonl.gz", "agents/main/sessions/a-part5.jsonl.gz"] {
            assert_eq!(of(path), Target::Archive(path.to_owned()));
        }
        let id = "0b0e7c1e-0000-4000-8000-000000000000";
        assert_eq!(of(id), Target::SessionId(id.to_owned()));
    }
}
