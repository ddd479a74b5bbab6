//! `gsv cp`: asks the gateway for transfers and follows them. Between machines and the workspace the gateway does the work, and goes on
//! without this program; a file of this machine is sent or received by this program itself.

use std::path::Path;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use gsv_node::Ends;
use gsv_protocol::methods::{TransferCancel, TransferCreate, TransferGet};
use gsv_protocol::types::{
    Transfer, TransferCancelParams, TransferCreateParams, TransferGetParams, TransferKey, TransferState,
};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::context::Context;
use super::copy_folder;
use super::copy_listing::version_of;
use super::copy_poll::Poll;
use super::copy_progress::{Progress, line};
use super::copy_request::{CopyRequest, Endpoint};
use super::copy_run::{Copied, Session, Unconfirmed, failure_of, is_cancelled, stopped};
use super::copy_screen::{is_shown, show};
use crate::args::Copy;
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::{Exit, Failure, Outcome};
use crate::stop_signal::stop_signal;
use crate::units::bytes;

pub async fn run(context: &Context, args: Copy) -> Outcome {
    if args.source == "-" || args.destination == "-" {
        return Err(Failure::usage(
            "`gsv cp` can't read stdin or write stdout.",
            "For a file with this name, write ./-. To print a file of the workspace: `gsv workspace cat PATH`.",
        ));
    }
    let source = endpoint(&args.source)?;
    let destination = endpoint(&args.destination)?;
    if let (Endpoint::Local(_), Endpoint::Local(_)) = (&source, &destination) {
        return Err(Failure::usage(
            "Both ends are on this machine.",
            "Use `cp`, or write NODE:PATH or gsv:PATH for one of them.",
        ));
    }
    let destination = whole_destination(&args, &source, destination)?;
    if args.recursive {
        return copy_folder::run(context, args, source, destination).await;
    }
    match (&source, &destination) {
        (Endpoint::Remote(source), Endpoint::Remote(destination)) => {
            let params = TransferCreateParams {
                id: new_id()?,
                source: source.clone(),
                destination: destination.clone(),
                agent_id: args.agent,
                force: args.force.then_some(true),
            };
            between(context, params).await
        }
        _ => with_this_machine(context, args, source, destination).await,
    }
}

/// A name before a colon is that of a machine or of the workspace; every other path is one of this machine.
pub fn endpoint(text: &str) -> Outcome<Endpoint> {
    let name = text.split(['/', ':']).next().unwrap_or_default();
    if !name.is_empty() && text[name.len()..].starts_with(':') {
        return Ok(Endpoint::Remote(text.to_owned()));
    }
    let absolute = std::path::absolute(text)
        .map_err(|error| Failure::usage(format!("This is no path: {error}."), "Name a file."))?;
    // A folder behind a link is meant, and `..` is its parent.
    let parent = absolute.parent().and_then(|parent| parent.canonicalize().ok());
    let absolute = match (parent, absolute.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => absolute.canonicalize().unwrap_or(absolute),
    };
    match absolute.to_str() {
        Some(path) => Ok(Endpoint::Local(path.to_owned())),
        None => Err(Failure::usage(
            format!(
                "{} has a name that is not UTF-8, and can't be copied.",
                one_line(&absolute.to_string_lossy(), 200)
            ),
            "Rename it, or run the command in another folder.",
        )),
    }
}

/// A destination that is written as a folder takes the name of the source. So does, for one file, a folder of this machine that is there:
/// a whole folder always goes to the same place, so that the same command again continues.
fn whole_destination(args: &Copy, source: &Endpoint, destination: Endpoint) -> Outcome<Endpoint> {
    let (source_text, text) = (args.source.as_str(), args.destination.as_str());
    let is_folder = match &destination {
        Endpoint::Local(path) => {
            matches!(text.rsplit('/').next(), Some("" | "." | "..")) || (!args.recursive && Path::new(path).is_dir())
        }
        Endpoint::Remote(place) => place.ends_with(['/', ':']),
    };
    if !is_folder {
        return Ok(destination);
    }
    let name = source
        .shown()
        .trim_end_matches('/')
        .rsplit(['/', ':'])
        .next()
        .unwrap_or_default();
    if name.is_empty() || (matches!(source, Endpoint::Remote(_)) && source_text.ends_with('/')) {
        return Err(Failure::usage(
            format!("{} names no file.", one_line(source_text, 200)),
            "Name one file, or a folder without `/` at its end and with `-r`.",
        ));
    }
    Ok(match destination {
        Endpoint::Local(path) => Endpoint::Local(format!("{}/{name}", path.trim_end_matches('/'))),
        Endpoint::Remote(place) => Endpoint::Remote(place + name),
    })
}

