//! `gsv chat`: one message, or a conversation at the prompt.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use gsv_protocol::errors;
use gsv_protocol::methods::{ApprovalList, ChatSend};
use gsv_protocol::types::{ApprovalListParams, ChatSendParams, ChatSendResult, PolicyMode, SessionKey, WhileBusy};
use rustix::fs::{FileType, fstat};
use tokio::signal::unix::{SignalKind, signal};

use super::approval;
use super::approval_view::in_order;
use super::context::Context;
use super::last_sessions::last_own;
use super::local::{LEFT_OVER_NEXT, left_over};
use crate::args::{ApproveCalls, Chat};
use crate::chat::attach::{Chosen, choose, upload_all};
use crate::chat::complete::{is_command, unknown_command};
use crate::chat::conversation::Conversation;
use crate::chat::decision::Decision;
use crate::chat::interactive;
use crate::chat::outcomes;
use crate::chat::said::{Reader, Said};
use crate::chat::seen::Seen;
use crate::chat::turn::{Approve, Request};
use crate::chat::view::View;
use crate::clean::{clean, one_line};
use crate::config::{Config, Key};
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;
use crate::paths;

/// A pipe that does not end is explained after this long.
const STDIN_NOTICE: Duration = Duration::from_secs(3);
const FAREWELL: Duration = Duration::from_millis(200);

pub async fn run(context: &Context, args: Chat) -> Outcome {
    let out = context.out;
    let last = if args.go_on {
        last_own(context, args.agent.clone()).await?
    } else {
        None
    };
    let session = match (last, &args.agent) {
        (Some(last), _) => last,
        (None, Some(agent)) => SessionKey(format!("agent:{agent}:cli:dm:main")),
        (None, None) => Context::session(args.session.clone())?,
    };
    let files = choose(&args.attach)?;
    let given = args.message.join(" ");
    let mut message = message(context, &given)?;
    let mut args = args;
    // A text of stdin is data, whatever its words are.
    if given != "-" && message.as_ref() == Some(&given) {
        match typed(&given)? {
            Typed::Message => not_an_answer(context, &session, &given).await?,
            Typed::Steer(text) => {
                args.steer = true;
                message = Some(text);
            }
            Typed::Decision(decision) => return approval::decide(context, decision).await,
        }
    }
    if args.interrupt && message.is_none() {
        return Err(Failure::usage(
            "--interrupt needs a message.",
            "Write one: `gsv chat --interrupt MESSAGE`. At the prompt, Esc stops the run.",
        ));
    }
    // A file needs no message.
    if files.is_empty() && message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("The message is empty.", "Write one: `gsv chat hello`."));
    }
    // With a message the mode goes with it: the message may wait behind another run, which keeps its own.
    if let (Some(mode), None) = (args.mode, &message) {
        set_mode(context, &session, mode).await?;
    }
    let is_usual = args.session.is_none() && args.agent.is_none() && !args.go_on;
    let key = session.clone().into_inner();
    let is_single = message.is_some();
    // The prompt itself shows what fails, without this reason.
    if !is_single && let Some(found) = left_over(context) {
        out.warn(&format!("{found} {LEFT_OVER_NEXT}"));
    }
    let result = talk(context, session.into_inner(), &args, message, files).await;
    let result = result.map_err(|failure| {
        if is_single {
            outcomes::in_the_shell(failure, (!is_usual).then_some(key.as_str()))
        } else {
            failure
        }
    });
    View::new(out, false).ended(&result);
    result
}

/// First words of what answers a question at the prompt.
const ANSWERS: [&str; 8] = ["y", "yes", "n", "no", "s", "session", "allow", "deny"];

