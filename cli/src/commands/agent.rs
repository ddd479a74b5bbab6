//! `gsv agent`: lists, shows, creates and deletes agents. Definitions are in `agent_definition` and `agent_edit`, the import is in
//! `agent_import`.

use std::fs;

use gsv_protocol::NoParams;
use gsv_protocol::methods::{AgentsCreate, AgentsDelete, AgentsGet, AgentsList};
use gsv_protocol::types::{
    AgentBinding, AgentDefinition, AgentEntry, AgentId, AgentsCreateParams, AgentsDeleteParams, AgentsGetParams,
    AgentsGetResult, ModelRef,
};

use super::context::Context;
use super::model::{Server, server_of};
use super::{agent_definition, agent_edit, agent_import};
use crate::args::{AgentCommand, AgentDelete, AgentNew};
use crate::ask::confirm;
use crate::clean::{clean, one_line};
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::{Output, Style};
use crate::table::Table;
use crate::units::{ago, bytes, grouped, now_ms};

const MAX_PROMPT_BYTES: u64 = 65_536;

pub async fn run(context: &Context, command: AgentCommand) -> Outcome {
    let out = context.out;
    match command {
        AgentCommand::List => {
            let now = now_ms();
            let head = ["AGENT", "NAME", "", "MODEL", "SESSIONS", "ACTIVE", "ABOUT"];
            let list = context.show::<AgentsList>(NoParams {}, |result| {
                out.table(&Table::new(head, result.agents.iter().map(|agent| row(agent, now))));
            });
            list.await
        }
        AgentCommand::New(args) => new(context, args).await,
        AgentCommand::Show {
            id: agent_id,
            yaml: false,
        } => {
            let show = context.show::<AgentsGet>(AgentsGetParams { agent_id }, |result| print(out, result));
            show.await
        }
        AgentCommand::Show { id, yaml: true } => text_in_force(context, id).await,
        AgentCommand::Validate { path } => agent_definition::validate(context, &path).await,
        AgentCommand::Define { path } => agent_definition::define(context, &path).await,
        AgentCommand::Edit { id } => agent_edit::run(context, id).await,
        AgentCommand::Undefine(args) => agent_definition::undefine(context, args).await,
        AgentCommand::Delete(args) => delete(context, args).await,
        AgentCommand::Import(args) => agent_import::run(context, args).await,
    }
}

fn model_name(model: Option<&ModelRef>) -> String {
    model.map_or_else(
        || "as configured".to_owned(),
        |model| format!("{}/{}", model.provider, model.id),
    )
}

fn row(agent: &AgentEntry, now: u64) -> [String; 7] {
    let about = agent.description.as_deref().unwrap_or_default();
    // An agent with a definition has its role from there.
    let about = match (about, agent.commissioned || agent.name.is_some()) {
        (about, true) => about.to_owned(),
        ("", false) => "not met yet".to_owned(),
        (about, false) => format!("{about} (not met yet)"),
    };
    [
        agent.agent_id.to_string(),
        agent.name.clone().unwrap_or_default(),
        if agent.is_default { "default" } else { "" }.to_owned(),
        model_name(agent.model.as_ref()),
        grouped(agent.sessions),
        agent.last_active_at.map(|at| ago(at, now)).unwrap_or_default(),
        about,
    ]
}

async fn new(context: &Context, args: AgentNew) -> Outcome {
    let system_prompt = args.prompt.as_deref().map(text_or_file).transpose()?;
    let client = context.connect().await?;
    if let Some(model) = &args.model {
        // Best effort: a token that makes agents may not read the settings.
        let server = server_of(&client, &model.provider).await.ok();
        if let Some(warning) = server.and_then(Server::warning) {
            context.out.warn(&format!("{warning}."));
        }
    }
    let params = AgentsCreateParams {
        agent_id: args.id.clone(),
        description: args.description,
        model: args.model,
        system_prompt,
        default: args.default.then_some(true),
        bootstrap: None,
    };
    let AgentId(id) = args.id;
    let words = format!(
        "agent {id} is created. Talk to it: `gsv chat --agent {id}`. Its files: `gsv workspace ls --agent {id}`."
    );
    let created = client.call::<AgentsCreate>(params).await?;
    client.close().await;
    context.out.done(&created, &words);
    context.out.warn_all(created.warnings.as_deref());
    Ok(())
}

