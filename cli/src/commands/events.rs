//! `gsv events`: the events of agents. Their texts come from models, so control characters are shown as escapes.

use gsv_protocol::methods::{EventsList as List, EventsReplay, EventsResolve, EventsShow};
use gsv_protocol::types::{
    DomainEvent, EventDecision, EventStatus, EventSummary, EventsListParams, EventsReplayParams, EventsResolveParams,
    EventsShowParams,
};

use super::actors::Actors;
use super::context::Context;
use crate::args::{EventsCommand, EventsList};
use crate::clean::{clean, one_line};
use crate::exit::Outcome;
use crate::table::Table;
use crate::units::{ago, now_ms};

pub async fn run(context: &Context, command: EventsCommand) -> Outcome {
    match command {
        EventsCommand::List(args) => list(context, args).await,
        EventsCommand::Show { id } => {
            let out = context.out;
            let shown = context.show::<EventsShow>(EventsShowParams { id }, |shown| {
                out.fields(details(&shown.event, now_ms()));
                out.line("");
                out.content(&format!("{}\n", clean(&shown.event.payload)));
            });
            shown.await
        }
        EventsCommand::Resolve { id, decision } => {
            let params = EventsResolveParams { id, decision };
            let resolved = context.change::<EventsResolve>(params, |_| match decision {
                EventDecision::Approve => "The event is approved and goes to its handler.".to_owned(),
                EventDecision::Reject => "The event is rejected and will not be handled.".to_owned(),
            });
            resolved.await
        }
        EventsCommand::Replay { id } => {
            let params = EventsReplayParams { id };
            let again = context.change::<EventsReplay>(params, |sent| {
                format!(
                    "The event goes to its handler again. Look at it: `gsv events show {}`.",
                    one_line(&sent.event.id, 32)
                )
            });
            again.await
        }
    }
}

async fn list(context: &Context, args: EventsList) -> Outcome {
    let out = context.out;
    let params = EventsListParams {
        status: args.status,
        topic: args.topic,
        before: args.before,
        limit: Some(args.limit),
    };
    let show = context.show::<List>(params, |page| {
        out.table(&table(&page.events, now_ms()));
        match page.events.last() {
            None => out.aside("There are no such events."),
            Some(last) if page.more => {
                out.aside(&format!("More: `gsv events list --before {}`", one_line(&last.id, 32)));
            }
            Some(_) => {}
        }
    });
    show.await
}

const fn standing(status: EventStatus) -> &'static str {
    match status {
        EventStatus::Queued => "queued",
        EventStatus::WaitingApproval => "waiting for your word",
        EventStatus::Done => "done",
        EventStatus::Rejected => "rejected",
        EventStatus::Dead => "dead letter",
    }
}

fn topic(name: &str) -> String {
    if name.is_empty() {
        "(unreadable)".to_owned()
    } else {
        one_line(name, 64)
    }
}

fn table(events: &[EventSummary], now: u64) -> Table<6> {
    Table::new(
        ["ID", "STATUS", "TOPIC", "AGENT", "EMITTED", "REASON"],
        events.iter().map(|event| {
            [
                one_line(&event.id, 32),
                standing(event.status).to_owned(),
                topic(&event.topic),
                one_line(event.agent_id.as_ref(), 64),
                ago(event.emitted_at, now),
                event
                    .reason
                    .as_ref()
                    .map_or_else(String::new, |reason| one_line(reason, 200)),
            ]
        }),
    )
}

/// The jobs that the event has given agents, each with the command that shows it.
fn started(event: &DomainEvent, now: u64) -> Option<String> {
    let jobs = event.started.as_deref().unwrap_or_default().iter().map(|start| {
        format!(
            "a job of the agent {}, {} (`gsv job show {}`)",
            one_line(start.agent_id.as_ref(), 64),
            ago(start.started_at, now),
            one_line(&start.job_id, 64)
        )
    });
    let text = jobs.collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

fn details(event: &DomainEvent, now: u64) -> Vec<(&'static str, Option<String>)> {
    let decision = event.decision.map(|decision| {
        let by = event.decided_by.as_deref().unwrap_or_default();
        let at = event.decided_at.map_or_else(String::new, |at| ago(at, now));
        format!(
            "{} by {}, {at}",
            decision.as_str(),
            one_line(&Actors::default().name(by), 200)
        )
    });
    let foreign = event.label == "peer" || event.label == "world";
    vec![
        ("id", Some(one_line(&event.id, 32))),
        ("status", Some(standing(event.status).to_owned())),
        (
            "topic",
            Some(format!("{}, version {}", topic(&event.topic), event.version)),
        ),
        ("agent", Some(one_line(event.agent_id.as_ref(), 64))),
        ("task", Some(one_line(&event.task_id, 400))),
        (
            "conversation",
            event.session_key.as_ref().map(|key| one_line(key.as_ref(), 400)),
        ),
        (
            "label",
            foreign.then(|| {
                format!(
                    "{}, from {}",
                    one_line(&event.label, 16),
                    one_line(&event.label_source, 200)
                )
            }),
        ),
        ("emitted", Some(ago(event.emitted_at, now))),
        (
            "failed attempts",
            (event.attempts > 0).then(|| event.attempts.to_string()),
        ),
        ("reason", event.reason.as_ref().map(|reason| one_line(reason, 1_000))),
        ("decision", decision),
        ("word", event.word.as_ref().map(|word| one_line(word, 1_000))),
        (
            "answer with",
            event.code.as_ref().map(|code| {
                format!(
                    "`gsv approval allow {0}`, or `gsv approval deny {0}`",
                    one_line(code, 16)
                )
            }),
        ),
        ("started", started(event, now)),
        ("ended", event.ended_at.map(|at| ago(at, now))),
    ]
}
