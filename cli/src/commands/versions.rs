//! `gsv workspace log|diff|restore`: what a file was before. Versions are named by their number in the log (1 is the last
//! before now), by their name or its beginning; `now` is the file as it is.

use gsv_protocol::errors;
use gsv_protocol::methods::{WorkspaceLog, WorkspaceRestore};
use gsv_protocol::types::{AgentId, WorkspaceLogParams, WorkspaceLogResult, WorkspaceRestoreParams, WorkspaceVersion};
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use super::Context;
use super::workspace::read_whole;
use crate::clean::{clean, one_line};
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::table::Table;
use crate::units::{ago, bytes, now_ms, time};

const NOW: &str = "now";
/// `ifMatch` of a file that was deleted.
const ABSENT: &str = "absent";
/// Lines of a diff that did not change, around those that did.
const CONTEXT_LINES: usize = 3;

async fn ask_log(client: &Client, path: &str, agent_id: Option<AgentId>) -> Outcome<WorkspaceLogResult> {
    let path = path.to_owned();
    client.call::<WorkspaceLog>(WorkspaceLogParams { path, agent_id }).await
}

pub async fn log(context: &Context, path: String, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let log = ask_log(&client, &path, agent_id).await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&log);
        return Ok(());
    }
    let now = now_ms();
    let mut table = Table::new(["#", "WRITTEN", "SIZE", "BY", "VERSION"]);
    let mut row = |number: String, version: &WorkspaceVersion| {
        table.row(&[
            number,
            format!("{} ({})", time(version.at), ago(version.at, now)),
            bytes(version.size_bytes),
            version.by.clone().unwrap_or_default(),
            version.version.clone(),
        ]);
    };
    if let Some(current) = &log.current {
        row(NOW.to_owned(), current);
    }
    for (index, version) in log.versions.iter().enumerate() {
        row((index + 1).to_string(), version);
    }
    out.table(&table);
    let path = one_line(&log.path, 200);
    if log.current.is_none() {
        out.aside(&format!(
            "{path} is deleted; `gsv workspace restore {path}` brings it back"
        ));
    } else if log.versions.is_empty() {
        out.aside(&format!("{path} was never changed"));
    }
    Ok(())
}

/// What a person named.
#[derive(Debug, PartialEq, Eq)]
enum Named<'a> {
    Now,
    Version(&'a WorkspaceVersion),
}

fn find<'a>(log: &'a WorkspaceLogResult, name: &str) -> Outcome<Named<'a>> {
    let path = one_line(&log.path, 200);
    let see = format!("`gsv workspace log {path}` shows them.");
    if name == NOW {
        return Ok(Named::Now);
    }
    // Names are longer than any number of a version.
    if name.len() <= 3
        && let Ok(number) = name.parse::<usize>()
    {
        return match number.checked_sub(1).and_then(|index| log.versions.get(index)) {
            Some(version) => Ok(Named::Version(version)),
            None if log.versions.is_empty() => Err(Failure::failed(format!("{path} has no earlier version."), "")),
            None => Err(Failure::usage(
                format!(
                    "{path} has {} earlier versions, so there is no {number}.",
                    log.versions.len()
                ),
                see,
            )),
        };
    }
    if log.current.as_ref().is_some_and(|current| current.version == name) {
        return Ok(Named::Now);
    }
    let mut found = log.versions.iter().filter(|version| version.version.starts_with(name));
    match (found.next(), found.next()) {
        (Some(version), None) => Ok(Named::Version(version)),
        (None, _) => Err(Failure::usage(
            format!("{path} has no version `{}`.", one_line(name, 80)),
            see,
        )),
        (Some(_), Some(_)) => Err(Failure::usage(
            format!("Several versions of {path} begin with `{}`.", one_line(name, 80)),
            format!("Write more of it; {see}"),
        )),
    }
}

/// A file's text, and what it is called in a diff.
async fn side(
    client: &Client,
    log: &WorkspaceLogResult,
    named: &Named<'_>,
    agent_id: Option<AgentId>,
) -> Outcome<(String, String)> {
    let path = &log.path;
    match named {
        Named::Now if log.current.is_none() => Ok(("/dev/null".to_owned(), String::new())),
        Named::Now => match read_whole(client, path, agent_id, None).await {
            Ok(file) => Ok((format!("{path} (now)"), file.content)),
            Err(failure) if failure.is(&errors::PATH_NOT_FOUND) => Ok(("/dev/null".to_owned(), String::new())),
            Err(failure) => Err(failure),
        },
        Named::Version(version) => {
            let file = read_whole(client, path, agent_id, Some(version.version.clone())).await?;
            Ok((format!("{path} ({})", time(version.at)), file.content))
        }
    }
}

