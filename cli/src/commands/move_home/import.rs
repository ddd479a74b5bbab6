//! `gsv deploy import`: checks the whole file, then sends the pages that the gateway does not have yet, and ends the import.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use gsv_protocol::limits;
use gsv_protocol::methods::{CronStatus, MoveBegin, MoveCancel, MoveFinish, MoveWrite};
use gsv_protocol::types::{
    MoveBeginParams, MoveBeginResult, MoveFinishParams, MoveFinishResult, MoveHome, MoveWriteParams,
};
use serde_json::json;
use tokio::time::sleep;

use super::super::backup_input::{absolute, interruptible, passphrase};
use super::super::context::Context;
use super::ask;
use crate::args::DeployImport;
use crate::backup::archive::{Archive, damaged, file_of};
use crate::backup::manifest::Manifest;
use crate::backup::scratch::Scratch;
use crate::clean::clean;
use crate::client::Client;
use crate::embedded::bootstrap::sha256_hex;
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;
use crate::paths::shell;
use crate::text_files::json_bytes;
use crate::units::{bytes, counted};

const DISK: &str = "Check the folder of temporary files, or choose another one with TMPDIR.";
/// Bytes of the JSON around a part.
const ENVELOPE: u64 = 16 * 1024;
/// The gateway begins again with what was imported, and says then that all is awake.
const AWAKE_TRIES: u32 = 120;
const AWAKE_PAUSE: Duration = Duration::from_millis(500);
const SHOW_PAGES: u32 = 50;

pub async fn run(context: &Context, args: DeployImport) -> Outcome {
    let Some(file) = args.file.as_deref() else {
        return cancel(context).await;
    };
    let file = absolute(file)?;
    file_of(&file)?;
    let passphrase = passphrase(context.out, &args.passphrase)?;
    let path = file.clone();
    let (manifest, scratch) = interruptible(move || unpack(&path, &passphrase)).await?;
    let home = manifest.moved.clone().ok_or_else(|| no_export(&file))?;
    let client = context.connect().await?;
    let begun = begin(context.out, &client, &home).await?;
    if begun.is_done {
        client.close().await;
        let removed = begun.removed_secrets.unwrap_or_default();
        context.out.done(
            &json!({ "isDone": true, "moveId": home.move_id, "removedSecrets": removed }),
            "This export was imported before. Nothing was changed.",
        );
        note_removed(context.out, &removed);
        return Ok(());
    }
    let pages = u32::try_from(manifest.files.len()).unwrap_or(u32::MAX);
    let first = u32::try_from(begun.pages).unwrap_or(u32::MAX).saturating_add(1);
    if first > 1 && first <= pages {
        context
            .out
            .note(&format!("The import goes on with page {first} of {pages}."));
    }
    for page in first..=pages {
        if page % SHOW_PAGES == 0 {
            context.out.aside(&format!("page {page} of {pages}"));
        }
        let entry = &manifest.files[page as usize - 1];
        let text = fs::read_to_string(scratch.path(&entry.path)).or_fail("read a temporary file", DISK)?;
        send(context.out, &client, &home, page, &text).await?;
    }
    let totals = ask::<MoveFinish>(
        context.out,
        &client,
        MoveFinishParams {
            move_id: home.move_id.clone(),
            pages,
            sha256: chained(&manifest),
        },
    )
    .await?;
    client.close().await;
    awake(context, &home).await?;
    let scheduled = context.ask::<CronStatus>(gsv_protocol::NoParams {}).await;
    report(context.out, &home, &totals, scheduled.ok().map(|status| status.jobs));
    Ok(())
}

async fn cancel(context: &Context) -> Outcome {
    let client = context.connect().await?;
    let done = ask::<MoveCancel>(context.out, &client, gsv_protocol::NoParams {}).await?;
    client.close().await;
    let words = if done.was_begun {
        "The import was given up, and what it has written is removed."
    } else {
        "No import was begun, so nothing was changed."
    };
    context.out.done(&done, words);
    Ok(())
}

/// The pages as files of a private folder. All of the file is checked.
fn unpack(file: &Path, passphrase: &str) -> Outcome<(Manifest, Scratch)> {
    let archive = Archive::open(file, passphrase)?;
    if archive.manifest.moved.is_none() {
        return Err(no_export(file));
    }
    let scratch = Scratch::make()?;
    scratch.check_space("the export", archive.manifest.bytes())?;
    let manifest = archive.each(
        |entry| {
            let made = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(scratch.path(&entry.path));
            made.or_fail("make a temporary file", DISK)
        },
        |entry, _: File| {
            // A record that is cut would be found by the gateway only.
            match fs::read_to_string(scratch.path(&entry.path)) {
                Ok(_) => Ok(()),
                Err(_) => Err(damaged(file, "a page of it is no text")),
            }
        },
    )?;
    Ok((manifest, scratch))
}

fn no_export(file: &Path) -> Failure {
    Failure::usage(
        format!(
            "{} is a backup of a state folder, and not an export of a home.",
            file.display()
        ),
        format!(
            "Make an export with `gsv deploy export FILE`, or restore the backup on this machine: `gsv restore {}`.",
            shell(file)
        ),
    )
}

async fn begin(out: Output, client: &Client, home: &MoveHome) -> Outcome<MoveBeginResult> {
    ask::<MoveBegin>(out, client, MoveBeginParams { home: home.clone() }).await
}

async fn send(out: Output, client: &Client, home: &MoveHome, page: u32, text: &str) -> Outcome {
    let parts = parts(text);
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    for (part, text) in (0..).zip(parts) {
        let params = MoveWriteParams {
            move_id: home.move_id.clone(),
            page,
            part,
            parts: count,
            text: text.to_owned(),
        };
        ask::<MoveWrite>(out, client, params).await?;
    }
    Ok(())
}

