//! `gsv chat`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::{Context, read_stdin};
use crate::args::Chat;
use crate::chat::conversation::Conversation;
use crate::chat::interactive;
use crate::chat::turn::Request;
use crate::chat::view::{View, line};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths;

const FAREWELL: Duration = Duration::from_millis(200);

pub async fn run(context: &Context, args: Chat) -> Outcome {
    let out = context.out;
    let session = match &args.agent {
        Some(agent) => super::agent::conversation(agent)?,
        None => Context::session(args.session)?,
    };
    let at_terminal = io::stdin().is_terminal() && out.tty && !out.json;
    let message = match args.message {
        Some(message) => Some(message),
        None if at_terminal => None,
        None if io::stdin().is_terminal() => {
            return Err(Failure::usage(
                "There is no message.",
                "Say it: `gsv chat MESSAGE`; or pipe it in.",
            ));
        }
        None => Some(read_stdin(out, "the message")?),
    };
    if message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage(
            "The message is empty.",
            "Say something: `gsv chat hello`.",
        ));
    }
    let view = View::new(out);
    let result = talk(context, session, message.as_deref(), args.timeout, args.verbose).await;
    view.json(&ending(&result));
    result
}

async fn talk(
    context: &Context,
    session: String,
    message: Option<&str>,
    timeout: Option<Duration>,
    verbose: bool,
) -> Outcome {
    let out = context.out;
    let account = context.account()?;
    // From here on Ctrl-C stops a run, not the program.
    let mut interrupts = signal(SignalKind::interrupt()).or_fail("listen for Ctrl-C", "Try again.")?;
    let connecting = Conversation::open(&account, session);
    let mut conversation = tokio::select! {
        conversation = connecting => conversation?,
        _ = interrupts.recv() => return Err(Failure::interrupted()),
    };
    let result = if let Some(message) = message {
        let request = Request {
            message,
            timeout,
            verbose,
        };
        conversation.turn(&request, &mut View::new(out), &mut interrupts).await
    } else {
        let home = paths::state_dir()?;
        paths::ensure_private_dir(&home)?;
        let history = home.join("history");
        interactive::talk(&mut conversation, history, verbose, out, &mut interrupts).await
    };
    // Nothing is left to say on it; a gateway that doesn't answer the farewell must not hold us up.
    let _ = tokio::time::timeout(FAREWELL, conversation.close()).await;
    result
}

fn ending(result: &Outcome) -> Value {
    match result {
        Ok(()) => line::end("ok", 0, None, None),
        Err(failure) => {
            let status = if failure.exit == crate::exit::Exit::Interrupted {
                "aborted"
            } else {
                "error"
            };
            line::end(
                status,
                failure.exit.code(),
                failure.reason.as_deref(),
                Some(&failure.message),
            )
        }
    }
}
