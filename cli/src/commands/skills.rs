//! `gsv skills`: what the agent knows how to do, and what of it may be used.

use std::io::{self, BufRead, IsTerminal};

use gsv_protocol::errors;
use gsv_protocol::methods::{SkillsApprove, SkillsInstall, SkillsRemove, SkillsShow, SkillsStatus, SkillsUpdate};
use gsv_protocol::types::{
    AgentId, SkillEntry, SkillScope, SkillState, SkillsApproveParams, SkillsInstallParams, SkillsRemoveParams,
    SkillsReport, SkillsShowParams, SkillsShowResult, SkillsStatusParams, SkillsUpdateParams,
};

use super::Context;
use crate::args::{SkillsAgent, SkillsCommand, SkillsInstall as InstallArgs};
use crate::clean::{one_line, visible};
use crate::client::Client;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Output, Style};
use crate::skill_files;
use crate::table::Table;
use crate::units::timestamp;

/// Lines of SKILL.md that are shown before it is approved.
const SHOWN_LINES: usize = 40;
const NAME_COLUMNS: usize = 64;

pub async fn run(context: &Context, command: SkillsCommand) -> Outcome {
    match command {
        SkillsCommand::List { agent } => list(context, agent_id(agent)).await,
        SkillsCommand::Status { name, agent } => status(context, name, agent_id(agent)).await,
        SkillsCommand::Show { name, agent } => show(context, name, agent_id(agent)).await,
        SkillsCommand::Install(args) => install(context, args).await,
        SkillsCommand::Remove { name, global, agent } => remove(context, name, global, agent_id(agent)).await,
        SkillsCommand::Approve { name, yes, agent } => approve(context, name, yes, agent_id(agent)).await,
    }
}

fn agent_id(agent: SkillsAgent) -> Option<AgentId> {
    agent.agent.map(AgentId)
}

fn state_of(skill: &SkillEntry) -> &'static str {
    match skill.state {
        Some(state) => state.as_str(),
        None if skill.eligible => "ready",
        None => "unmet",
    }
}

fn scope_of(skill: &SkillEntry) -> &'static str {
    match skill.scope {
        Some(SkillScope::Agent) | None => "own",
        Some(SkillScope::Global) => "global",
        Some(SkillScope::Builtin) => "built in",
    }
}

async fn list(context: &Context, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let report = client.call::<SkillsStatus>(SkillsStatusParams { agent_id }).await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&report);
        return Ok(());
    }
    let mut table = Table::new(["SKILL", "STATE", "FROM", "DESCRIPTION"]);
    for skill in &report.skills {
        table.row(&[
            skill.name.clone(),
            state_of(skill).to_owned(),
            scope_of(skill).to_owned(),
            visible(&skill.description),
        ]);
    }
    out.table(&table);
    told_of_changes(out, &report);
    Ok(())
}

fn told_of_changes(out: Output, report: &SkillsReport) {
    let count = report
        .skills
        .iter()
        .filter(|skill| skill.state == Some(SkillState::Changed))
        .count();
    if count > 0 {
        out.warn(&format!(
            "{count} not used, because the files are not those that were approved: `gsv skills status`"
        ));
    }
}

/// Looks at the files now, whatever the gateway remembers.
async fn status(context: &Context, name: Option<String>, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let mut report = client.call::<SkillsUpdate>(SkillsUpdateParams { agent_id }).await?;
    client.close().await;
    let out = context.out;
    if let Some(name) = &name {
        report.skills.retain(|skill| &skill.name == name);
        if report.skills.is_empty() {
            return Err(Failure::failed(
                format!("There is no skill `{}`.", one_line(name, NAME_COLUMNS)),
                "`gsv skills list` shows all.",
            ));
        }
    }
    if out.json {
        out.json_document(&report);
        return Ok(());
    }
    if name.is_some() {
        for skill in &report.skills {
            details(out, skill, None);
        }
        return Ok(());
    }
    let mut table = Table::new(["SKILL", "STATE", "FROM", "APPROVED", "WHY"]);
    for skill in &report.skills {
        let approved = match (&skill.approved_by, skill.approved_at) {
            (Some(by), Some(at)) => format!("{} {by}", timestamp(at)),
            _ => String::new(),
        };
        table.row(&[
            skill.name.clone(),
            state_of(skill).to_owned(),
            scope_of(skill).to_owned(),
            visible(&approved),
            visible(&skill.reasons.join(" ")),
        ]);
    }
    out.table(&table);
    Ok(())
}

/// Everything about one skill, on stdout.
fn details(out: Output, skill: &SkillEntry, files: Option<&[String]>) {
    let mut fields: Vec<(&str, String)> = vec![
        ("skill", skill.name.clone()),
        ("state", state_of(skill).to_owned()),
        ("from", format!("{} ({})", scope_of(skill), skill.location)),
        ("about", visible(&skill.description)),
    ];
    for reason in &skill.reasons {
        fields.push(("why", visible(reason)));
    }
    if let Some(needs) = &skill.requirements {
        let names: Vec<&str> = needs
            .capabilities
            .iter()
            .map(|capability| capability.0.as_str())
            .collect();
        if !names.is_empty() {
            fields.push(("needs", visible(&names.join(", "))));
        }
        if let Some(bins) = needs.bins.as_ref().filter(|bins| !bins.is_empty()) {
            fields.push(("programs", format!("{} (not checked)", visible(&bins.join(", ")))));
        }
    }
    if skill.always {
        fields.push(("always", "offered whatever machines there are".to_owned()));
    }
    let hosts: Vec<&str> = skill.eligible_hosts.iter().map(|host| host.0.as_str()).collect();
    if !hosts.is_empty() {
        fields.push(("machines", hosts.join(", ")));
    }
    for step in skill.install.iter().flatten() {
        fields.push(("install", format!("{} (its author's words, never run)", visible(step))));
    }
    if let Some(homepage) = &skill.homepage {
        fields.push(("homepage", visible(homepage)));
    }
    if let (Some(by), Some(at)) = (&skill.approved_by, skill.approved_at) {
        fields.push(("approved", format!("{} by {}", timestamp(at), visible(by))));
    }
    if let Some(sha256) = &skill.sha256 {
        fields.push(("sha256", sha256.clone()));
    }
    if let Some(sha256) = &skill.approved_sha256 {
        fields.push(("approved sha256", sha256.clone()));
    }
    if let Some(files) = files {
        fields.push(("files", visible(&files.join(", "))));
    }
    out.fields(&fields);
}