/// 128 random bits.
fn new_id() -> Result<TransferKey, Failure> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| {
        Failure::new(
            Exit::Bug,
            "The system gives no random numbers.",
            "Check that /dev/urandom works.",
        )
    })?;
    Ok(HEXLOWER.encode(&bytes).into())
}

// ---------------------------------------------------------------- a file of this machine

async fn with_this_machine(context: &Context, args: Copy, source: Endpoint, destination: Endpoint) -> Outcome {
    let version = match &source {
        Endpoint::Local(path) => version_of_file(path)?,
        Endpoint::Remote(_) => String::new(),
    };
    let wanted = CopyRequest {
        source,
        destination,
        agent: args.agent,
        force: args.force,
        version,
    };
    let account = context.account()?;
    let session = Session::open(&account, |link| {
        Ends::of_program(link, Path::new("/"), false).map_err(|error| {
            Failure::failed(
                format!("The files of this machine can't be opened: {error}."),
                "Check that you may read the folder `/`.",
            )
        })
    })
    .await?;
    let (shown, meter) = (is_shown(context), Meter::new());
    let copied = tokio::select! {
        copied = session.copy(&wanted, false, |seen| if shown { show(context.out, &meter.progress(seen, context.out.size().0)) }) => copied,
        () = stop_signal() => Err(stopped(session.cancel(&wanted), Unconfirmed::EndsByItself).await),
    };
    if shown {
        show(context.out, "");
    }
    session.close().await;
    match copied? {
        Copied::Now(transfer) => report(
            context,
            &transfer,
            &wanted.source,
            &wanted.destination,
            meter.begun.elapsed(),
        ),
        Copied::Already => Ok(()),
    }
}

fn version_of_file(path: &str) -> Outcome<String> {
    let found = std::fs::metadata(path);
    let meta = found.map_err(|error| {
        Failure::failed(
            format!("{} can't be read: {error}.", one_line(path, 200)),
            "Name a file that exists.",
        )
    })?;
    if meta.is_dir() {
        return Err(Failure::usage(
            format!("{} is a folder.", one_line(path, 200)),
            "Add `-r` to copy it with everything in it.",
        ));
    }
    Ok(version_of(&meta))
}

/// Remembers since when a copy moves.
struct Meter {
    begun: Instant,
    from: std::cell::Cell<Option<u64>>,
}

impl Meter {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            from: std::cell::Cell::new(None),
        }
    }

    fn progress(&self, transfer: &Transfer, columns: usize) -> String {
        match (transfer.state, transfer.size_bytes) {
            (TransferState::Waiting, _) => "waiting to go on".into(),
            (TransferState::Storing, _) => "checking and storing the copy".into(),
            (_, Some(size)) => {
                let from = self.from.get().unwrap_or(transfer.done_bytes);
                self.from.set(Some(from));
                let took = self.begun.elapsed();
                let done = transfer.done_bytes;
                line(Progress { done, size, from, took }, columns)
            }
            (_, None) => "opening the file".into(),
        }
    }
}

// ---------------------------------------------------------------- between machines and the workspace

async fn between(context: &Context, params: TransferCreateParams) -> Outcome {
    let id = params.id.clone();
    let (source, destination) = (
        Endpoint::Remote(params.source.clone()),
        Endpoint::Remote(params.destination.clone()),
    );
    let client = context.connect().await?;
    let meter = Meter::new();
    let created = client.call::<TransferCreate>(params).await?.transfer;
    let shown = is_shown(context);
    let ended = tokio::select! {
        ended = follow(context, client, created, shown.then_some(&meter)) => ended,
        () = stop_signal() => {
            let otherwise = Unconfirmed::GoesOn { destination: destination.shown().to_owned() };
            Err(stopped(cancel(context, id), otherwise).await)
        }
    };
    if shown {
        show(context.out, "");
    }
    report(context, &ended?, &source, &destination, meter.begun.elapsed())
}

