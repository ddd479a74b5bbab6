//! `gsv notifications`: what you were told, where, and what waits. Where it is told is decided by the gateway.

use gsv_protocol::methods::{NotificationsList as List, NotificationsTest as Test};
use gsv_protocol::types::{
    Notification, NotificationPlace, NotificationState, NotificationsListParams, NotificationsListResult,
    NotificationsTestParams,
};

use super::context::Context;
use super::doctor_report::Report;
use crate::args::{Notifications, NotificationsCommand};
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::Outcome;
use crate::table::Table;
use crate::units::{ago, now_ms, time};

const TEXT_CHARS: usize = 200;

pub async fn run(context: &Context, args: Notifications) -> Outcome {
    let out = context.out;
    if let Some(NotificationsCommand::Test { kind }) = args.command {
        let params = NotificationsTestParams { kind: Some(kind) };
        let tested = context.change::<Test>(params, |result| tested(&result.notification));
        return tested.await;
    }
    let params = NotificationsListParams {
        limit: Some(args.limit),
        before_id: None,
        kind: args.kind,
    };
    let shown = context.show::<List>(params, |result| {
        let now = now_ms();
        out.table(&places(&result.places, result.quiet_hours.is_some()));
        if let Some(line) = hours(&result) {
            out.line(&line);
        }
        for (found, next) in broken(&result) {
            out.line(&format!("! {found} {next}"));
        }
        out.line("");
        if result.notifications.is_empty() {
            out.aside("There are no notifications yet. Try where they are told: `gsv notifications test`.");
        } else {
            out.table(&table(&result.notifications, now));
        }
        if result.more {
            out.aside("There are more: `gsv notifications --limit 200`.");
        }
    });
    shown.await
}

/// Chosen places that do not work, as sentences for `gsv status`.
pub async fn attention(client: &Client) -> Vec<String> {
    let places = broken_places(client).await;
    places
        .into_iter()
        .map(|(found, next)| format!("{found} {next}"))
        .collect()
}

/// For `gsv doctor`.
pub async fn check(report: &mut Report, client: &Client) {
    for (found, next) in broken_places(client).await {
        report.warn("notifications", found, next);
    }
}

/// Chosen places that do not work, each with what to do. Empty when the gateway is older.
async fn broken_places(client: &Client) -> Vec<(String, String)> {
    let params = NotificationsListParams {
        limit: Some(1),
        before_id: None,
        kind: None,
    };
    client
        .call::<List>(params)
        .await
        .map_or_else(|_| Vec::new(), |result| broken(&result))
}

fn broken(result: &NotificationsListResult) -> Vec<(String, String)> {
    let problem = |place: &NotificationPlace| {
        let why = one_line(place.problem.as_deref()?, TEXT_CHARS);
        let (kind, name) = (place.kind.as_str(), one_line(&place.place, 100));
        let found = format!("Notifications about {kind} are told elsewhere, because {name} does not work: {why}");
        Some((
            found,
            format!("Choose a place: `gsv config set notifications.{kind} main`."),
        ))
    };
    result.places.iter().filter_map(problem).collect()
}

fn hours(result: &NotificationsListResult) -> Option<String> {
    let hours = result.quiet_hours.as_ref()?;
    let text = |value: &Option<String>| one_line(value.as_deref().unwrap_or_default(), 64);
    let now = result
        .quiet_until
        .map(|until| format!("; it is quiet now, until {}", time(until)))
        .unwrap_or_default();
    Some(format!(
        "quiet hours {} to {} ({}){now}",
        text(&hours.start),
        text(&hours.end),
        text(&hours.timezone)
    ))
}

fn tested(notification: &Notification) -> String {
    let failures = notification.failures.iter().flatten();
    let failed = failures.fold(String::new(), |all, why| all + "; not in " + &one_line(why, TEXT_CHARS));
    match (&notification.told_in, notification.state) {
        (Some(place), NotificationState::Told) => format!("told in {}{failed}", one_line(place, 100)),
        (_, NotificationState::Off) => format!(
            "nothing was told: notifications about {} are switched off",
            notification.kind.as_str()
        ),
        _ => format!("not told yet{failed}; look: `gsv notifications`"),
    }
}

