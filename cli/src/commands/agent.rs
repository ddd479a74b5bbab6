//! `gsv agent`: who there is, making one, and looking at one. Bringing one along is in `agent_import`.

use std::fs;
use std::path::Path;

use gsv_protocol::NoParams;
use gsv_protocol::methods::{AgentsCreate, AgentsGet, AgentsList};
use gsv_protocol::types::{AgentBinding, AgentEntry, AgentId, AgentsCreateParams, AgentsGetParams, ModelRef};

use super::session::model_ref;
use super::{Context, agent_import};
use crate::args::{AgentCommand, AgentNew};
use crate::clean::{clean, one_line};
use crate::exit::{Failure, OrFail, Outcome};
use crate::import::plan;
use crate::table::Table;
use crate::units::{ago, bytes, grouped, now_ms};

const MAX_PROMPT_BYTES: u64 = 65_536;

pub async fn run(context: &Context, command: AgentCommand) -> Outcome {
    match command {
        AgentCommand::List => list(context).await,
        AgentCommand::New(args) => new(context, args).await,
        AgentCommand::Show { id } => show(context, checked_id(&id)?).await,
        AgentCommand::Import(args) => agent_import::run(context, args).await,
    }
}

/// The conversation of the command line with an agent.
pub fn conversation(id: &str) -> Outcome<String> {
    Ok(format!("agent:{}:cli:dm:main", checked_id(id)?.0))
}

/// An id as it is written in session keys; another one is not changed silently, but the right one is named.
pub fn checked_id(text: &str) -> Outcome<AgentId> {
    let id = plan::agent_id(text);
    if id.as_deref() == Some(text) {
        return Ok(AgentId(text.to_owned()));
    }
    Err(Failure::usage(
        format!("`{text}` can't be an agent's name: it has at most 64 of a-z, 0-9, _ and -."),
        id.map_or_else(
            || "Name it, for example `work`.".to_owned(),
            |id| format!("Try `{id}`."),
        ),
    ))
}

fn model_name(model: &ModelRef) -> String {
    format!("{}/{}", model.provider, model.id)
}

async fn list(context: &Context) -> Outcome {
    let client = context.connect().await?;
    let result = client.call::<AgentsList>(NoParams {}).await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&result);
        return Ok(());
    }
    let now = now_ms();
    let mut table = Table::new(["AGENT", "", "MODEL", "SESSIONS", "ACTIVE", "ABOUT"]);
    for agent in result.agents {
        let about = match (&agent.description, agent.commissioned) {
            (Some(text), true) => text.clone(),
            (Some(text), false) => format!("{text} (not met yet)"),
            (None, true) => String::new(),
            (None, false) => "not met yet".to_owned(),
        };
        table.row(&[
            agent.agent_id.0,
            if agent.is_default { "default" } else { "" }.to_owned(),
            agent
                .model
                .as_ref()
                .map_or_else(|| "as configured".to_owned(), model_name),
            grouped(agent.sessions),
            agent.last_active_at.map(|at| ago(at, now)).unwrap_or_default(),
            about,
        ]);
    }
    out.table(&table);
    Ok(())
}

async fn new(context: &Context, args: AgentNew) -> Outcome {
    let agent_id = checked_id(&args.id)?;
    let params = AgentsCreateParams {
        agent_id: agent_id.clone(),
        description: args.description,
        model: args.model.as_deref().map(model_ref).transpose()?,
        system_prompt: args.prompt.as_deref().map(text_or_file).transpose()?,
        default: args.default.then_some(true),
        bootstrap: None,
    };
    let client = context.connect().await?;
    let result = client.call::<AgentsCreate>(params).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
        return Ok(());
    }
    let AgentId(id) = agent_id;
    context.out.aside(&format!(
        "agent {id} is made. Meet it: `gsv chat --agent {id}`. Its files: `gsv workspace ls --agent {id}`."
    ));
    Ok(())
}

/// Text as it is, or the content of a file that is named with `@`.
fn text_or_file(value: &str) -> Outcome<String> {
    let Some(path) = value.strip_prefix('@') else {
        return Ok(value.to_owned());
    };
    let next = "Name a text file of at most 64 KiB, or give the text itself.";
    let size = fs::metadata(Path::new(path))
        .or_fail(format_args!("read {path}"), next)?
        .len();
    if size > MAX_PROMPT_BYTES {
        return Err(Failure::usage(format!("{path} is larger than 64 KiB."), next));
    }
    let read = fs::read(Path::new(path)).or_fail(format_args!("read {path}"), next)?;
    String::from_utf8(read).map_err(|_| Failure::usage(format!("{path} is not UTF-8 text."), next))
}

async fn show(context: &Context, agent_id: AgentId) -> Outcome {
    let client = context.connect().await?;
    let result = client.call::<AgentsGet>(AgentsGetParams { agent_id }).await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&result);
        return Ok(());
    }
    let now = now_ms();
    let mut fields = described(&result.agent, now);
    fields.extend(result.system_prompt.map(|prompt| ("prompt", one_line(&prompt, 100))));
    fields.extend(result.bindings.iter().map(|binding| ("answers", place(binding))));
    out.fields(&fields);
    if !result.files.is_empty() {
        out.line("");
        let mut table = Table::new(["FILE", "SIZE", "CHANGED"]);
        for file in result.files {
            table.row(&[file.path, bytes(file.size_bytes), ago(file.updated_at, now)]);
        }
        out.table(&table);
    }
    Ok(())
}

fn described(agent: &AgentEntry, now: u64) -> Vec<(&'static str, String)> {
    let mut fields = vec![("agent", agent.agent_id.0.clone())];
    if agent.is_default {
        fields.push(("default", "yes".to_owned()));
    }
    fields.extend(agent.description.clone().map(|text| ("about", text)));
    let model = agent.model.as_ref().map(model_name);
    fields.push(("model", model.unwrap_or_else(|| "as configured".to_owned())));
    if !agent.commissioned {
        fields.push(("met", format!("not yet: `gsv chat --agent {}`", agent.agent_id.0)));
    }
    fields.push(("sessions", grouped(agent.sessions)));
    fields.extend(agent.last_active_at.map(|at| ("active", ago(at, now))));
    fields
}

/// Where a binding is about, in words.
fn place(binding: &AgentBinding) -> String {
    let place = &binding.r#match;
    let peer = place.peer.as_ref();
    let parts = [
        place.channel.clone(),
        place.account_id.as_ref().map(|account| format!("account {account}")),
        peer.and_then(|peer| peer.kind.clone()),
        peer.and_then(|peer| peer.id.clone()),
    ];
    let words: Vec<String> = parts.into_iter().flatten().map(|part| clean(&part)).collect();
    if words.is_empty() {
        "everywhere".to_owned()
    } else {
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_session_keys_and_the_right_one_is_named() {
        assert_eq!(conversation("work").unwrap(), "agent:work:cli:dm:main");
        let failure = checked_id("My Bot").unwrap_err();
        assert!(failure.next.contains("`my-bot`"), "{failure:?}");
        for wrong in ["", "a:b", "../x", &"x".repeat(65)] {
            assert!(checked_id(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_prompt_is_text_or_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("p.md");
        fs::write(&file, "from a file").unwrap();
        assert_eq!(text_or_file("Be brief.").unwrap(), "Be brief.");
        assert_eq!(text_or_file(&format!("@{}", file.display())).unwrap(), "from a file");
        assert!(text_or_file("@/nowhere/at/all").is_err());
        fs::write(&file, vec![b'x'; 65_537]).unwrap();
        assert!(text_or_file(&format!("@{}", file.display())).is_err());
    }
}
