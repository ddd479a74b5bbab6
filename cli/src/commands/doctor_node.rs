//! What `gsv doctor` checks on a machine that is a node of another one's gateway and has no client's token: whether the node is connected,
//! as its own log says. Asks no gateway.

use serde_json::Value;

use super::doctor_report::Report;
use super::node_files::{Running, log_file, running};
use crate::config::{Config, Key};
use crate::service::LogFile;

const NAME: &str = "node";
/// Lines of the log that are read, the newest last.
const LINES: usize = 2_000;

#[derive(Debug, PartialEq, Eq)]
enum Said {
    Connected,
    /// With its reason.
    NotConnected(String),
    Nothing,
}

pub fn check_only_node(report: &mut Report, config: &Config, url: &str) {
    let id = config.get(Key::NodeId).unwrap_or_default();
    let address = url.split('#').next().unwrap_or_default();
    report.ok(
        "token",
        format!("this machine is a node of {address}; as a node it needs no client's token"),
    );
    let logs = format!("`gsv node logs --id {id}` says why.");
    match running(id) {
        Err(failure) => return report.failure(NAME, failure),
        Ok(Running::No) => {
            let next = format!("Start it: `gsv node --id {id}`, or as a service: `gsv node install --id {id}`.");
            return report.fail(
                NAME,
                format!("`{id}` does not run, so the agent can't use this machine"),
                next,
            );
        }
        Ok(Running::Somewhere | Running::Process(_)) => {}
    }
    let lines = log_file(id).map(|file| LogFile::new(file).tail(LINES).unwrap_or_default());
    match last_said(&lines.unwrap_or_default()) {
        Said::Connected => report.ok(NAME, format!("`{id}` runs and is connected")),
        Said::NotConnected(why) => report.fail(NAME, format!("`{id}` runs and is not connected: {why}"), logs),
        Said::Nothing => report.warn(
            NAME,
            format!("`{id}` runs, and its log does not say whether it is connected"),
            format!("Wait a moment and run `gsv doctor` again. {logs}"),
        ),
    }
}

/// The newest line about the connection decides, if it is of the current start.
fn last_said(lines: &[String]) -> Said {
    for line in lines.iter().rev() {
        let Ok(Value::Object(fields)) = serde_json::from_str(line) else {
            continue;
        };
        let message = fields.get("message").and_then(Value::as_str).unwrap_or_default();
        if message.starts_with("Connected as ") {
            return Said::Connected;
        }
        if let Some(why) = message.strip_prefix("Not connected: ") {
            let why = why.split(" Trying again in ").next().unwrap_or_default();
            return Said::NotConnected(why.trim_end_matches('.').to_owned());
        }
        if message == "The node has stopped." {
            return Said::Nothing;
        }
    }
    Said::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_line_about_the_connection_decides() {
        let said = |messages: &[&str]| {
            let lines: Vec<String> = messages
                .iter()
                .map(|message| serde_json::json!({"time": "t", "level": "info", "message": message}).to_string())
                .collect();
            last_said(&lines)
        };
        let lost = "Not connected: the peer is gone. Trying again in 0.5 s.";
        assert_eq!(
            said(&[lost, "Connected as a to gateway 1.", "no answer"]),
            Said::Connected
        );
        assert_eq!(
            said(&["Connected as a to gateway 1.", lost]),
            Said::NotConnected("the peer is gone".to_owned())
        );
        // A start that is not connected yet says nothing of the one before.
        assert_eq!(
            said(&["Connected as a to gateway 1.", "The node has stopped."]),
            Said::Nothing
        );
        assert_eq!(said(&[]), Said::Nothing);
    }
}
