//! Machines, and the tool calls that wait for them, as commands show them.

use gsv_protocol::types::{MachineWait, NodeEntry};

use crate::clean::visible;
use crate::table::Table;
use crate::units::{ago, clock, duration};

/// Machines as a table.
pub fn machines(nodes: &[NodeEntry], now: u64) -> Table<5> {
    let rows = nodes.iter().map(|node| {
        let seen = node.last_seen_at.or(node.last_connected_at).map(|at| ago(at, now));
        let (state, seen) = if node.online {
            ("online".to_owned(), "now".to_owned())
        } else if node.returning == Some(true) {
            ("reconnecting".to_owned(), seen.unwrap_or_default())
        } else {
            (offline_words(node), seen.unwrap_or_default())
        };
        [
            node.node_id.to_string(),
            state,
            seen,
            sandbox_words(node),
            node.tools.join(" "),
        ]
    });
    Table::new(["MACHINE", "STATE", "SEEN", "SANDBOX", "TOOLS"], rows)
}

/// With the calls that wait for the machine, and until when.
fn offline_words(node: &NodeEntry) -> String {
    let calls = node.waiting.as_deref().unwrap_or_default();
    match calls.iter().map(|call| call.until).max() {
        None => "offline".to_owned(),
        Some(until) if calls.len() == 1 => format!("offline, 1 call waits until {}", clock(until)),
        Some(until) => format!("offline, {} calls wait until {}", calls.len(), clock(until)),
    }
}

/// The level that the machine reported, such as `workspace (landlock)`.
fn sandbox_words(node: &NodeEntry) -> String {
    let Some(sandbox) = &node.sandbox else {
        return "none".to_owned();
    };
    match &sandbox.tier {
        Some(tier) => format!("{} ({})", sandbox.profile.as_str(), tier.as_str()),
        None => sandbox.profile.as_str().to_owned(),
    }
}

/// The machines that calls wait for, each with its first call and the time that is left: `laptop, 1h 59m more (laptop__Bash)`.
pub fn awaited(calls: &[MachineWait], now: u64) -> Option<String> {
    let mut named: Vec<&str> = Vec::new();
    let mut words = Vec::new();
    for call in calls {
        if named.contains(&call.node_id.as_str()) {
            continue;
        }
        named.push(call.node_id.as_str());
        words.push(format!(
            "{}, {} more ({})",
            visible(call.node_id.as_str()),
            duration(call.until.saturating_sub(now)),
            visible(call.tool.as_str())
        ));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(more: &Value) -> NodeEntry {
        let mut entry = json!({
            "nodeId": "lap", "online": false, "hostCapabilities": [], "toolCapabilities": {}, "tools": ["Bash"]
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            entry[name.as_str()] = value.clone();
        }
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn om9_a_machine_that_is_away_says_how_many_calls_wait_for_it_and_until_when() {
        let wait =
            |until: u64| json!({"sessionKey": "agent:main:main", "tool": "lap__Bash", "since": 0, "until": until});
        assert_eq!(offline_words(&node(&json!({}))), "offline");
        let at = |until: u64| clock(until);
        assert_eq!(
            offline_words(&node(&json!({"waiting": [wait(3_600_000)]}))),
            format!("offline, 1 call waits until {}", at(3_600_000))
        );
        assert_eq!(
            offline_words(&node(&json!({"waiting": [wait(7_200_000), wait(3_600_000)]}))),
            format!("offline, 2 calls wait until {}", at(7_200_000))
        );
    }

    #[test]
    fn om9_a_run_names_each_machine_once_with_its_time_and_its_call() {
        let wait = |node: &str, until: u64| -> MachineWait {
            let tool = format!("{node}__Bash");
            serde_json::from_value(json!({"nodeId": node, "tool": tool, "since": 0, "until": until})).unwrap()
        };
        assert_eq!(awaited(&[], 0), None);
        assert_eq!(
            awaited(
                &[wait("lap", 7_200_000), wait("lap", 9_000_000), wait("box", 60_000)],
                0
            )
            .as_deref(),
            Some("lap, 2 h more (lap__Bash); box, 1 min more (box__Bash)")
        );
    }
}