/// While a question is open, a message that begins as an answer is none for the model (rule AP12). Outside of the prompt it does not say
/// which question it answers.
async fn not_an_answer(context: &Context, session: &SessionKey, words: &str) -> Outcome {
    let first = words.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if !ANSWERS.contains(&first.to_lowercase().as_str()) {
        return Ok(());
    }
    let params = ApprovalListParams {
        session_key: Some(session.clone()),
    };
    // A gateway that can't be asked is no reason: to send the message says what is wrong with it.
    let Ok(listed) = context.ask::<ApprovalList>(params).await else {
        return Ok(());
    };
    let waiting = in_order(listed.approvals);
    match Reader::default().read(words, &waiting) {
        Said::Answer(_) | Said::NoAnswer(_) => Err(outcomes::not_sent(&one_line(words, 60), &waiting)),
        _ => Ok(()),
    }
}

/// What the words of a single message mean: the same as at the prompt.
enum Typed {
    Message,
    Steer(String),
    Decision(Decision),
}

fn typed(words: &str) -> Outcome<Typed> {
    let at_the_prompt = |what: &str, next: &str| Err(Failure::usage(format!("`{}` {what}", one_line(words, 60)), next));
    match Reader::default().read(words, &[]) {
        Said::Steer(text) => Ok(Typed::Steer(text)),
        Said::Decide(decision) => Ok(Typed::Decision(decision)),
        Said::Unknown(_) => Err(Failure::usage(
            unknown_command(words).unwrap_or_default(),
            "List the commands: `gsv chat /help`. To send the text as a message, pipe it in: `gsv chat -`.",
        )),
        Said::NoAnswer(problem) => Err(Failure::usage(
            problem,
            "List the questions that wait: `gsv approval list`. To send the text as a message, pipe it in: `gsv chat -`.",
        )),
        Said::Leave => at_the_prompt("leaves a prompt, and no prompt is open.", "Open one: `gsv chat`."),
        Said::Queue(_) => at_the_prompt(
            "is about the messages that wait at a prompt.",
            "Open one: `gsv chat`. A message that `gsv chat MESSAGE` has sent is taken back with Ctrl-C there.",
        ),
        Said::Tool(_) => at_the_prompt(
            "shows a tool call of an open prompt.",
            "Open one: `gsv chat`. What the last run did: `gsv why`.",
        ),
        Said::Thoughts(_) => at_the_prompt(
            "shows what the model thinks in an open prompt.",
            "Open one: `gsv chat`. For a message: `gsv chat --thoughts MESSAGE`.",
        ),
        Said::Attach(_) => at_the_prompt(
            "chooses a file at a prompt.",
            "Send a file with a message: `gsv chat --attach FILE MESSAGE`.",
        ),
        Said::Nothing | Said::NotSent | Said::Answer(_) | Said::Command(_) | Said::Message(_) => Ok(Typed::Message),
    }
}

/// By the conversation's own command: a conversation that has had no message yet has no settings that `session.patch` could change.
async fn set_mode(context: &Context, session: &SessionKey, mode: PolicyMode) -> Outcome {
    let params = ChatSendParams {
        session_key: session.clone(),
        message: format!("/mode {}", mode.as_str()),
        run_id: None,
        message_id: None,
        attachments: None,
        while_busy: None,
        mode: None,
        thinking: None,
    };
    match context.ask::<ChatSend>(params).await? {
        ChatSendResult::Command { error: Some(error), .. } => Err(Failure::failed(
            format!("The mode was not set: {}", clean(&error)),
            "Choose another mode; `gsv chat --help` lists them.",
        )),
        ChatSendResult::Command { response, .. } => {
            context.out.aside(&clean(response.as_deref().unwrap_or_default()));
            Ok(())
        }
        _ => Err(Failure::failed(
            "This gateway is too old for modes.",
            "Update it, or leave out --mode.",
        )),
    }
}