pub async fn diff(
    context: &Context,
    path: String,
    from: Option<String>,
    to: Option<String>,
    agent_id: Option<AgentId>,
) -> Outcome {
    let client = context.connect().await?;
    let log = ask_log(&client, &path, agent_id.clone()).await?;
    let from = find(&log, from.as_deref().unwrap_or("1"))?;
    let to = find(&log, to.as_deref().unwrap_or(NOW))?;
    let (old_name, old) = side(&client, &log, &from, agent_id.clone()).await?;
    let (new_name, new) = side(&client, &log, &to, agent_id).await?;
    client.close().await;
    let out = context.out;
    let text = unified(&old_name, &old, &new_name, &new);
    if out.json {
        let name = |named: &Named<'_>| match named {
            Named::Now => NOW.to_owned(),
            Named::Version(version) => version.version.clone(),
        };
        out.json_document(&json!({"path": log.path, "from": name(&from), "to": name(&to), "diff": text}));
    } else if text.is_empty() {
        out.aside("no difference");
    } else {
        show(out, &text);
    }
    Ok(())
}

/// As `diff -u` has it; empty when nothing differs.
fn unified(old_name: &str, old: &str, new_name: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    if diff.iter_all_changes().all(|change| change.tag() == ChangeTag::Equal) {
        return String::new();
    }
    diff.unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(&one_line(old_name, 400), &one_line(new_name, 400))
        .to_string()
}

fn show(out: Output, text: &str) {
    if !out.colour() {
        out.content(text);
        return;
    }
    let mut header = true;
    for line in text.lines() {
        header = header && !line.starts_with("@@");
        let style = match line.as_bytes().first() {
            _ if header => Some(Style::Bold),
            Some(b'@') => Some(Style::Cyan),
            Some(b'+') => Some(Style::Green),
            Some(b'-') => Some(Style::Red),
            Some(b'\\') => Some(Style::Dim),
            _ => None,
        };
        let line = clean(line);
        out.line(&style.map_or_else(|| line.clone(), |style| out.paint(style, &line)));
    }
}

pub async fn restore(context: &Context, path: String, version: Option<String>, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let log = ask_log(&client, &path, agent_id.clone()).await?;
    let shown = one_line(&log.path, 200);
    let Named::Version(version) = find(&log, version.as_deref().unwrap_or("1"))? else {
        return Err(Failure::usage(
            format!("{shown} is that already."),
            format!("Name an earlier version; `gsv workspace log {shown}` shows them."),
        ));
    };
    // Only over what the log has shown: a change meanwhile is not lost.
    let seen = log.current.as_ref().map_or(ABSENT, |current| current.version.as_str());
    let result = client
        .call::<WorkspaceRestore>(WorkspaceRestoreParams {
            path: log.path.clone(),
            agent_id,
            version: version.version.clone(),
            if_match: Some(seen.to_owned()),
        })
        .await
        .map_err(|failure| {
            if failure.is(&errors::WORKSPACE_CONFLICT) {
                Failure {
                    next: format!("Nothing was restored. Look at `gsv workspace log {shown}` and try again."),
                    ..failure
                }
            } else {
                failure
            }
        })?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(
            &json!({"path": result.path, "size": result.size, "etag": result.etag, "version": version.version}),
        );
        return Ok(());
    }
    let by = version
        .by
        .as_deref()
        .map_or_else(String::new, |by| format!(" by {}", one_line(by, 80)));
    let then = if log.current.is_none() {
        "it was deleted and is back".to_owned()
    } else {
        format!("what it was until now is in `gsv workspace log {shown}`")
    };
    out.aside(&format!(
        "{shown} is again what was written {}{by}, {}; {then}",
        time(version.at),
        bytes(result.size)
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(name: &str) -> WorkspaceVersion {
        WorkspaceVersion {
            version: name.to_owned(),
            at: 1_708_300_000_000,
            size_bytes: 1,
            by: None,
            replaced_at: None,
        }
    }
    fn log() -> WorkspaceLogResult {
        WorkspaceLogResult {
            path: "a.md".to_owned(),
            current: Some(version("1708300000009-ff")),
            versions: vec![version("1708300000002-bb"), version("1708300000001-aa")],
        }
    }

    #[test]
    fn versions_are_named_by_number_name_or_its_beginning() {
        let log = log();
        let name = |text: &str| match find(&log, text) {
            Ok(Named::Now) => "now".to_owned(),
            Ok(Named::Version(version)) => version.version.clone(),
            Err(failure) => failure.message,
        };
        assert_eq!(name("1"), "1708300000002-bb");
        assert_eq!(name("2"), "1708300000001-aa");
        assert_eq!(name("1708300000001"), "1708300000001-aa");
        assert_eq!(name("now"), "now");
        assert_eq!(name("1708300000009-ff"), "now");
        assert_eq!(name("0"), "a.md has 2 earlier versions, so there is no 0.");
        assert_eq!(name("3"), "a.md has 2 earlier versions, so there is no 3.");
        assert_eq!(name("1708"), "Several versions of a.md begin with `1708`.");
        assert_eq!(name("latest"), "a.md has no version `latest`.");
    }

    #[test]
    fn a_diff_is_unified_and_says_when_the_last_line_has_no_end() {
        assert_eq!(unified("a", "same\n", "b", "same\n"), "");
        let text = unified("a", "one\ntwo\n", "b", "one\nthree");
        assert_eq!(
            text,
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n"
        );
    }
}
