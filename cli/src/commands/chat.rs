//! `gsv chat`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Context, read_stdin};
use crate::args::Chat;
use crate::chat::attach::{Chosen, choose, upload_all};
use crate::chat::conversation::Conversation;
use crate::chat::interactive;
use crate::chat::turn::Request;
use crate::chat::view::View;
use crate::client::Account;
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;
use crate::paths;

const FAREWELL: Duration = Duration::from_millis(200);

pub async fn run(context: &Context, args: Chat) -> Outcome {
    let out = context.out;
    let session = match &args.agent {
        Some(agent) => super::agent::conversation(agent)?,
        None => Context::session(args.session)?,
    };
    let files = choose(&args.attach)?;
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
    // A file may speak for itself.
    if files.is_empty() && message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage(
            "The message is empty.",
            "Say something: `gsv chat hello`.",
        ));
    }
    let view = View::new(out);
    let say = Say {
        message,
        files,
        timeout: args.timeout,
        verbose: args.verbose,
    };
    let result = talk(context, session, say).await;
    view.ended(&result);
    result
}

/// What is to be said, and how its answer is waited for.
struct Say {
    /// Absent: the prompt asks.
    message: Option<String>,
    files: Vec<Chosen>,
    timeout: Option<Duration>,
    verbose: bool,
}

async fn talk(context: &Context, session: String, say: Say) -> Outcome {
    let out = context.out;
    let account = context.account()?;
    // From here on Ctrl-C stops a run, not the program.
    let mut interrupts = signal(SignalKind::interrupt()).or_fail("listen for Ctrl-C", "Try again.")?;
    let connecting = Conversation::open(&account, session);
    let mut conversation = tokio::select! {
        conversation = connecting => conversation?,
        _ = interrupts.recv() => return Err(Failure::interrupted()),
    };
    let result = if let Some(message) = &say.message {
        one(&account, &mut conversation, message, &say, out, &mut interrupts).await
    } else {
        let home = paths::state_dir()?;
        paths::ensure_private_dir(&home)?;
        let history = home.join("history");
        let talk = interactive::Talk {
            account: &account,
            files: say.files,
            verbose: say.verbose,
            out,
        };
        talk.run(&mut conversation, history, &mut interrupts).await
    };
    // Nothing is left to say on it; a gateway that doesn't answer the farewell must not hold us up.
    let _ = tokio::time::timeout(FAREWELL, conversation.close()).await;
    result
}

/// One message with its files, and its answer.
async fn one(
    account: &Account,
    conversation: &mut Conversation,
    message: &str,
    say: &Say,
    out: Output,
    interrupts: &mut Signal,
) -> Outcome {
    let files = upload_all(account, &conversation.followed.session, &say.files, out, interrupts).await?;
    let request = Request {
        message: message.to_owned(),
        files,
        timeout: say.timeout,
        verbose: say.verbose,
    };
    conversation.turn(request, &mut View::new(out), interrupts).await
}
