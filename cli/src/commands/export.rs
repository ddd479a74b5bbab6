//! `gsv session export`: a whole conversation into a file - what compactions put away of it, its own transcript, and what is
//! live now. The file appears whole or not at all, and never takes another's place unasked.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use gsv_protocol::methods::SessionGet;
use gsv_protocol::types::{AgentId, SessionGetParams, SessionKey};
use serde_json::Value;

use super::Context;
use super::transcript::{
    Block, Item, Source, Target, archives, blocks, is_summary, read, sources, speaker, target, text_at,
};
use crate::args::ExportFormat;
use crate::clean::clean;
use crate::client::Client;
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;
use crate::paths::shell;
use crate::units::{grouped, time};

/// A conversation that is compacted while it is read is read again this often.
const TRIES: usize = 3;

pub async fn run(
    context: &Context,
    given: Option<String>,
    agent_id: Option<AgentId>,
    format: Option<ExportFormat>,
    output: Option<PathBuf>,
    force: bool,
) -> Outcome {
    let target = target(given)?;
    if let Some(path) = output.as_deref().filter(|path| !force && path.exists()) {
        return Err(exists(path));
    }
    let markdown = output
        .as_deref()
        .and_then(Path::extension)
        .is_some_and(|ending| ending.eq_ignore_ascii_case("md") || ending.eq_ignore_ascii_case("markdown"));
    let format = format.unwrap_or(if markdown {
        ExportFormat::Markdown
    } else {
        ExportFormat::Jsonl
    });
    let client = context.connect().await?;
    let mut written = 0_u64;
    let damage = match &output {
        Some(path) => {
            let (count, damage) = to_file(&client, &target, agent_id, format, path, force).await?;
            written = count;
            damage
        }
        None => to_stdout(context.out, &client, &target, agent_id, format).await?,
    };
    client.close().await;
    if let Some(path) = &output {
        context
            .out
            .aside(&format!("{} messages written to {}", grouped(written), shell(path)));
    }
    damage.map_or(Ok(()), |failure| {
        Err(Failure {
            next: "What could be read of it was exported.".to_owned(),
            ..failure
        })
    })
}

fn exists(path: &Path) -> Failure {
    Failure::failed(
        format!("{} is there already.", path.display()),
        "Choose another name, or replace it with --force.",
    )
}

/// What to read, in order, and what must still hold afterwards for it to be all of the conversation.
struct Plan {
    sources: Vec<Source>,
    /// Session id and transcripts of a live conversation.
    state: Option<(String, Vec<String>)>,
}

async fn live_state(client: &Client, key: &SessionKey) -> Outcome<(String, Vec<String>)> {
    let params = SessionGetParams {
        session_key: key.clone(),
    };
    let id = client.call::<SessionGet>(params).await?.session_id;
    let all = archives(client, None, Some(key.clone())).await?;
    let own = all.into_iter().rev().filter(|entry| entry.session_id == id);
    Ok((id.clone(), own.map(|entry| entry.path).collect()))
}

async fn plan(client: &Client, target: &Target, agent_id: Option<AgentId>) -> Outcome<Plan> {
    let Target::Session(key) = target else {
        let sources = sources(client, target, agent_id).await?;
        return Ok(Plan { sources, state: None });
    };
    let state = live_state(client, key).await?;
    let agent_id = agent_id.or_else(|| agent_of(&key.0));
    let parts = state.1.iter().map(|path| Source::Archive {
        agent_id: agent_id.clone(),
        path: path.clone(),
    });
    Ok(Plan {
        sources: parts.chain([Source::Session(key.clone())]).collect(),
        state: Some(state),
    })
}

/// A key says whose conversation it is; a short name is the default agent's.
fn agent_of(key: &str) -> Option<AgentId> {
    let id = key.strip_prefix("agent:")?.split(':').next()?;
    Some(AgentId(id.to_owned()))
}

/// Everything in order. False: the conversation was compacted or reset meanwhile.
async fn all(
    client: &Client,
    target: &Target,
    agent_id: Option<AgentId>,
    each: &mut impl FnMut(Item) -> Outcome,
) -> Outcome<(bool, Option<Failure>)> {
    let plan = plan(client, target, agent_id).await?;
    let mut damage = None;
    for source in &plan.sources {
        let read = read(client, source, 0, None, each).await?;
        damage = damage.or(read.damage);
    }
    let whole = match (&plan.state, target) {
        (Some(before), Target::Session(key)) => *before == live_state(client, key).await?,
        _ => true,
    };
    Ok((whole, damage))
}

fn changing() -> Failure {
    Failure::failed(
        "The conversation keeps being archived while it is read.",
        "Try again in a moment.",
    )
}

