//! `gsv skills`: lists, installs, approves and removes the agent's skills. Texts of a skill are its author's: hidden characters
//! are made visible.

use gsv_protocol::errors;
use gsv_protocol::methods::{SkillsApprove, SkillsRemove, SkillsShow, SkillsStatus, SkillsUpdate};
use gsv_protocol::types::{
    Capability, NodeId, SkillEntry, SkillScope, SkillState, SkillsApproveParams, SkillsInstallParams,
    SkillsRemoveParams, SkillsReport, SkillsShowParams, SkillsStatusParams, SkillsUpdateParams,
};

use super::actors::Actors;
use super::context::Context;
use crate::args::{SkillApprove, SkillInstall, SkillName, SkillRemove, SkillStatus, SkillsCommand};
use crate::ask;
use crate::clean::{one_line, visible};
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::skill_files;
use crate::skill_upload::Requests;
use crate::table::Table;
use crate::units::time;

/// Lines of SKILL.md that are shown before it is approved.
const SHOWN_LINES: usize = 40;

pub async fn run(context: &Context, command: SkillsCommand) -> Outcome {
    let out = context.out;
    match command {
        SkillsCommand::List(of) => {
            let params = SkillsStatusParams { agent_id: of.agent };
            context.show::<SkillsStatus>(params, |report| list(out, &report)).await
        }
        SkillsCommand::Status(args) => status(context, args).await,
        SkillsCommand::Show(skill) => {
            let show = context.show::<SkillsShow>(show_params(&skill), |result| {
                details(out, &result.skill, Some(&result.files));
                out.line("");
                out.piece(&format!("{}\n", visible_lines(&result.content).trim_end()));
            });
            show.await
        }
        SkillsCommand::Install(args) => install(context, args).await,
        SkillsCommand::Remove(args) => remove(context, args).await,
        SkillsCommand::Approve(args) => approve(context, args).await,
    }
}

fn short(name: &str) -> String {
    one_line(name, 64)
}

/// A skill whose programs were not looked for is never called ready.
fn state_of(skill: &SkillEntry) -> &'static str {
    let needs = skill.requirements.as_ref().and_then(|needs| needs.bins.as_ref());
    let has_bins = needs.is_some_and(|bins| !bins.is_empty());
    match skill.state {
        Some(SkillState::Changed) if skill.approved_sha256.is_none() && skill.approved_at.is_none() => "needs approval",
        Some(SkillState::Unchecked) => "not checked",
        // A gateway of an earlier version.
        Some(SkillState::Ready) if has_bins => "not checked",
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

const fn scope(global: bool) -> SkillScope {
    if global { SkillScope::Global } else { SkillScope::Agent }
}

/// Hidden characters are what a reader must see here, so they are not only removed.
fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(visible).collect();
    lines.join("\n")
}

fn show_params(skill: &SkillName) -> SkillsShowParams {
    SkillsShowParams {
        agent_id: skill.of.agent.clone(),
        name: skill.name.clone(),
    }
}

fn list(out: Output, report: &SkillsReport) {
    let rows = report.skills.iter().map(|skill| {
        [
            skill.name.clone(),
            state_of(skill).to_owned(),
            scope_of(skill).to_owned(),
            visible(&skill.description),
        ]
    });
    out.table(&Table::new(["SKILL", "STATE", "FROM", "DESCRIPTION"], rows));
    let is_changed = |skill: &&SkillEntry| skill.state == Some(SkillState::Changed);
    let count = report.skills.iter().filter(is_changed).count();
    if count > 0 {
        out.warn(&format!(
            "{count} not used until you approve the files: `gsv skills show NAME`, then `gsv skills approve NAME`"
        ));
    }
}

/// Reads the files now, instead of the last report.
async fn status(context: &Context, args: SkillStatus) -> Outcome {
    let out = context.out;
    let params = SkillsUpdateParams {
        agent_id: args.of.agent,
    };
    let mut report = context.ask::<SkillsUpdate>(params).await?;
    let Some(name) = args.name else {
        out.show(report, |report| all_states(out, &report));
        return Ok(());
    };
    report.skills.retain(|skill| skill.name == name);
    if report.skills.is_empty() {
        let message = format!("There is no skill `{}`.", short(&name));
        return Err(Failure::failed(message, "`gsv skills list` shows all skills."));
    }
    out.show(report, |report| {
        for skill in &report.skills {
            details(out, skill, None);
        }
    });
    Ok(())
}

fn all_states(out: Output, report: &SkillsReport) {
    let rows = report.skills.iter().map(|skill| {
        let approved = match (&skill.approved_by, skill.approved_at) {
            (Some(by), Some(at)) => format!("{} {}", time(at), Actors::default().cell(by)),
            _ => String::new(),
        };
        [
            skill.name.clone(),
            state_of(skill).to_owned(),
            scope_of(skill).to_owned(),
            visible(&approved),
            visible(&skill.reasons.join(" ")),
        ]
    });
    out.table(&Table::new(["SKILL", "STATE", "FROM", "APPROVED", "REASON"], rows));
}

