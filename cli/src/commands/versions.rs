//! `gsv workspace log|diff|restore`, and `cat` of a version: versions of a file. A version is named by its number in the log (1 is the last before
//! now), by its name or the beginning of its name; `now` is the current file.

use gsv_protocol::errors;
use gsv_protocol::methods::{WorkspaceLog, WorkspaceRestore};
use gsv_protocol::types::{
    AgentId, WorkspaceLogParams, WorkspaceLogResult, WorkspaceReadResult, WorkspaceRestoreParams, WorkspaceVersion,
};
use serde_json::json;
use similar::TextDiff;

use super::actors::{Actors, TOKEN_COLUMNS};
use super::context::Context;
use super::workspace_file::{read_or_absent, read_whole};
use crate::args::{WorkspaceCat, WorkspaceDiff, WorkspaceFile, WorkspaceRestore as RestoreArgs};
use crate::clean::{clean, one_line};
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::table::Table;
use crate::units::{ago, bytes, now_ms, time};

const NOW: &str = "now";
/// `ifMatch` of a file that was deleted.
const ABSENT: &str = "absent";
/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

fn log_params(file: WorkspaceFile) -> WorkspaceLogParams {
    WorkspaceLogParams {
        path: file.path,
        agent_id: file.of.agent,
    }
}

pub async fn log(context: &Context, file: WorkspaceFile) -> Outcome {
    let out = context.out;
    let agent = file.of.agent.clone();
    context
        .show::<WorkspaceLog>(log_params(file), |log| print(out, &log, agent.as_ref()))
        .await
}

fn print(out: Output, log: &WorkspaceLogResult, agent: Option<&AgentId>) {
    let now = now_ms();
    let row = |number: String, version: &WorkspaceVersion| {
        [
            number,
            format!("{} ({})", time(version.at), ago(version.at, now)),
            bytes(version.size_bytes),
            version
                .by
                .as_deref()
                .map(|by| Actors::default().cell(by))
                .unwrap_or_default(),
            version.version.clone(),
        ]
    };
    let current = log.current.iter().map(|version| row(NOW.to_owned(), version));
    let earlier = log
        .versions
        .iter()
        .zip(1..)
        .map(|(version, number)| row(number.to_string(), version));
    let head = ["#", "WRITTEN", "SIZE", "BY", "VERSION"];
    out.table(&Table::new(head, current.chain(earlier)).keeping(3, TOKEN_COLUMNS));
    let path = one_line(&log.path, 200);
    if log.current.is_none() {
        let of = of_agent(agent);
        // A definition comes into force only when it was checked.
        out.aside(&if path == "agent.yaml" {
            let id = agent.map_or("AGENT", AgentId::as_str);
            format!("{path} is deleted; `gsv workspace cat {path}{of} --version 1 | gsv agent edit {id}` applies its last text again")
        } else {
            format!("{path} is deleted; `gsv workspace restore {path}{of}` undoes this")
        });
    } else if log.versions.is_empty() {
        out.aside(&format!("{path} has no earlier versions"));
    }
}

/// The option that a command needs to mean the same agent.
pub fn of_agent(agent: Option<&AgentId>) -> String {
    agent.map(|id| format!(" --agent {}", id.as_str())).unwrap_or_default()
}

/// The version that an argument names; `None` is the current file.
fn find<'a>(log: &'a WorkspaceLogResult, name: &str) -> Outcome<Option<&'a WorkspaceVersion>> {
    if name == NOW || log.current.as_ref().is_some_and(|current| current.version == name) {
        return Ok(None);
    }
    let path = one_line(&log.path, 200);
    let list = format!("`gsv workspace log {path}` lists them.");
    let versions = &log.versions;
    // Names are longer than any number of a version.
    if let Some(number) = name.parse::<usize>().ok().filter(|_| name.len() <= 3) {
        let count = versions.len();
        return match number.checked_sub(1).and_then(|index| versions.get(index)) {
            Some(version) => Ok(Some(version)),
            None if count == 0 => Err(Failure::failed(format!("{path} has no earlier versions."), "")),
            None => {
                let message = format!("{path} has {count} earlier versions, and no version {number}.");
                Err(Failure::failed(message, list))
            }
        };
    }
    let shown = one_line(name, 80);
    let mut found = versions.iter().filter(|version| version.version.starts_with(name));
    match (found.next(), found.next()) {
        (Some(version), None) => Ok(Some(version)),
        (None, _) => Err(Failure::failed(format!("{path} has no version `{shown}`."), list)),
        (Some(_), Some(_)) => Err(Failure::usage(
            format!("Several versions of {path} begin with `{shown}`."),
            format!("Write more of the name; {list}"),
        )),
    }
}

/// The name and the text of one side of a diff.
async fn side(
    client: &Client,
    path: &str,
    version: Option<&WorkspaceVersion>,
    agent_id: Option<&AgentId>,
) -> Outcome<(String, String)> {
    match version {
        None => Ok(match read_or_absent(client, path, agent_id).await? {
            Some(file) => (format!("{path} (now)"), file.content),
            None => ("/dev/null".to_owned(), String::new()),
        }),
        Some(version) => {
            let file = read_whole(client, path, agent_id, Some(&version.version)).await?;
            Ok((format!("{path} ({})", time(version.at)), file.content))
        }
    }
}