async fn delete(context: &Context, args: AgentDelete) -> Outcome {
    let id = args.id.clone();
    if !args.yes {
        // An agent that does not exist needs no answer.
        let params = AgentsGetParams {
            agent_id: args.id.clone(),
        };
        context.ask::<AgentsGet>(params).await?;
        let with = if args.sessions {
            " and all its conversations, with their transcripts and files, and its jobs"
        } else {
            ""
        };
        confirm(
            context.out,
            &format!("Delete the agent {id}{with}?"),
            "delete it",
            "Nothing was deleted.",
        )?;
    }
    let params = AgentsDeleteParams {
        agent_id: args.id,
        sessions: args.sessions.then_some(true),
    };
    let deleted = context.change::<AgentsDelete>(params, |result| {
        let of = match result.sessions {
            0 => String::new(),
            1 => " Its conversation is being deleted.".to_owned(),
            many => format!(" Its {} conversations are being deleted.", grouped(many)),
        };
        let still = agent_definition::still_named(result.still_named_by.as_deref(), "");
        format!("agent {id} is deleted.{of} Its files stay in the workspace under agents/{id}, and its memories stay: `gsv memory list --agent {id}`.{still}")
    });
    deleted.await
}

/// The text itself, or the content of a file named with `@`.
fn text_or_file(value: &str) -> Outcome<String> {
    let Some(path) = value.strip_prefix('@') else {
        return Ok(value.to_owned());
    };
    let doing = format!("read {path}");
    let next = "Name a text file of at most 64 KiB, or give the text itself.";
    if fs::metadata(path).or_fail(&doing, next)?.len() > MAX_PROMPT_BYTES {
        return Err(Failure::usage(format!("{path} is larger than 64 KiB."), next));
    }
    let read = fs::read(path).or_fail(&doing, next)?;
    String::from_utf8(read).map_err(|_| Failure::usage(format!("{path} is not UTF-8 text."), next))
}

/// The text that `gsv agent edit` and `gsv agent define` accept.
async fn text_in_force(context: &Context, id: AgentId) -> Outcome {
    let agent_id = id.clone();
    let shown = context.ask::<AgentsGet>(AgentsGetParams { agent_id }).await?;
    let text = shown.definition_text.ok_or_else(|| {
        let next = format!("Begin one: `gsv agent edit {id}`.");
        Failure::failed(format!("{id} has no definition: it has the defaults."), next)
    })?;
    context.out.content(&text);
    Ok(())
}

fn print(out: Output, result: AgentsGetResult) {
    let now = now_ms();
    let agent = result.agent;
    let to_meet = format!("not yet: `gsv chat --agent {}`", agent.agent_id);
    let fields = [
        ("agent", Some(agent.agent_id.to_string())),
        ("default", agent.is_default.then(|| "yes".to_owned())),
        ("about", agent.description),
        ("model", Some(model_name(agent.model.as_ref()))),
        (
            "met",
            Some(to_meet).filter(|_| !agent.commissioned && agent.name.is_none()),
        ),
        ("sessions", Some(grouped(agent.sessions))),
        ("active", agent.last_active_at.map(|at| ago(at, now))),
        ("prompt", result.system_prompt.map(|prompt| one_line(&prompt, 100))),
    ];
    let answers = result.bindings.iter().map(|binding| ("answers", Some(place(binding))));
    out.fields(fields.into_iter().chain(answers));
    out.line("");
    match (result.definition.as_ref(), result.not_in_force) {
        (Some(definition), _) => {
            let changed = result.changed_files.unwrap_or_default();
            print_definition(out, &agent.agent_id, definition, &changed);
        }
        (None, None) => out.line(&format!(
            "No definition: every tool, and the configured limits. Begin one: `gsv agent edit {}`.",
            agent.agent_id
        )),
        (None, Some(file)) => out.line(&format!(
            "There is no current definition: every tool, and the configured limits. {path} is in the agent's folder (changed {at}), but was never applied: `gsv workspace cat {path} --agent {id} | gsv agent edit {id}` checks it and applies it.",
            path = one_line(&file.path, 200),
            at = ago(file.updated_at, now),
            id = agent.agent_id,
        )),
    }
    if !result.files.is_empty() {
        let files = result.files.into_iter();
        let rows = files.map(|file| [file.path, bytes(file.size_bytes), ago(file.updated_at, now)]);
        out.line("");
        out.table(&Table::new(["FILE", "SIZE", "CHANGED"], rows));
    }
}

fn print_definition(out: Output, id: &AgentId, definition: &AgentDefinition, changed: &[String]) {
    out.line(&out.paint(Style::Bold, "Current definition"));
    let fields = agent_definition::fields(definition)
        .into_iter()
        .skip_while(|(name, _)| *name == "agent");
    let changed = (!changed.is_empty()).then(|| {
        let files: Vec<String> = changed.iter().map(|path| one_line(path, 200)).collect();
        format!(
            "{}: without effect until it is applied (`gsv agent edit {id}`)",
            files.join(", ")
        )
    });
    out.fields(fields.chain([("changed", changed)]));
}

/// The channel, account and peer that a binding matches, in words.
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
        "all channels".to_owned()
    } else {
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
