//! `gsv undo`: shows what an undo would do, asks, and does it. The gateway and the nodes do the work; this only shows it.

use gsv_protocol::methods::{UndoApply, UndoPlan};
use gsv_protocol::types::{
    SessionKey, UndoAction, UndoApplyParams, UndoFile, UndoOutcome, UndoPlace, UndoPlanParams, UndoResult,
    UndoTargetKind,
};

use super::context::Context;
use crate::args::Undo;
use crate::ask;
use crate::clean::visible;
use crate::exit::{Failure, Outcome};
use crate::units::{ago, counted, now_ms};

pub async fn run(context: &Context, args: Undo) -> Outcome {
    let out = context.out;
    let (is_run_named, named) = (args.target.is_some(), args.session.clone());
    // A name says which conversation is meant by itself.
    let session_key = match (&args.target, args.session) {
        (Some(_), session) => session,
        (None, session) => Some(Context::session(session)?),
    };
    let force = args.force.then_some(true);
    let plan = UndoPlanParams {
        target: args.target.clone(),
        session_key: session_key.clone(),
        force,
    };
    if args.dry_run {
        let plan = context.ask::<UndoPlan>(plan).await?;
        out.show(plan, |plan| print(context, &plan));
        return Ok(());
    }
    let mut target = args.target;
    if !args.yes {
        let plan = context.ask::<UndoPlan>(plan).await?;
        if !out.json {
            print(context, &plan);
        }
        let due = count(&plan, UndoOutcome::Planned);
        if due == 0 && plan.places.iter().all(|place| place.problem.is_none()) {
            rest(&plan, "Nothing was changed.")?;
            out.note("There is nothing to undo.");
            return Ok(());
        }
        let question = format!("Undo {}?", files(due));
        ask::confirm(out, &question, "undo them", "Nothing was undone.")?;
        // Undoes exactly the shown calls, also when another run has begun meanwhile.
        target = Some(plan.target);
    }
    let params = UndoApplyParams {
        target,
        session_key,
        force,
    };
    let done = context.ask::<UndoApply>(params).await?;
    if out.json {
        out.show(&done, |_| {});
    } else {
        print(context, &done);
        let undone = count(&done, UndoOutcome::Undone);
        if let Some(id) = done.undo_id.as_ref().filter(|_| undone > 0) {
            // The files that were left alone are offered again first.
            let is_whole = rest(&done, "").is_ok();
            let next = if is_whole {
                offered_next(&done, named, is_run_named)?
            } else {
                None
            };
            out.note(&format!(
                "Undone: {}. Take it back with `gsv undo {id}`.{}",
                files(undone),
                next.unwrap_or_default()
            ));
        }
    }
    let others = if count(&done, UndoOutcome::Undone) > 0 {
        "The others are done."
    } else {
        "Nothing was changed."
    };
    rest(&done, others)
}

/// What the next undo of the conversation offers. A conversation that the default does not mean is named.
fn offered_next(done: &UndoResult, named: Option<SessionKey>, is_run_named: bool) -> Outcome<Option<String>> {
    if done.kind != UndoTargetKind::Run || done.deleted == Some(true) {
        return Ok(None);
    }
    let usual = Context::session(None)?;
    let other = named.or_else(|| done.session_key.clone().filter(|key| *key != usual));
    let of = other.map_or_else(String::new, |key| format!(" --session {}", visible(key.as_str())));
    Ok(Some(if is_run_named {
        format!(" `gsv undo{of}` offers the last run that is not undone.")
    } else {
        format!(" `gsv undo{of}` again offers the run before.")
    }))
}

/// A failure when something was left, so that scripts see it.
fn rest(result: &UndoResult, otherwise: &str) -> Outcome {
    let left: u64 = [UndoOutcome::Conflict, UndoOutcome::NoCopy, UndoOutcome::Failed]
        .into_iter()
        .map(|outcome| count(result, outcome))
        .sum();
    if let Some(place) = result.places.iter().find(|place| place.problem.is_some()) {
        let what = format!("Not everything was undone, because of {}.", name(place));
        return Err(Failure::failed(what, format!("The reason is above. {otherwise}")));
    }
    if left > 0 {
        let next = if count(result, UndoOutcome::Conflict) > 0 {
            format!(
                "{otherwise} Overwrite later changes too: `gsv undo {} --force`.",
                visible(&result.target)
            )
        } else {
            otherwise.to_owned()
        };
        return Err(Failure::failed(format!("Not undone: {}.", files(left)), next));
    }
    Ok(())
}

