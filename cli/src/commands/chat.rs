//! `gsv chat`.

use std::io::{self, IsTerminal};

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::{Context, read_stdin};
use crate::args::Chat;
use crate::chat::interactive;
use crate::chat::turn::{Conversation, Request};
use crate::chat::view::{View, line};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths;

pub async fn run(context: &Context, args: Chat) -> Outcome {
    let out = context.out;
    let session = Context::session(args.session)?;
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
    let account = context.account()?;
    // From here on Ctrl-C stops a run, not the program.
    let mut interrupts = signal(SignalKind::interrupt()).or_fail("listen for Ctrl-C", "Try again.")?;
    let connecting = Conversation::open(&account, session);
    let mut conversation = tokio::select! {
        conversation = connecting => conversation?,
        _ = interrupts.recv() => return Err(Failure::interrupted()),
    };
    let result = match message {
        Some(message) => {
            let mut view = View::new(out);
            let request = Request {
                message: &message,
                timeout: args.timeout,
                verbose: args.verbose,
            };
            let result = conversation.turn(&request, &mut view, &mut interrupts).await;
            view.json(&ending(&result));
            result
        }
        None => {
            let home = paths::state_dir()?;
            paths::ensure_private_dir(&home)?;
            interactive::talk(
                &mut conversation,
                home.join("history"),
                args.verbose,
                out,
                &mut interrupts,
            )
            .await
        }
    };
    // Nothing is left to say on it; a gateway that doesn't answer the farewell must not hold us up.
    let _ = tokio::time::timeout(std::time::Duration::from_millis(200), conversation.close()).await;
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
