//! `gsv cp`: asks the gateway for a transfer and follows it. The machines and the gateway do the work, and go on without this program.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use gsv_protocol::methods::{TransferCancel, TransferCreate, TransferGet};
use gsv_protocol::types::{
    Transfer, TransferCancelParams, TransferCreateParams, TransferGetParams, TransferKey, TransferState,
};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::context::Context;
use crate::args::Copy;
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::{Exit, Failure, Outcome};
use crate::units::bytes;

/// Between two looks: short at first, because most files are small.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_millis(500);
/// A gateway that is started again in this time is waited for.
const GATEWAY_BACK: Duration = Duration::from_secs(120);

pub async fn run(context: &Context, args: Copy) -> Outcome {
    let id = new_id()?;
    let destination = whole_destination(&args.source, args.destination)?;
    let client = context.connect().await?;
    let params = TransferCreateParams {
        id: id.clone(),
        source: args.source,
        destination,
        agent_id: args.agent,
        force: args.force.then_some(true),
    };
    let begun = Instant::now();
    let created = client.call::<TransferCreate>(params).await?.transfer;
    let is_shown = !context.out.json && std::io::stderr().is_terminal();
    let ended = tokio::select! {
        ended = follow(context, client, created, is_shown) => ended,
        _ = tokio::signal::ctrl_c() => Err(cancel(context, id).await),
    };
    if is_shown {
        // Removes the line of the progress.
        context.out.prompt("\r\u{1b}[K");
    }
    finished(context, &ended?, begun.elapsed())
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

/// A folder, which ends with `/`, takes the name of the source.
fn whole_destination(source: &str, destination: String) -> Result<String, Failure> {
    for end in [source, &destination] {
        if !end.contains(':') {
            let message = format!("{} names neither a machine nor the workspace.", one_line(end, 200));
            let next = "Write NODE:PATH or gsv:PATH. `gsv nodes list` shows the machines; for the workspace and a text file of this machine use `gsv workspace put` and `gsv workspace get`.";
            return Err(Failure::usage(message, next));
        }
    }
    if !destination.ends_with(['/', ':']) {
        return Ok(destination);
    }
    match source.rsplit(['/', ':']).next() {
        Some(name) if !name.is_empty() => Ok(destination + name),
        _ => Err(Failure::usage(
            format!("{} names no file.", one_line(source, 200)),
            "Name one file.",
        )),
    }
}

async fn follow(context: &Context, client: Client, mut seen: Transfer, is_shown: bool) -> Result<Transfer, Failure> {
    let id = seen.id.clone();
    let mut client = Some(client);
    let mut look = FIRST_LOOK;
    let mut heard = Instant::now();
    while seen.ended_at.is_none() {
        if is_shown {
            context.out.prompt(&format!("\r\u{1b}[K{}", progress(&seen)));
        }
        tokio::time::sleep(look).await;
        look = (look * 2).min(LAST_LOOK);
        let got = match client.take() {
            Some(open) => get(&open, &id).await.map(|transfer| (open, transfer)),
            None => match context.connect().await {
                Ok(open) => get(&open, &id).await.map(|transfer| (open, transfer)),
                Err(failure) => Err(failure),
            },
        };
        match got {
            Ok((open, transfer)) => {
                heard = Instant::now();
                client = Some(open);
                seen = transfer;
            }
            // The transfer does not need this connection.
            Err(failure) if failure.exit == Exit::TryLater && heard.elapsed() < GATEWAY_BACK => {}
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

/// The person does not want it any more.
async fn cancel(context: &Context, id: TransferKey) -> Failure {
    let told = async {
        let client = context.connect().await?;
        client.call::<TransferCancel>(TransferCancelParams { id }).await?;
        client.close().await;
        Ok::<(), Failure>(())
    };
    match told.await {
        Ok(()) => Failure::interrupted(),
        Err(failure) => failure,
    }
}

fn progress(transfer: &Transfer) -> String {
    match (transfer.state, transfer.size_bytes) {
        (TransferState::Waiting, _) => "waiting for the machine".into(),
        (TransferState::Storing, _) => "checking and storing the copy".into(),
        (_, Some(size)) => {
            let percent = (u128::from(transfer.done_bytes) * 100)
                .checked_div(u128::from(size))
                .unwrap_or(100);
            format!("{percent:>3} %  {} of {}", bytes(transfer.done_bytes), bytes(size))
        }
        (_, None) => "opening the file".into(),
    }
}

fn finished(context: &Context, transfer: &Transfer, took: Duration) -> Outcome {
    if let Some(reason) = &transfer.reason {
        return Err(Failure::from_reason(
            reason,
            transfer.problem.as_deref().unwrap_or(""),
            false,
        ));
    }
    let size = transfer.size_bytes.unwrap_or(0);
    let words = format!(
        "{} copied to {}, {} in {}",
        one_line(&transfer.source, 200),
        one_line(&transfer.destination, 200),
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
    fn p6_5_a_folder_takes_the_name_of_the_source() {
        let whole = |source: &str, destination: &str| whole_destination(source, destination.into());
        assert_eq!(whole("laptop:a/b.pdf", "gsv:in/").unwrap(), "gsv:in/b.pdf");
        assert_eq!(whole("gsv:b.pdf", "laptop:").unwrap(), "laptop:b.pdf");
        assert_eq!(whole("gsv:b.pdf", "laptop:c.pdf").unwrap(), "laptop:c.pdf");
        for (source, destination) in [
            ("gsv:in/", "laptop:out/"),
            ("b.pdf", "gsv:b.pdf"),
            ("gsv:b.pdf", "b.pdf"),
        ] {
            assert_eq!(whole(source, destination).unwrap_err().exit, Exit::Usage);
        }
    }

    #[test]
    fn p18_ids_have_128_random_bits() {
        let (one, other) = (new_id().unwrap(), new_id().unwrap());
        assert_eq!(one.as_str().len(), 32);
        assert_ne!(one, other);
    }
}