/// The message of the arguments and of stdin. None: the prompt asks for it.
fn message(context: &Context, given: &str) -> Outcome<Option<String>> {
    let out = context.out;
    match (given, io::stdin().is_terminal(), out.tty && !out.json) {
        ("", true, true) => Ok(None),
        ("", true, false) => Err(Failure::usage(
            "There is no message.",
            "Write one: `gsv chat MESSAGE`; or pipe it in.",
        )),
        ("", false, _) | ("-", _, _) => context.read_stdin("the message").map(Some),
        _ if is_fed() && !is_command(given) => {
            let (read, is_read) = mpsc::channel::<()>();
            thread::spawn(move || {
                if is_read.recv_timeout(STDIN_NOTICE) == Err(RecvTimeoutError::Timeout) {
                    out.aside("waiting for the end of stdin (none is wanted: add `</dev/null`)");
                }
            });
            let text = context.read_stdin("the text")?;
            drop(read);
            let both = format!("{given}\n\n{text}");
            Ok(Some(if text.trim().is_empty() { given.to_owned() } else { both }))
        }
        _ => Ok(Some(given.to_owned())),
    }
}

/// Whether stdin is a pipe or a file. A program that starts this one may leave another stdin open without ever writing.
fn is_fed() -> bool {
    let kind = fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}

/// None: the message waits for its turn, which is what every gateway does.
fn while_busy(args: &Chat) -> Option<WhileBusy> {
    match (args.steer, args.interrupt) {
        (true, _) => Some(WhileBusy::Steer),
        (_, true) => Some(WhileBusy::Interrupt),
        _ => None,
    }
}

/// A program that reads JSON gets only what it asks for itself.
fn shows_thoughts(args: &Chat, out: Output) -> Outcome<bool> {
    Ok(args.thoughts || (!out.json && Config::load()?.get(Key::ChatThoughts) == Some("on")))
}

async fn talk(context: &Context, session: String, args: &Chat, message: Option<String>, files: Vec<Chosen>) -> Outcome {
    let (out, verbose) = (context.out, args.verbose);
    let approve = match args.approve {
        None if message.is_none() => Approve::Here,
        None => Approve::Ask,
        Some(ApproveCalls::Never) => Approve::Never,
        Some(ApproveCalls::All) => Approve::All,
    };
    let account = context.account()?;
    let thoughts = shows_thoughts(args, out)?;
    // From here on Ctrl-C stops a run, not the program.
    let mut interrupts = signal(SignalKind::interrupt()).or_fail("listen for Ctrl-C", "Try again.")?;
    let mut conversation = tokio::select! {
        conversation = Conversation::open(&account, session) => conversation?,
        _ = interrupts.recv() => return Err(Failure::interrupted()),
    };
    conversation.followed.thinking = thoughts;
    let result = if let Some(message) = message {
        let uploaded = tokio::select! {
            uploaded = upload_all(&account, &conversation.followed.session, &files, out) => uploaded,
            _ = interrupts.recv() => Err(Failure::interrupted()),
        };
        match uploaded {
            Ok(files) => {
                let request = Request {
                    message,
                    files,
                    timeout: args.timeout,
                    verbose,
                    approve,
                    while_busy: while_busy(args),
                    mode: args.mode,
                };
                let ended = conversation
                    .turn(request, &mut View::new(out, thoughts), &mut interrupts)
                    .await;
                match ended {
                    Err(failure) if failure.is(&errors::RUN_ABORTED) && conversation.stopped().await.is_some() => {
                        Err(Failure {
                            next: "Everything is stopped. Go on with `gsv resume`.".to_owned(),
                            ..failure
                        })
                    }
                    ended => ended,
                }
            }
            Err(failure) => Err(failure),
        }
    } else {
        let home = paths::state_dir()?;
        paths::ensure_private_dir(&home)?;
        let given = interactive::Given {
            account: &account,
            files,
            verbose,
            approve,
            seen: Seen::new(home.join("seen"), &account.url, &conversation.followed.session),
            steers: args.steer,
            thoughts,
            out,
        };
        interactive::talk(given, &mut conversation, home.join("history"), &mut interrupts).await
    };
    // A gateway that does not answer the close must not delay the end.
    let _ = tokio::time::timeout(FAREWELL, conversation.close()).await;
    result
}