/// Everything about one skill, on stdout.
fn details(out: Output, skill: &SkillEntry, files: Option<&[String]>) {
    let mut fields: Vec<(&str, String)> = vec![
        ("skill", skill.name.clone()),
        ("state", state_of(skill).to_owned()),
        ("from", format!("{} ({})", scope_of(skill), skill.location)),
        ("about", visible(&skill.description)),
    ];
    fields.extend(skill.reasons.iter().map(|reason| ("reason", visible(reason))));
    if let Some(needs) = &skill.requirements {
        let capabilities: Vec<&str> = needs.capabilities.iter().map(Capability::as_str).collect();
        if !capabilities.is_empty() {
            fields.push(("needs", visible(&capabilities.join(", "))));
        }
        let bins = needs.bins.as_ref().filter(|bins| !bins.is_empty());
        fields.extend(bins.map(|bins| ("programs", format!("{} (not checked)", visible(&bins.join(", "))))));
    }
    if skill.always {
        fields.push(("always", "offered with any machines".to_owned()));
    }
    let hosts: Vec<&str> = skill.eligible_hosts.iter().map(NodeId::as_str).collect();
    if !hosts.is_empty() {
        fields.push(("machines", hosts.join(", ")));
    }
    let steps = skill.install.iter().flatten();
    fields.extend(steps.map(|step| ("install", format!("{} (the author's text, never run)", visible(step)))));
    fields.extend(
        skill
            .homepage
            .as_deref()
            .map(|homepage| ("homepage", visible(homepage))),
    );
    if let (Some(by), Some(at)) = (&skill.approved_by, skill.approved_at) {
        fields.push((
            "approved",
            format!("{} by {}", time(at), visible(&Actors::default().name(by))),
        ));
    }
    fields.extend(skill.sha256.clone().map(|sha256| ("sha256", sha256)));
    fields.extend(skill.approved_sha256.clone().map(|sha256| ("approved sha256", sha256)));
    fields.extend(files.map(|files| ("files", visible(&files.join(", ")))));
    out.fields(fields);
}

async fn install(context: &Context, args: SkillInstall) -> Outcome {
    let out = context.out;
    let found = skill_files::read(&args.path)?;
    let Some(name) = args.name.or(found.name) else {
        let message = format!("{} does not contain a name.", args.path.display());
        return Err(Failure::usage(message, "Name the skill with --name."));
    };
    let params = SkillsInstallParams {
        agent_id: args.of.agent,
        name,
        scope: Some(scope(args.global)),
        files: Vec::new(),
        replace: args.replace.then_some(true),
        upload_id: None,
        uploaded: None,
    };
    let client = context.connect().await?;
    let result = Requests::new(params, found.files).send(&client).await?;
    client.close().await;
    out.show(result, |result| {
        let skill = &result.skill;
        let (name, state) = (short(&skill.name), state_of(skill));
        out.aside(&format!("skill {name} is installed and approved; state: {state}"));
        for reason in &skill.reasons {
            out.aside(&visible(reason));
        }
        for step in skill.install.iter().flatten() {
            out.aside(&format!(
                "the author says that it needs: {} (never run by GSV)",
                visible(step)
            ));
        }
    });
    Ok(())
}

async fn remove(context: &Context, args: SkillRemove) -> Outcome {
    let name = args.skill.name;
    let params = SkillsRemoveParams {
        agent_id: args.skill.of.agent,
        name: name.clone(),
        scope: Some(scope(args.global)),
    };
    let words = format!("skill {} is deleted", short(&name));
    let removed = context.change::<SkillsRemove>(params, |_| words).await;
    removed.map_err(|mut failure| {
        if failure.is(&errors::SKILL_NOT_FOUND) && !args.global {
            let next = "If all agents share it, add --global. `gsv skills list` shows where each skill is from.";
            next.clone_into(&mut failure.next);
        }
        failure
    })
}

/// Approves the files that were shown: their digest is sent along, and the gateway refuses if they have changed since.
async fn approve(context: &Context, args: SkillApprove) -> Outcome {
    let out = context.out;
    let SkillName { name, of } = &args.skill;
    let shown = context.ask::<SkillsShow>(show_params(&args.skill)).await?;
    let Some(sha256) = shown.skill.sha256.clone() else {
        let next = if shown.skill.scope == Some(SkillScope::Builtin) {
            "Built-in skills need no approval."
        } else {
            "`gsv skills status` shows the reason."
        };
        return Err(Failure::failed(
            format!("The skill `{}` can't be approved.", short(name)),
            next,
        ));
    };
    if !out.json {
        details(out, &shown.skill, Some(&shown.files));
        out.line("");
        let text = visible_lines(&shown.content);
        let mut lines = text.lines();
        for line in lines.by_ref().take(SHOWN_LINES) {
            out.line(&out.paint(Style::Dim, line));
        }
        let rest = lines.count();
        if rest > 0 {
            out.aside(&format!("{rest} more lines: `gsv skills show {}`", short(name)));
        }
    }
    if !args.yes {
        let question = "\nMay the agent use this skill?";
        ask::confirm(out, question, "approve", "The skill was not approved.")?;
    }
    let params = SkillsApproveParams {
        agent_id: of.agent.clone(),
        name: name.clone(),
        sha256,
    };
    let approved = context.change::<SkillsApprove>(params, |result| {
        let (name, state) = (short(&result.skill.name), state_of(&result.skill));
        format!("skill {name} is approved; state: {state}")
    });
    approved.await
}