fn print(context: &Context, result: &UndoResult) {
    let out = context.out;
    let kind = match result.kind {
        UndoTargetKind::Run => "Run",
        UndoTargetKind::Call => "Call",
        UndoTargetKind::Undo => "Undo",
    };
    let when = result
        .at
        .map(|at| format!(", {}", ago(at, now_ms())))
        .unwrap_or_default();
    let of = result
        .session_key
        .as_ref()
        .map(|key| format!(" of {}", visible(key.as_str())))
        .unwrap_or_default();
    let deleted = if result.deleted == Some(true) {
        " (a conversation that was deleted since)"
    } else {
        ""
    };
    out.line(&format!("{kind} {}{of}{deleted}{when}", visible(&result.target)));
    for place in &result.places {
        out.line(&format!("{}:", name(place)));
        for file in &place.files {
            out.line(&format!("  {}", line(file)));
        }
        if place.unlisted > 0 {
            out.line(&format!("  and {} more", files(place.unlisted)));
        }
        if let Some(problem) = &place.problem {
            out.line(&format!("  {}", visible(problem)));
        }
    }
    let later = result.later_commands.as_deref().unwrap_or_default();
    // A call of a client has no conversation, and a deleted one cannot be shown.
    let key = result.session_key.as_ref().filter(|_| result.deleted != Some(true));
    let preview = key.map(|key| format!("`gsv session preview {}`", visible(key.as_str())));
    if let Some(first) = later.first() {
        let call = visible(first.call_id.as_str());
        let shown = preview
            .as_ref()
            .map(|preview| format!(" See what they did: {preview}."));
        out.warn(&format!(
            "runs after this one started {} (the first: {call} on {}); what they changed is not kept and not undone.{}",
            commands(later.len()),
            visible(first.node_id.as_str()),
            shown.unwrap_or_default(),
        ));
    }
    if let Some(first) = result.commands.first() {
        let count = result.commands.len();
        let shown = preview.map(|preview| format!("; {preview} shows them"));
        out.warn(&format!(
            "what commands changed is not kept and not undone. This run started {} (the first: {} on {}){}.",
            commands(count),
            visible(first.call_id.as_str()),
            visible(first.node_id.as_str()),
            shown.unwrap_or_default(),
        ));
    }
}

fn name(place: &UndoPlace) -> String {
    match (&place.node_id, &place.agent_id) {
        (Some(node), _) => format!("machine {}", visible(node.as_str())),
        (None, Some(agent)) => format!("workspace of agent {}", visible(agent.as_str())),
        (None, None) => "workspace".to_owned(),
    }
}

fn line(file: &UndoFile) -> String {
    let (path, why) = (visible(&file.path), file.problem.as_deref().map(visible));
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let words = match (file.outcome, file.action) {
        (UndoOutcome::Planned, UndoAction::Rewrite) => "would restore",
        (UndoOutcome::Planned, UndoAction::BringBack) => "would bring back",
        (UndoOutcome::Planned, UndoAction::Remove) => "would remove",
        (UndoOutcome::Undone, UndoAction::Rewrite) => "restored",
        (UndoOutcome::Undone, UndoAction::BringBack) => "brought back",
        (UndoOutcome::Undone, UndoAction::Remove) => "removed",
        (UndoOutcome::Unchanged, _) => "unchanged",
        (UndoOutcome::Conflict, _) => "left alone",
        (UndoOutcome::NoCopy, _) => "no copy",
        (UndoOutcome::Failed, _) => "failed",
    };
    format!("{words}  {path}{why}")
}

fn count(result: &UndoResult, outcome: UndoOutcome) -> u64 {
    let counts = result
        .places
        .iter()
        .filter_map(|place| place.counts.get(outcome.as_str()));
    counts.sum()
}

fn commands(count: usize) -> String {
    counted(count as u64, "command", "commands")
}

fn files(count: u64) -> String {
    counted(count, "file", "files")
}