async fn shown(client: &Client, name: &str, agent_id: Option<AgentId>) -> Outcome<SkillsShowResult> {
    let params = SkillsShowParams {
        agent_id,
        name: name.to_owned(),
    };
    client.call::<SkillsShow>(params).await
}

async fn show(context: &Context, name: String, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let result = shown(&client, &name, agent_id).await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&result);
        return Ok(());
    }
    details(out, &result.skill, Some(&result.files));
    out.line("");
    // What hides is what must be seen here, so it is never only removed.
    out.piece(&format!("{}\n", visible_lines(&result.content).trim_end()));
    Ok(())
}

fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(visible).collect();
    lines.join("\n")
}

async fn install(context: &Context, args: InstallArgs) -> Outcome {
    let found = skill_files::read(&args.path)?;
    let Some(name) = args.name.or(found.name) else {
        return Err(Failure::usage(
            format!("{} does not say its name.", args.path.display()),
            "Give it one with --name.",
        ));
    };
    let client = context.connect().await?;
    let result = client
        .call::<SkillsInstall>(SkillsInstallParams {
            agent_id: agent_id(args.agent),
            name,
            scope: Some(if args.global {
                SkillScope::Global
            } else {
                SkillScope::Agent
            }),
            files: found.files,
            replace: args.replace.then_some(true),
        })
        .await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&result);
        return Ok(());
    }
    let skill = &result.skill;
    let name = one_line(&skill.name, NAME_COLUMNS);
    out.aside(&format!(
        "skill {name} is installed and approved; state: {}",
        state_of(skill)
    ));
    for reason in &skill.reasons {
        out.aside(&visible(reason));
    }
    for step in skill.install.iter().flatten() {
        out.aside(&format!(
            "its author says that it needs: {} (never run by GSV)",
            visible(step)
        ));
    }
    Ok(())
}

async fn remove(context: &Context, name: String, global: bool, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let scope = if global { SkillScope::Global } else { SkillScope::Agent };
    let params = SkillsRemoveParams {
        agent_id,
        name: name.clone(),
        scope: Some(scope),
    };
    let result = client.call::<SkillsRemove>(params).await.map_err(|failure| {
        if failure.is(&errors::SKILL_NOT_FOUND) && !global {
            Failure {
                next: "If it is every agent's, add --global. `gsv skills list` shows whose it is.".to_owned(),
                ..failure
            }
        } else {
            failure
        }
    })?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        context
            .out
            .aside(&format!("skill {} is removed", one_line(&name, NAME_COLUMNS)));
    }
    Ok(())
}

/// What is approved is what was shown: its digest goes along, and the gateway refuses when the files have changed since.
async fn approve(context: &Context, name: String, yes: bool, agent_id: Option<AgentId>) -> Outcome {
    let account = context.account()?;
    let client = account.connect().await?;
    let looked = shown(&client, &name, agent_id.clone()).await?;
    client.close().await;
    let out = context.out;
    let Some(sha256) = looked.skill.sha256.clone() else {
        return Err(Failure::failed(
            format!("The skill `{}` can't be approved.", one_line(&name, NAME_COLUMNS)),
            if looked.skill.scope == Some(SkillScope::Builtin) {
                "Built-in skills need no approval."
            } else {
                "`gsv skills status` says what is wrong with it."
            },
        ));
    };
    if !out.json {
        details(out, &looked.skill, Some(&looked.files));
        let text = visible_lines(&looked.content);
        let mut lines = text.lines();
        out.line("");
        for line in lines.by_ref().take(SHOWN_LINES) {
            out.line(&out.paint(Style::Dim, line));
        }
        let rest = lines.count();
        if rest > 0 {
            out.aside(&format!(
                "{rest} more lines: `gsv skills show {}`",
                one_line(&name, NAME_COLUMNS)
            ));
        }
    }
    if !yes {
        ask(out)?;
    }
    // Somebody may have read for a while: a connection of its own.
    let client = account.connect().await?;
    let params = SkillsApproveParams { agent_id, name, sha256 };
    let result = client.call::<SkillsApprove>(params).await?;
    client.close().await;
    if out.json {
        out.json_document(&result);
    } else {
        out.aside(&format!(
            "skill {} is approved; state: {}",
            one_line(&result.skill.name, NAME_COLUMNS),
            state_of(&result.skill)
        ));
    }
    Ok(())
}

fn ask(out: Output) -> Outcome {
    if out.json || !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "Nobody is there to be asked, so nothing was approved.",
            "Look at it with `gsv skills show`, then add --yes.",
        ));
    }
    out.note("\nMay the agent use it as it is? [y = yes, anything else stops]");
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(
            Exit::Interrupted,
            "Nothing was approved.",
            "Run it again when you are ready.",
        )),
    }
}