async fn follow(
    context: &Context,
    client: Client,
    mut seen: Transfer,
    meter: Option<&Meter>,
) -> Result<Transfer, Failure> {
    let id = seen.id.clone();
    let mut client = Some(client);
    let mut poll = Poll::new();
    while seen.ended_at.is_none() {
        if let Some(meter) = meter {
            show(context.out, &meter.progress(&seen, context.out.size().0));
        }
        tokio::time::sleep(poll.wait()).await;
        let got = match client.take() {
            Some(open) => get(&open, &id).await.map(|transfer| (open, transfer)),
            None => match context.connect().await {
                Ok(open) => get(&open, &id).await.map(|transfer| (open, transfer)),
                Err(failure) => Err(failure),
            },
        };
        match got {
            Ok((open, transfer)) => {
                poll.answered();
                client = Some(open);
                seen = transfer;
            }
            // The transfer does not need this connection.
            Err(failure) if poll.goes_on_after(&failure) => {}
            Err(failure) => return Err(failure),
        }
    }
    if let Some(client) = client {
        client.close().await;
    }
    Ok(seen)
}

async fn get(client: &Client, id: &TransferKey) -> Result<Transfer, Failure> {
    let params = TransferGetParams { id: id.clone() };
    Ok(client.call::<TransferGet>(params).await?.transfer)
}

/// The person does not want it any more. False: it may go on.
async fn cancel(context: &Context, id: TransferKey) -> bool {
    let Ok(client) = context.connect().await else {
        return false;
    };
    let answer = client.call::<TransferCancel>(TransferCancelParams { id }).await;
    client.close().await;
    is_cancelled(&answer)
}

fn report(
    context: &Context,
    transfer: &Transfer,
    source: &Endpoint,
    destination: &Endpoint,
    took: Duration,
) -> Outcome {
    if let Some(failure) = failure_of(transfer) {
        return Err(failure);
    }
    let size = transfer.size_bytes.unwrap_or(0);
    let words = format!(
        "{} copied to {}, {} in {}",
        one_line(source.shown(), 200),
        one_line(destination.shown(), 200),
        bytes(size),
        crate::units::duration(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
    );
    context.out.done(transfer, &words);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf13_a_name_before_a_colon_is_a_machine_and_every_other_path_is_one_of_this_machine() {
        for text in ["laptop:a/b.pdf", "gsv:b.pdf", "laptop:", "lap.top:/etc/x:y"] {
            assert_eq!(endpoint(text).unwrap(), Endpoint::Remote(text.into()));
        }
        for text in ["b.pdf", "./laptop:b", "/abs/a:b", "../x", ":x"] {
            let Endpoint::Local(path) = endpoint(text).unwrap() else {
                panic!("{text} is a path of this machine");
            };
            assert!(
                path.starts_with('/') && path.ends_with(text.trim_start_matches(['.', '/'])),
                "{path}"
            );
        }
    }

    #[test]
    fn p6_5_a_folder_takes_the_name_of_the_source() {
        let whole_of = |recursive: bool, source: &str, destination: &str| {
            let args = Copy {
                source: source.into(),
                destination: destination.into(),
                agent: None,
                force: false,
                recursive,
            };
            let (from, to) = (endpoint(source).unwrap(), endpoint(destination).unwrap());
            whole_destination(&args, &from, to).map(|end| end.shown().to_owned())
        };
        let whole = |source: &str, destination: &str| whole_of(false, source, destination);
        assert_eq!(whole("laptop:a/b.pdf", "gsv:in/").unwrap(), "gsv:in/b.pdf");
        assert_eq!(whole("gsv:b.pdf", "laptop:").unwrap(), "laptop:b.pdf");
        assert_eq!(whole("gsv:b.pdf", "laptop:c.pdf").unwrap(), "laptop:c.pdf");
        assert_eq!(whole("./c/b.pdf", "gsv:in/").unwrap(), "gsv:in/b.pdf");
        assert_eq!(whole("gsv:b.pdf", "/").unwrap(), "/b.pdf");
        assert_eq!(whole("gsv:in/", "laptop:out/").unwrap_err().exit, Exit::Usage);
        // A whole folder goes to the same place, whether it is there already or not.
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        assert_eq!(whole("gsv:many", &folder).unwrap(), format!("{folder}/many"));
        assert_eq!(whole_of(true, "gsv:many", &folder).unwrap(), folder);
        assert_eq!(
            whole_of(true, "gsv:many", &format!("{folder}/")).unwrap(),
            format!("{folder}/many")
        );
        assert_eq!(
            whole_of(true, "gsv:many", &format!("{folder}/.")).unwrap(),
            format!("{folder}/many")
        );
    }

    #[test]
    fn p18_ids_have_128_random_bits() {
        let (one, other) = (new_id().unwrap(), new_id().unwrap());
        assert_eq!(one.as_str().len(), 32);
        assert_ne!(one, other);
    }
}