async fn to_stdout(
    out: Output,
    client: &Client,
    target: &Target,
    agent_id: Option<AgentId>,
    format: ExportFormat,
) -> Outcome<Option<Failure>> {
    // What is printed can't be taken back, so all of it is read first.
    for _ in 0..TRIES {
        let mut texts = Vec::new();
        let (whole, damage) = all(client, target, agent_id.clone(), &mut |item| {
            texts.push(piece(&item, format));
            Ok(())
        })
        .await?;
        if whole {
            for text in &texts {
                out.content(text);
            }
            return Ok(damage);
        }
    }
    Err(changing())
}

async fn to_file(
    client: &Client,
    target: &Target,
    agent_id: Option<AgentId>,
    format: ExportFormat,
    path: &Path,
    force: bool,
) -> Outcome<(u64, Option<Failure>)> {
    let doing = format!("write {}", path.display());
    let next = "Check that the folder is there and writable.";
    for _ in 0..TRIES {
        let mut file = Draft::new(path).or_fail(&doing, next)?;
        let mut count = 0;
        let (whole, damage) = all(client, target, agent_id.clone(), &mut |item| {
            count += u64::from(matches!(item, Item::Message(_)));
            file.write(&piece(&item, format)).or_fail(&doing, next)
        })
        .await?;
        if whole {
            return match file.finish(force) {
                Ok(()) => Ok((count, damage)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
                Err(error) => Err(error).or_fail(&doing, next),
            };
        }
    }
    Err(changing())
}

/// A file beside the one that is wanted, for its owner only. Removed unless it is finished.
struct Draft<'a> {
    path: &'a Path,
    temp: PathBuf,
    file: BufWriter<File>,
}

impl<'a> Draft<'a> {
    fn new(path: &'a Path) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;

        let name = path
            .file_name()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?
            .to_string_lossy();
        let temp = path.with_file_name(format!(".{name}.{}.{:08x}.tmp", std::process::id(), fastrand::u32(..)));
        let file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temp)?;
        Ok(Self {
            path,
            temp,
            file: BufWriter::new(file),
        })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }

    fn finish(mut self, force: bool) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        if force {
            fs::rename(&self.temp, self.path)
        } else {
            // A link fails where there is a file, so one that came meanwhile stays. The draft's own name goes at the end.
            fs::hard_link(&self.temp, self.path)
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temp);
    }
}

/// What stands for a message, or for what can't be read, in the export.
fn piece(item: &Item, format: ExportFormat) -> String {
    match (item, format) {
        (Item::Message(message), ExportFormat::Jsonl) => format!("{message}\n"),
        // A line that is no message would be in the way of whoever reads them; the command says it at its end.
        (Item::Gap(_), ExportFormat::Jsonl) => String::new(),
        (Item::Message(message), ExportFormat::Markdown) => markdown(message),
        (Item::Gap(words), ExportFormat::Markdown) => format!("> **Damaged:** {words}\n\n"),
    }
}

fn markdown(message: &Value) -> String {
    let at = message
        .get("timestamp")
        .and_then(Value::as_u64)
        .map(|at| format!(" · {}", time(at)))
        .unwrap_or_default();
    let result = text_at(message, "role") == "toolResult";
    let tool = if result {
        format!(" `{}`", clean(text_at(message, "toolName")).replace('`', "'"))
    } else {
        String::new()
    };
    let mut text = format!("## {}{tool}{at}\n\n", speaker(message));
    for block in blocks(message) {
        match block {
            Block::Text(words) if words.trim().is_empty() => {}
            Block::Text(words) if result => text.push_str(&fenced("", &words)),
            Block::Text(words) if is_summary(message) => {
                for line in words.lines() {
                    text.push_str(format!("> {line}").trim_end());
                    text.push('\n');
                }
            }
            Block::Text(words) => {
                text.push_str(words.trim_end());
                text.push('\n');
            }
            Block::Call { name, args } => {
                text.push_str("Calls `");
                text.push_str(&name.replace('`', "'"));
                text.push_str("`:\n\n");
                text.push_str(&fenced(
                    "json",
                    &serde_json::to_string_pretty(&args).unwrap_or_default(),
                ));
            }
            Block::Other(words) => {
                text.push_str(&clean(&words));
                text.push('\n');
            }
        }
        text.push('\n');
    }
    text
}

/// A code block that nothing in it can end.
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

    #[test]
    fn a_draft_takes_no_other_file_s_place_unasked() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out.md");
        let write = |text: &str, force: bool| {
            let mut draft = Draft::new(&path).unwrap();
            draft.write(text).unwrap();
            draft.finish(force)
        };
        write("one", false).unwrap();
        assert_eq!(write("two", false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write("two", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
