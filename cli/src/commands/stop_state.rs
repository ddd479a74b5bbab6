//! Whether GSV is stopped, and how every text says it and names the command that lets it go on: with the folder of a restored copy (rules
//! BK23, MV14, ST5).

use gsv_link::Target;
use gsv_protocol::NoParams;
use gsv_protocol::methods::GatewayStatus;
use gsv_protocol::types::{ConnectResult, StopState};

use super::context::Context;
use crate::client::{Client, is_here};
use crate::embedded::layout::Layout;
use crate::embedded::{record, start_stopped};
use crate::exit::Failure;
use crate::units::time;

/// An older gateway knows no stop.
pub fn knows_stop(hello: Option<&ConnectResult>) -> bool {
    hello.is_some_and(|hello| hello.features.methods.iter().any(|method| method == "gateway.status"))
}

/// Whether everything is stopped. None also when the gateway does not say.
pub async fn stopped(client: &Client) -> Option<StopState> {
    if !knows_stop(client.hello().as_ref()) {
        return None;
    }
    client.call::<GatewayStatus>(NoParams {}).await.ok()?.stopped
}

/// What the gateway names as the one who has stopped a restored copy.
const RESTORE: &str = "gsv restore";

/// The folder of the gateway that runs at this address on this machine.
fn layout_at(url: &str) -> Option<Layout> {
    // A tunnel to another machine has an address of this machine, too, and no record.
    let here = Target::parse(url).ok().filter(|_| is_here(url))?;
    record::home_on(here.port).map(|home| Layout { home })
}

/// The command that lets GSV go on, as texts name it.
const RESUME: &str = "`gsv resume";

/// A text that names `gsv resume`, for the gateway at this address: without its folder, that command does not let a restored copy go on
/// (rule BK23).
pub fn naming_copy(text: &str, url: &str) -> String {
    if !text.contains(RESUME) {
        return text.to_owned();
    }
    let copy = layout_at(url).filter(start_stopped::is_set);
    copy.map_or_else(|| text.to_owned(), |copy| naming(text, &copy))
}

fn naming(text: &str, copy: &Layout) -> String {
    text.replace(RESUME, &format!("`{}", start_stopped::resume_command(copy)))
}

/// As `failure_at`, for what a command of this context ends with.
pub fn failure_naming_copy(context: &Context, failure: Failure) -> Failure {
    if !failure.message.contains(RESUME) && !failure.next.contains(RESUME) {
        return failure;
    }
    match context.account() {
        Ok(account) => failure_at(&account.url, failure),
        Err(_) => failure,
    }
}

/// As `naming_copy`, for a failure.
pub fn failure_at(url: &str, failure: Failure) -> Failure {
    Failure {
        message: naming_copy(&failure.message, url),
        next: naming_copy(&failure.next, url),
        ..failure
    }
}

/// What to do about a restored copy. `url`: the gateway's address, which tells the copy's folder on this machine. `exported_at`: its home was
/// exported too, so a resume must say that it knows both.
fn resume_copy(url: &str, exported_at: Option<u64>) -> String {
    let flag = if exported_at.is_some() { " --exported" } else { "" };
    let command = match layout_at(url) {
        Some(copy) => format!("`{}{flag}`", start_stopped::resume_command(&copy)),
        None => format!("`gsv resume{flag}` on its machine"),
    };
    let source = "The gateway that it was copied from may still run and get your messages.";
    match exported_at {
        None => format!("{source} Only when that one is gone for good: {command}."),
        Some(at) => format!(
            "{source} Its home was also exported at {}, and may be live where it was imported. Only when it is live nowhere else: {command}.",
            time(at)
        ),
    }
}

/// A state that was restored beside its gateway: when both act, everything is done twice.
fn is_restored_copy(state: &StopState) -> bool {
    state.by == RESTORE
}

/// What is stopped, for a sentence that begins with what GSV is, and what to do about it.
pub fn explain(state: &StopState, url: &str) -> (String, String) {
    let stopped = format!("stopped since {}: messages wait", time(state.since));
    if is_restored_copy(state) {
        return (
            format!("a restored copy, {stopped}"),
            resume_copy(url, state.exported_at),
        );
    }
    let next = state
        .exported_at
        .map_or_else(|| "Go on with `gsv resume`.".to_owned(), resume_exported);
    (stopped, naming_copy(&next, url))
}

/// What to do about a gateway whose home was exported (rule MV14).
fn resume_exported(at: u64) -> String {
    format!(
        "Its home was exported at {}. If it was imported elsewhere, go on there and keep this one stopped. Only when it is live nowhere else: `gsv resume --exported`.",
        time(at)
    )
}

/// For a job that is queued.
pub fn jobs_wait(state: &StopState, url: &str) -> String {
    let words = format!(
        "GSV is stopped since {}, so the job does not begin. Go on with `gsv resume`.",
        time(state.since)
    );
    naming_copy(&words, url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mv14_the_stop_of_a_gateway_whose_home_was_exported_says_so() {
        let state = StopState {
            since: 0,
            by: "token:first".to_owned(),
            exported_at: Some(60_000),
        };
        let (_, says) = explain(&state, "wss://gateway.example/ws");
        assert!(says.contains("Its home was exported at "), "{says}");
        assert!(says.ends_with("live nowhere else: `gsv resume --exported`."), "{says}");
    }

    #[test]
    fn bk23_every_text_with_the_command_names_the_folder_of_a_copy() {
        let copy = Layout {
            home: "/home/me/my copy".into(),
        };
        assert_eq!(
            naming("Go on with `gsv resume`, or `gsv resume --exported`.", &copy),
            "Go on with `GSV_HOME='/home/me/my copy' gsv resume`, or `GSV_HOME='/home/me/my copy' gsv resume --exported`."
        );
        let text = "Go on with `gsv resume`.";
        for url in ["wss://gateway.example/ws", "ws://127.0.0.1:1/ws"] {
            assert_eq!(naming_copy(text, url), text);
        }
    }

    #[test]
    fn st5_each_kind_of_stop_says_what_is_stopped_and_what_to_do() {
        let explained = |by: &str, exported_at| {
            let state = StopState {
                since: 0,
                by: by.to_owned(),
                exported_at,
            };
            explain(&state, "wss://gateway.example/ws")
        };
        let stopped = "stopped since 1970-01-01 00:00:00 UTC: messages wait";
        assert_eq!(
            explained("client", None),
            (stopped.to_owned(), "Go on with `gsv resume`.".to_owned())
        );
        let (found, next) = explained("client", Some(60_000));
        assert_eq!(found, stopped);
        assert!(next.starts_with("Its home was exported at "), "{next}");
        let (found, next) = explained(RESTORE, Some(60_000));
        assert_eq!(found, format!("a restored copy, {stopped}"));
        assert!(next.starts_with("The gateway that it was copied from"), "{next}");
        // The gateway needs both answers (rule MV14).
        assert!(next.contains("Its home was also exported at "), "{next}");
        assert!(
            next.ends_with("live nowhere else: `gsv resume --exported` on its machine."),
            "{next}"
        );
    }

    #[test]
    fn bk23_a_copy_on_another_machine_is_resumed_there() {
        let state = StopState {
            since: 0,
            by: RESTORE.to_owned(),
            exported_at: None,
        };
        let (_, says) = explain(&state, "wss://gateway.example/ws");
        assert!(says.ends_with("gone for good: `gsv resume` on its machine."), "{says}");
        // As over a tunnel: no gateway of this machine is known to have the address.
        assert!(resume_copy("ws://127.0.0.1:1/ws", None).ends_with("`gsv resume` on its machine."));
    }
}
