//! `gsv deploy export`: reads the pages of a stopped gateway into a private folder, then writes them into one encrypted file.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gsv_protocol::methods::{MoveDescribe, MoveRead};
use gsv_protocol::types::{MoveHome, MoveReadParams, MoveReadResult};
use serde_json::{Value, json};
use tokio::task::yield_now;

use super::super::backup_input::{absolute, interruptible, new_passphrase};
use super::super::context::Context;
use super::super::stop_state::naming_copy;
use super::ask;
use crate::args::DeployExport;
use crate::backup::archive::{self, digest};
use crate::backup::manifest::{Entry, Manifest, page_path};
use crate::backup::scratch::Scratch;
use crate::client::Client;
use crate::exit::{Failure, OrFail, Outcome};
use crate::new_file;
use crate::output::Output;
use crate::paths::shell;
use crate::stop_signal::stop_signal;
use crate::units::{bytes, counted, date, now_ms};

const DISK: &str = "Check the folder of temporary files, or choose another one with TMPDIR.";

pub async fn run(context: &Context, args: DeployExport) -> Outcome {
    let file = place_of(&absolute(&args.to)?);
    new_file::check(&file, args.force)?;
    let passphrase = new_passphrase(context.out, &args.passphrase)?;
    let client = context.connect().await?;
    let home = ask::<MoveDescribe>(context.out, &client, gsv_protocol::NoParams {})
        .await?
        .home;
    let scratch = Scratch::make()?;
    let files = tokio::select! {
        biased;
        () = stop_signal() => Err(perhaps_after_last_page(Failure::interrupted())),
        files = read_all(context.out, &client, &scratch) => files,
    }?;
    let size = files.iter().map(|entry| entry.size).sum();
    client.close().await;
    let pages = files.len();
    let manifest = Manifest::of_home(home.clone(), env!("CARGO_PKG_VERSION"), host(), files);
    let (to, force) = (file.clone(), args.force);
    let written = interruptible(move || write(&to, &passphrase, &manifest, &scratch, force))
        .await
        .map_err(after_last_page)?;
    let stays = naming_copy(STAYS_STOPPED, &context.account()?.url);
    context.out.show(document(&file, &home, pages, size, written), |_| {
        context.out.line(&file.display().to_string());
    });
    report(context.out, &file, pages, size, written, &stays);
    Ok(())
}

/// All pages, each in a file.
async fn read_all(out: Output, client: &Client, scratch: &Scratch) -> Outcome<Vec<Entry>> {
    let mut files = Vec::new();
    let mut cursor = None;
    loop {
        let page = read(out, client, cursor).await.map_err(|failure| {
            if failure.is_answer() {
                failure
            } else {
                perhaps_after_last_page(failure)
            }
        })?;
        let stored = store(scratch, files.len() + 1, &page.text);
        let entry = if page.next.is_some() {
            stored?
        } else {
            stored.map_err(after_last_page)?
        };
        files.push(entry);
        // A signal that came meanwhile ends the command here.
        yield_now().await;
        cursor = page.next;
        if cursor.is_none() {
            return Ok(files);
        }
    }
}

/// The gateway counts as exported since its last page was read (rule MV14), and there is no file.
fn after_last_page(failure: Failure) -> Failure {
    naming(
        failure,
        "The gateway is noted as exported. Export it again while it is stopped, or go on with it: `gsv resume --exported`.",
    )
}

/// As `after_last_page`, when the last page may have been asked for and its answer did not arrive.
fn perhaps_after_last_page(failure: Failure) -> Failure {
    naming(
        failure,
        "The gateway is stopped, and may be noted as exported. Export it again, or go on with it: `gsv resume`, and if that is refused, `gsv resume --exported`.",
    )
}

fn naming(failure: Failure, way_back: &str) -> Failure {
    Failure {
        next: format!("{} {way_back}", failure.next).trim_start().to_owned(),
        ..failure
    }
}

/// A new file in a folder has the date in its name.
fn place_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join(format!("gsv-home-{}.gsv", date(now_ms())))
    } else {
        path.to_owned()
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// All parts of the page at a cursor.
async fn read(out: Output, client: &Client, cursor: Option<String>) -> Outcome<MoveReadResult> {
    let params = |part| MoveReadParams {
        cursor: cursor.clone(),
        part,
    };
    let mut page = ask::<MoveRead>(out, client, params(None)).await?;
    for part in 1..page.parts {
        let more = ask::<MoveRead>(out, client, params(Some(part))).await?;
        if more.parts != page.parts || more.next != page.next {
            return Err(Failure::later(
                "A page of the home has changed while it was read.",
                "Run the export again.",
            ));
        }
        page.text.push_str(&more.text);
    }
    Ok(page)
}

fn store(scratch: &Scratch, number: usize, text: &str) -> Outcome<Entry> {
    let name = page_path(number);
    let path = scratch.path(&name);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    made.and_then(|mut file| file.write_all(text.as_bytes()))
        .or_fail("write a temporary file", DISK)?;
    let (size, sha256) = digest(&path).or_fail("read a temporary file", DISK)?;
    Ok(Entry {
        path: name,
        size,
        sha256,
        modified_ns: 0,
        executable: false,
    })
}

fn write(file: &Path, passphrase: &str, manifest: &Manifest, scratch: &Scratch, force: bool) -> Outcome<u64> {
    let draft = new_file::draft(file)?;
    let draft = archive::write(draft, passphrase, manifest, scratch.folder());
    crate::backup::go_on()?;
    let draft = draft.or_fail(new_file::doing(file), new_file::NEXT)?;
    let size = draft.get_ref().as_file().metadata().map_or(0, |meta| meta.len());
    new_file::finish(draft, file, force)?;
    Ok(size)
}

const STAYS_STOPPED: &str = "This gateway stays stopped. Keep it so once the home is imported elsewhere: else two gateways answer the same people and run the same jobs. If it is imported nowhere: `gsv resume --exported`.";

fn document(file: &Path, home: &MoveHome, pages: usize, size: u64, written: u64) -> Value {
    json!({
        "file": file, "bytes": written, "contentBytes": size, "pages": pages, "moveId": home.move_id, "madeAt": home.made_at,
        "secrets": home.secrets, "hooks": home.hooks, "machines": home.machines, "channels": home.channels,
    })
}

fn report(out: Output, file: &Path, pages: usize, size: u64, written: u64, stays: &str) {
    out.note(&format!(
        "The home is exported: {} in {}, {} encrypted. Its secrets are not in the file.",
        bytes(size),
        counted(pages as u64, "page", "pages"),
        bytes(written)
    ));
    out.note(stays);
    out.aside(&format!(
        "Import it into the other gateway with its address, and its admin token in GSV_TOKEN: `gsv --url URL deploy import {}`",
        shell(file)
    ));
}
