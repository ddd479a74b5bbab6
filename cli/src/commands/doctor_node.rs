//! What `gsv doctor` checks on a machine that is a node of another one's gateway and has no client's token: whether the node is connected,
//! as its own log says. Only while the node does not run, the gateway is asked whether it still accepts the node's token.

use gsv_node::Connection;
use gsv_protocol::errors;

use super::doctor_report::Report;
use super::node_files::{Running, log_file, running};
use super::node_token::INVITATION;
use crate::client::{Account, without_login};
use crate::config::{Config, Key};
use crate::service::LogFile;

const NAME: &str = "node";
/// Lines of the log that are read, the newest last.
const LINES: usize = 2_000;

pub async fn check_only_node(report: &mut Report, config: &Config, url: &str, offline: bool) {
    let address = without_login(url);
    report.ok(
        "token",
        format!("this machine is a node of {address}; as a node it needs no client's token"),
    );
    check_node(report, config, url, offline).await;
}

/// Whether the local config has the token of a node of this gateway.
pub fn has_node(config: &Config, url: &str) -> bool {
    config.get(Key::Url) == Some(url) && config.get(Key::NodeId).is_some() && config.get(Key::NodeToken).is_some()
}

/// Needs no client's token.
pub async fn check_node(report: &mut Report, config: &Config, url: &str, offline: bool) {
    let id = config.get(Key::NodeId).unwrap_or_default();
    let logs = format!("See why: `gsv node logs --id {id}`.");
    match running(id) {
        Err(failure) => return report.failure(NAME, failure),
        Ok(Running::No) => {
            if !offline && !check_token(report, config, url, id).await {
                return;
            }
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

/// Whether the node could connect. The gateway refuses a client with a node's token, and one that it does not know in another way, so no
/// machine seems to come and go.
async fn check_token(report: &mut Report, config: &Config, url: &str, id: &str) -> bool {
    let account = Account::of_command(url, config.get(Key::NodeToken).unwrap_or_default());
    match account.connect().await {
        Ok(client) => client.close().await,
        Err(failure) if failure.is(&errors::AUTH_FORBIDDEN) => {}
        Err(failure) if failure.is_refusal() => {
            let found = format!("the gateway no longer accepts the token of `{id}`");
            report.fail(NAME, found, INVITATION);
            return false;
        }
        Err(failure) => {
            report.failure("connect", failure);
            return false;
        }
    }
    true
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