fn places(places: &[NotificationPlace], has_quiet_hours: bool) -> Table<3> {
    let rows = places.iter().map(|place| {
        let held = if place.held && has_quiet_hours {
            "held back"
        } else {
            "told at once"
        };
        [place.kind.as_str().to_owned(), place.place.clone(), held.to_owned()]
    });
    Table::new(["KIND", "PLACE", "IN QUIET HOURS"], rows)
}

fn table(notifications: &[Notification], now: u64) -> Table<4> {
    let rows = notifications.iter().map(|each| {
        [
            ago(each.created_at, now),
            each.kind.as_str().to_owned(),
            state(each),
            one_line(&each.text, TEXT_CHARS),
        ]
    });
    Table::new(["WHEN", "KIND", "TOLD", "TEXT"], rows)
}

fn state(notification: &Notification) -> String {
    match notification.state {
        NotificationState::Waiting | NotificationState::Merged | NotificationState::Dropped
            if notification.over_at.is_some() =>
        {
            "not told: it was over before".to_owned()
        }
        NotificationState::Told => {
            let place = notification.told_in.clone().unwrap_or_default();
            match notification.over_at {
                Some(at) => format!("{place}; over since {}", time(at)),
                None => place,
            }
        }
        NotificationState::Waiting => notification
            .due_at
            .map_or_else(|| "waits".to_owned(), |at| format!("waits until {}", time(at))),
        NotificationState::Merged => notification
            .with
            .map_or_else(|| "with another".to_owned(), |with| format!("with number {with}")),
        NotificationState::Off => "switched off".to_owned(),
        NotificationState::Dropped => "too many waited".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use serde_json::json;

    use super::*;

    fn notification(more: &serde_json::Value) -> Notification {
        let mut value = json!({
            "id": 7, "kind": "job", "cause": "c", "text": "It failed.\nLook.", "createdAt": 0, "agentId": "main", "state": "told"
        });
        for (key, with) in more.as_object().unwrap() {
            value[key] = with.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn nt13_a_test_says_which_place_took_it_and_which_did_not() {
        let told = notification(&json!({"toldIn": "main", "failures": ["desktop/lap: there is no display"]}));
        assert_eq!(tested(&told), "told in main; not in desktop/lap: there is no display");
        let off = notification(&json!({"state": "off"}));
        assert_eq!(
            tested(&off),
            "nothing was told: notifications about job are switched off"
        );
        let waits = notification(&json!({"state": "waiting", "dueAt": 5}));
        assert!(tested(&waits).starts_with("not told yet"));
    }

    #[test]
    fn nt13_the_list_says_where_each_was_told_and_the_status_names_a_place_that_does_not_work() {
        assert_eq!(state(&notification(&json!({"toldIn": "desktop/lap"}))), "desktop/lap");
        assert_eq!(
            state(&notification(&json!({"state": "merged", "with": 3}))),
            "with number 3"
        );
        assert!(state(&notification(&json!({"state": "waiting", "dueAt": 0}))).starts_with("waits until "));
        let result: NotificationsListResult = serde_json::from_value(json!({
            "notifications": [], "more": false, "waiting": 0, "quietHours": {"start": "22:00", "end": "07:00", "timezone": "UTC"},
            "places": [
                {"kind": "job", "place": "main", "isDefault": true, "held": true},
                {"kind": "budget", "place": "desktop/lap", "isDefault": false, "held": true, "problem": "The machine lap is not connected."}
            ]
        }))
        .unwrap();
        assert_eq!(
            broken(&result),
            [(
                "Notifications about budget are told elsewhere, because desktop/lap does not work: The machine lap is not connected.".to_owned(),
                "Choose a place: `gsv config set notifications.budget main`.".to_owned()
            )]
        );
        assert_eq!(hours(&result).unwrap(), "quiet hours 22:00 to 07:00 (UTC)");
    }
}