/// The text in parts that fit a frame each.
fn parts(text: &str) -> Vec<&str> {
    let most = limits::FRAME_BYTES - ENVELOPE;
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() || parts.is_empty() {
        let mut length = rest.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        loop {
            length = (0..=length).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
            if json_bytes(&rest[..length]) <= most {
                break;
            }
            length = length * 3 / 4;
        }
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after;
    }
    parts
}

/// As the gateway computes it: each digest is of the one before and of the page's own, as texts.
fn chained(manifest: &Manifest) -> String {
    let pages = manifest.files.iter();
    pages.fold(String::new(), |sum, page| {
        sha256_hex(format!("{sum}{}", page.sha256).as_bytes())
    })
}

/// Waits until the gateway has begun again, and what waited was woken.
async fn awake(context: &Context, home: &MoveHome) -> Outcome {
    let mut last = Failure::later("The gateway has not begun again yet.", "Run the same import once more.");
    for _ in 0..AWAKE_TRIES {
        sleep(AWAKE_PAUSE).await;
        let asked = async {
            let client = context.connect().await?;
            let begun = begin(context.out, &client, home).await?;
            client.close().await;
            Ok(begun.is_done)
        };
        match asked.await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(failure) => last = failure,
        }
    }
    Err(last)
}

/// `scheduled`: the jobs of `gsv cron`, which the gateway has with its own tables.
fn report(out: Output, home: &MoveHome, totals: &MoveFinishResult, scheduled: Option<u64>) {
    let document = json!({
        "isDone": true, "moveId": home.move_id, "sessions": totals.sessions, "objects": totals.objects, "bytes": totals.bytes,
        "jobs": totals.jobs, "rows": totals.rows, "secrets": home.secrets, "hooks": home.hooks, "machines": home.machines,
        "channels": home.channels, "removedSecrets": totals.removed_secrets.as_deref().unwrap_or_default(),
        "scheduledJobs": scheduled,
    });
    out.done(&document, &live_text(totals, scheduled));
    for (names, what, next) in [
        (
            &home.secrets,
            "Secrets that you must enter again",
            "`gsv config set PATH -`",
        ),
        (
            &home.hooks,
            "Hooks whose secrets are gone, so that you must make them again",
            "`gsv hook remove NAME`, `gsv hook add NAME`",
        ),
        (&home.machines, "Machines that must join again", "`gsv invite node`"),
        (
            &home.channels,
            "Accounts of channels that must log in again",
            "`gsv channel`",
        ),
    ] {
        if !names.is_empty() {
            // The file may be of another person.
            out.note(&format!("{what} ({next}): {}", clean(&names.join(", "))));
        }
    }
    note_removed(out, totals.removed_secrets.as_deref().unwrap_or_default());
    out.note(
        "The gateway that it was exported from stays stopped. Do not resume it: two gateways would answer the same people and run the same jobs.",
    );
}

/// Scheduled jobs and submitted ones are different things, so each has its own count.
fn live_text(totals: &MoveFinishResult, scheduled: Option<u64>) -> String {
    let scheduled = scheduled.map_or_else(String::new, |count| {
        format!("{}, ", counted(count, "scheduled job", "scheduled jobs"))
    });
    format!(
        "The home is imported, and live: {}, {} with {}, {scheduled}{}.",
        counted(totals.sessions, "conversation", "conversations"),
        counted(totals.objects, "file", "files"),
        bytes(totals.bytes),
        counted(totals.jobs, "submitted job", "submitted jobs")
    )
}

/// Also when the import had ended before: its end may have been interrupted before this was said.
fn note_removed(out: Output, removed: &[String]) {
    if !removed.is_empty() {
        out.note(&removed_text(removed));
    }
}

fn removed_text(removed: &[String]) -> String {
    format!(
        "Secrets of this gateway that were removed, because the imported settings send them to another address: {}. Look at the addresses (`gsv config get`). If they are yours, enter the secrets again (`gsv config set PATH -`).",
        clean(&removed.join(", "))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mv17_what_was_removed_is_named_with_what_to_do() {
        let text = removed_text(&["apiKeys.openai".to_owned(), "apiKeys.a\u{1b}[2Jb".to_owned()]);
        for part in [
            "apiKeys.openai, apiKeys.ab.",
            "`gsv config get`",
            "`gsv config set PATH -`",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn mv11_scheduled_jobs_are_counted_apart() {
        let totals = MoveFinishResult {
            objects: 14,
            bytes: 10,
            sessions: 1,
            jobs: 0,
            rows: 3,
            removed_secrets: None,
        };
        let text = live_text(&totals, Some(1));
        assert!(
            text.contains("1 conversation, 14 files with 10 B, 1 scheduled job, 0 submitted jobs."),
            "{text}"
        );
        assert!(!live_text(&totals, None).contains("scheduled"));
    }

    #[test]
    fn mv5_a_part_of_a_page_fits_a_frame_and_no_character_is_cut() {
        for piece in ["a", "\"", "\u{1}", "é", "😀", "a\"\u{1}😀"] {
            let text = piece.repeat(700_000);
            let parts = parts(&text);
            assert!(parts.len() > 1 || text.len() < 1_000_000, "{piece:?}");
            assert!(parts.iter().all(|part| json_bytes(part) + 1024 < limits::FRAME_BYTES));
            assert_eq!(parts.concat(), text);
        }
        assert_eq!(parts(""), [""]);
    }
}
