//! Attached files: checked before anything is sent, uploaded over HTTP, then named in the message. The gateway decides what
//! type a file has.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gsv_link::{LinkError, Upload};
use gsv_protocol::limits;
use gsv_protocol::types::{Attachment, MediaUploaded};
use tokio::time::{MissedTickBehavior, interval, sleep};
use uuid::Uuid;

use crate::client::{Account, link_failure};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::units::bytes;

/// An upload that takes longer shows its progress.
const SHOW_EVERY: Duration = Duration::from_secs(2);
/// Enough for 25 MiB over a slow connection.
const WITHIN: Duration = Duration::from_secs(600);
/// An upload is safe to repeat: its id makes it one file.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// A file that can be attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub path: PathBuf,
    pub name: String,
    pub size: u64,
    pub mime: &'static str,
}

/// Checks the files: at most `LIMITS.attachments`, each readable, not empty and not too large.
pub fn choose(paths: &[PathBuf]) -> Outcome<Vec<Chosen>> {
    let most = usize::try_from(limits::ATTACHMENTS).unwrap_or(usize::MAX);
    if paths.len() > most {
        return Err(Failure::usage(
            format!("{} files are too many; a message takes at most {most}.", paths.len()),
            "Send the others with another message.",
        ));
    }
    paths.iter().map(|path| check(path)).collect()
}

fn check(path: &Path) -> Outcome<Chosen> {
    let shown = path.display();
    let unreadable = |error: &std::io::Error| {
        Failure::usage(
            format!("The file {shown} cannot be read: {error}."),
            "Check its name and permissions. Nothing was sent.",
        )
    };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(Failure::usage(
            format!("{shown} is not a file."),
            "Name a file. Pack a folder first (tar, zip).",
        ));
    }
    let size = metadata.len();
    if size == 0 {
        return Err(Failure::usage(
            format!("The file {shown} is empty."),
            "Attach a file that is not empty. Nothing was sent.",
        ));
    }
    if size > limits::MEDIA_BYTES {
        return Err(Failure::usage(
            format!(
                "The file {shown} has {}; the limit is {}.",
                bytes(size),
                bytes(limits::MEDIA_BYTES)
            ),
            "Make it smaller, or keep it on a machine that runs `gsv node` and tell the agent its path.",
        ));
    }
    File::open(path).map_err(|error| unreadable(&error))?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let extension = path
        .extension()
        .map(|end| end.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    Ok(Chosen {
        path: path.to_owned(),
        name: name.chars().take(128).collect(),
        size,
        mime: kind(&extension),
    })
}

/// The MIME type by the extension. Images and PDFs need none here: the gateway recognises them by their first bytes.
fn kind(extension: &str) -> &'static str {
    match extension {
        "svg" => "image/svg+xml",
        "ogg" | "oga" => "audio/ogg",
        "opus" => "audio/opus",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "wav" => "audio/wav",
        "flac" => "audio/flac",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "mov" => "video/quicktime",
        "doc" => "application/msword",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "csv" => "text/csv",
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "txt" | "log" => "text/plain",
        _ => "application/octet-stream",
    }
}

/// Uploads the files one by one. Nothing was sent when it is dropped before its end. They stay until the session is reset, so a message that fails can be sent again.
pub async fn upload_all(account: &Account, session: &str, files: &[Chosen], out: Output) -> Outcome<Vec<Attachment>> {
    let mut attachments = Vec::with_capacity(files.len());
    for file in files {
        let stored = upload(account, session, file, out).await?;
        attachments.push(Attachment {
            mime_type: stored.mime_type,
            filename: Some(file.name.clone()),
            data: None,
            r2_key: Some(stored.r2_key),
        });
    }
    Ok(attachments)
}

async fn upload(account: &Account, session: &str, file: &Chosen, out: Output) -> Outcome<MediaUploaded> {
    let id = Uuid::new_v4().to_string();
    let mut tries = 1;
    loop {
        match attempt(account, session, file, &id, out).await? {
            Ok(stored) => return Ok(stored),
            Err(error) if tries < TRIES && error.is_retryable() => {
                sleep(PAUSE * tries).await;
                tries += 1;
            }
            Err(error) => return Err(failure(file, &error)),
        }
    }
}

async fn attempt(
    account: &Account,
    session: &str,
    file: &Chosen,
    id: &str,
    out: Output,
) -> Outcome<Result<MediaUploaded, LinkError>> {
    let source = File::open(&file.path).map_err(|error| {
        Failure::failed(
            format!("The file {} can no longer be read: {error}.", file.path.display()),
            "Check its permissions. Nothing was sent.",
        )
    })?;
    let sent = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&sent);
    let query = [("sessionKey", session), ("id", id), ("filename", file.name.as_str())];
    let sending = Upload {
        url: &account.url,
        token: Some(&account.token),
        query: &query,
        content_type: file.mime,
        size: file.size,
        source: Box::new(source),
        progress: Box::new(move |count| told.store(count, Ordering::Relaxed)),
        within: WITHIN,
    }
    .send();
    let mut sending = std::pin::pin!(sending);
    let mut show = interval(SHOW_EVERY);
    show.set_missed_tick_behavior(MissedTickBehavior::Delay);
    show.tick().await;
    loop {
        tokio::select! {
            result = &mut sending => return Ok(result),
            _ = show.tick() => {
                let count = sent.load(Ordering::Relaxed);
                out.note(&format!("uploading {}: {} of {}", file.name, bytes(count), bytes(file.size)));
            }
        }
    }
}

fn failure(file: &Chosen, error: &LinkError) -> Failure {
    let why = link_failure(error);
    if matches!(error, LinkError::BadAnswer { .. }) {
        return Failure::new(
            Exit::Failed,
            format!(
                "The gateway does not accept files: {}.",
                why.message.trim_end_matches('.')
            ),
            "Update the gateway, then try again.",
        );
    }
    Failure {
        message: format!("The file {} was not uploaded: {}", file.name, why.message),
        ..why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p5_6_files_are_checked_before_anything_is_sent() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("a.md"), b"\x89PNG\r\n\x1a\nrest").unwrap();
        std::fs::write(path("empty"), b"").unwrap();
        let big = File::create(path("big")).unwrap();
        big.set_len(limits::MEDIA_BYTES + 1).unwrap();
        let chosen = choose(&[path("a.md")]).unwrap();
        assert_eq!(
            (chosen[0].name.as_str(), chosen[0].mime, chosen[0].size),
            ("a.md", "text/markdown", 12)
        );
        for (paths, says) in [
            (vec![path("missing")], "cannot be read"),
            (vec![home.path().to_owned()], "is not a file"),
            (vec![path("empty")], "is empty"),
            (vec![path("big")], "the limit is 25"),
            (vec![path("a.md"); 17], "at most 16"),
        ] {
            let failure = choose(&paths).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage, "{says}");
            assert!(failure.message.contains(says), "{}", failure.message);
        }
    }
}
