//! What `gsv doctor` checks on a machine that is a node of another one's gateway and has no client's token: whether the node is connected,
//! as its own log says. Asks no gateway.

use gsv_node::Connection;

use super::doctor_report::Report;
use super::node_files::{Running, log_file, running};
use crate::client::without_login;
use crate::config::{Config, Key};
use crate::service::LogFile;

const NAME: &str = "node";
/// Lines of the log that are read, the newest last.
const LINES: usize = 2_000;

pub fn check_only_node(report: &mut Report, config: &Config, url: &str) {
    let id = config.get(Key::NodeId).unwrap_or_default();
    let address = without_login(url);
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
        Some(Connection::Up) => report.ok(NAME, format!("`{id}` runs and is connected")),
        Some(Connection::Down { reason }) => {
            let reason = reason.trim_end_matches('.');
            report.fail(NAME, format!("`{id}` runs and is not connected: {reason}"), logs);
        }
        Some(Connection::Ended) | None => report.warn(
            NAME,
            format!("`{id}` runs, and its log does not say whether it is connected"),
            format!("Wait a moment and run `gsv doctor` again. {logs}"),
        ),
    }
}

/// The newest line about the connection decides, if it is of the current start.
fn last_said(lines: &[String]) -> Option<Connection> {
    lines
        .iter()
        .rev()
        .find_map(|line| Connection::of_line(line))
        .filter(|said| *said != Connection::Ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_line_about_the_connection_decides() {
        let said = |lines: &[&str]| last_said(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        let (up, other, ended) = (
            r#"{"connection": "up"}"#,
            r#"{"message": "no answer"}"#,
            r#"{"connection": "ended"}"#,
        );
        let lost = r#"{"connection": "down", "reason": "the peer is gone"}"#;
        let down = Connection::Down {
            reason: "the peer is gone".to_owned(),
        };
        assert_eq!(said(&[lost, up, other]), Some(Connection::Up));
        assert_eq!(said(&[up, lost]), Some(down));
        // A start that is not connected yet says nothing of the one before.
        assert_eq!(said(&[up, ended]), None);
        assert_eq!(said(&[]), None);
    }
}