/// The current file, or an earlier version of it.
pub async fn read(client: &Client, WorkspaceCat { of, version }: WorkspaceCat) -> Outcome<WorkspaceReadResult> {
    let (path, agent_id) = (of.path.clone(), of.of.agent.clone());
    let named = if version == NOW {
        None
    } else {
        let log = client.call::<WorkspaceLog>(log_params(of)).await?;
        find(&log, &version)?.map(|version| version.version.clone())
    };
    read_whole(client, &path, agent_id.as_ref(), named.as_deref()).await
}

pub async fn diff(context: &Context, args: WorkspaceDiff) -> Outcome {
    let agent_id = args.of.of.agent.clone();
    let client = context.connect().await?;
    let log = client.call::<WorkspaceLog>(log_params(args.of)).await?;
    let (from, to) = (find(&log, &args.from)?, find(&log, &args.to)?);
    let old = side(&client, &log.path, from, agent_id.as_ref()).await?;
    let new = side(&client, &log.path, to, agent_id.as_ref()).await?;
    client.close().await;
    let text = unified(&old.0, &old.1, &new.0, &new.1);
    let out = context.out;
    if out.json {
        let name =
            |version: Option<&WorkspaceVersion>| version.map_or(NOW.to_owned(), |version| version.version.clone());
        out.json_document(&json!({"path": log.path, "from": name(from), "to": name(to), "diff": text}));
    } else if text.is_empty() {
        out.aside("no difference");
    } else {
        print_diff(out, &text);
    }
    Ok(())
}

/// As `diff -u` prints it; empty when nothing differs.
fn unified(old_name: &str, old: &str, new_name: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(&one_line(old_name, 400), &one_line(new_name, 400))
        .to_string()
}

fn print_diff(out: Output, text: &str) {
    if !out.colour() {
        return out.content(text);
    }
    for (number, line) in text.lines().enumerate() {
        let style = match line.as_bytes().first() {
            // The header has two lines.
            _ if number < 2 => Some(Style::Bold),
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

pub async fn restore(context: &Context, args: RestoreArgs) -> Outcome {
    let agent_id = args.of.of.agent.clone();
    let client = context.connect().await?;
    let log = client.call::<WorkspaceLog>(log_params(args.of)).await?;
    let shown = one_line(&log.path, 200);
    let Some(version) = find(&log, &args.version)? else {
        return Err(Failure::usage(
            format!("{shown} has this content already."),
            format!("Name an earlier version; `gsv workspace log {shown}` lists them."),
        ));
    };
    // Only over the version in the log: a change in between is not lost.
    let seen = log.current.as_ref().map_or(ABSENT, |current| current.version.as_str());
    let params = WorkspaceRestoreParams {
        path: log.path.clone(),
        agent_id,
        version: version.version.clone(),
        if_match: Some(seen.to_owned()),
    };
    let result = client.call::<WorkspaceRestore>(params).await.map_err(|mut failure| {
        if failure.is(&errors::WORKSPACE_CONFLICT) {
            failure.next = format!("Nothing was restored. Check `gsv workspace log {shown}` and try again.");
        }
        failure
    })?;
    client.close().await;
    let document = json!({"path": result.path, "size": result.size, "etag": result.etag, "version": version.version});
    let by = version
        .by
        .as_deref()
        .map(|by| format!(" by {}", Actors::default().name(by)));
    let then = match log.current {
        None => "the file was deleted before".to_owned(),
        Some(_) => format!("`gsv workspace log {shown}` has the version before"),
    };
    let words = format!(
        "{shown} restored to the version written {}{}, {}; {then}",
        time(version.at),
        by.unwrap_or_default(),
        bytes(result.size)
    );
    context.out.done(&document, &words);
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
    fn versions_are_named_by_number_name_or_prefix() {
        let log = log();
        let name = |text: &str| match find(&log, text) {
            Ok(None) => "now".to_owned(),
            Ok(Some(version)) => version.version.clone(),
            Err(failure) => failure.message,
        };
        assert_eq!(name("1"), "1708300000002-bb");
        assert_eq!(name("2"), "1708300000001-aa");
        assert_eq!(name("1708300000001"), "1708300000001-aa");
        assert_eq!(name("now"), "now");
        assert_eq!(name("1708300000009-ff"), "now");
        assert_eq!(name("0"), "a.md has 2 earlier versions, and no version 0.");
        assert_eq!(name("3"), "a.md has 2 earlier versions, and no version 3.");
        assert_eq!(name("1708"), "Several versions of a.md begin with `1708`.");
        assert_eq!(name("latest"), "a.md has no version `latest`.");
    }

    #[test]
    fn a_diff_is_unified_and_reports_a_missing_last_line_end() {
        assert_eq!(unified("a", "same\n", "b", "same\n"), "");
        let text = unified("a", "one\ntwo\n", "b", "one\nthree");
        assert_eq!(
            text,
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n"
        );
    }
}
