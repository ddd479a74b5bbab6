//! `tool.invoke` as it comes, checked before anything is done.

use std::time::Duration;

use gsv_protocol::limits;
use gsv_protocol::types::ToolInvokeEvent;
use serde_json::Value;
use tokio::time::Instant;

const ID_CHARS: usize = 128;

/// A call as it was asked for, checked.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub call_id: String,
    pub tool: String,
    pub args: Value,
    pub deadline: Option<Instant>,
}

/// Why an invocation is none. Without a call id nobody can be told.
#[derive(Debug, PartialEq, Eq)]
pub struct BadInvocation {
    pub call_id: Option<String>,
    pub why: String,
}

impl Invocation {
    /// `node_id`: some gateways leave it in front of the tool's name.
    pub fn read(payload: Value, node_id: &str) -> Result<Self, BadInvocation> {
        let call_id = payload
            .get("callId")
            .and_then(Value::as_str)
            .filter(|id| (1..=ID_CHARS).contains(&id.chars().count()))
            .map(str::to_owned);
        let bad = |why: String| BadInvocation {
            call_id: call_id.clone(),
            why,
        };
        let size = payload.get("args").map_or(0, |args| args.to_string().len());
        if size as u64 > limits::FRAME_BYTES {
            return Err(bad(format!(
                "the arguments have {size} bytes, at most {} are allowed; send less, or use a file",
                limits::FRAME_BYTES
            )));
        }
        let event: ToolInvokeEvent =
            serde_json::from_value(payload).map_err(|error| bad(format!("the call is not valid: {error}")))?;
        let Some(call_id) = call_id.clone() else {
            return Err(bad("the call id is not valid".into()));
        };
        if event.tool.chars().count() > ID_CHARS {
            return Err(bad("the tool's name is too long".into()));
        }
        let tool = event
            .tool
            .strip_prefix(node_id)
            .and_then(|rest| rest.strip_prefix("__"))
            .unwrap_or(&event.tool)
            .to_owned();
        let deadline = event
            .timeout_ms
            .filter(|ms| *ms > 0)
            .map(|ms| Instant::now() + Duration::from_millis(u64::from(ms)));
        Ok(Self {
            call_id,
            tool,
            args: Value::Object(event.args),
            deadline,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_invocation_is_checked_before_anything_is_done() {
        let good = json!({"callId": "a/r1/1/0", "tool": "Bash", "args": {"command": "ls"}, "timeoutMs": 5, "more": 1});
        let read = Invocation::read(good, "laptop").unwrap();
        assert_eq!(
            (read.call_id.as_str(), read.tool.as_str(), read.deadline.is_some()),
            ("a/r1/1/0", "Bash", true)
        );
        let named = json!({"callId": "a", "tool": "laptop__Bash", "args": {}});
        assert_eq!(Invocation::read(named, "laptop").unwrap().tool, "Bash");
        for (payload, call_id) in [
            (json!(null), None),
            (json!({"tool": "Bash", "args": {}}), None),
            (json!({"callId": "", "tool": "Bash", "args": {}}), None),
            (json!({"callId": "x".repeat(129), "tool": "Bash", "args": {}}), None),
            (json!({"callId": "a", "tool": "Bash", "args": [1]}), Some("a")),
            (json!({"callId": "a", "args": {}}), Some("a")),
            (json!({"callId": "a", "tool": "B".repeat(129), "args": {}}), Some("a")),
            (
                json!({"callId": "a", "tool": "Write", "args": {"content": "x".repeat(1_048_600)}}),
                Some("a"),
            ),
        ] {
            assert_eq!(
                Invocation::read(payload, "laptop").unwrap_err().call_id.as_deref(),
                call_id
            );
        }
    }
}
