//! Checks `tool.invoke` before the call is admitted.

use std::time::Duration;

use gsv_protocol::limits;
use gsv_protocol::types::{CallId, ToolInvokeEvent};
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

/// Why an invocation is not valid. Without a call id it can't be answered.
#[derive(Debug, PartialEq, Eq)]
pub struct BadInvocation {
    pub call_id: Option<String>,
    pub why: String,
}

impl BadInvocation {
    /// A `call_id` outside the contract's limits counts as absent.
    pub fn new(call_id: Option<CallId>, why: impl Into<String>) -> Self {
        Self {
            call_id: call_id
                .map(CallId::into_inner)
                .filter(|id| (1..=ID_CHARS).contains(&id.chars().count())),
            why: why.into(),
        }
    }
}

impl Invocation {
    /// `node_id`: some gateways send it as the prefix of the tool's name.
    pub fn read(event: ToolInvokeEvent, node_id: &str) -> Result<Self, BadInvocation> {
        let ToolInvokeEvent {
            call_id,
            tool,
            args,
            timeout_ms,
            ..
        } = event;
        let bad = |why: String| Err(BadInvocation::new(Some(call_id.clone()), why));
        if !(1..=ID_CHARS).contains(&call_id.as_str().chars().count()) {
            return bad("the call id is not valid".into());
        }
        if tool.chars().count() > ID_CHARS {
            return bad("the tool's name is too long".into());
        }
        let args = Value::Object(args);
        let size = args.to_string().len();
        if size as u64 > limits::FRAME_BYTES {
            return bad(format!(
                "the arguments have {size} bytes, at most {} are allowed; send less, or use a file",
                limits::FRAME_BYTES
            ));
        }
        let tool = tool
            .strip_prefix(node_id)
            .and_then(|rest| rest.strip_prefix("__"))
            .unwrap_or(&tool)
            .to_owned();
        let deadline = timeout_ms
            .filter(|ms| *ms > 0)
            .map(|ms| Instant::now() + Duration::from_millis(u64::from(ms)));
        Ok(Self {
            call_id: call_id.into_inner(),
            tool,
            args,
            deadline,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(event: Value) -> Result<Invocation, BadInvocation> {
        Invocation::read(serde_json::from_value(event).unwrap(), "laptop")
    }

    #[test]
    fn an_invocation_is_checked_before_it_is_admitted() {
        let good = json!({"callId": "a/r1/1/0", "tool": "Bash", "args": {"command": "ls"}, "timeoutMs": 5, "more": 1});
        let invocation = read(good).unwrap();
        assert_eq!(
            (
                invocation.call_id.as_str(),
                invocation.tool.as_str(),
                invocation.deadline.is_some()
            ),
            ("a/r1/1/0", "Bash", true)
        );
        let unlimited = json!({"callId": "a", "tool": "Bash", "args": {}, "timeoutMs": 0});
        assert!(read(unlimited).unwrap().deadline.is_none());
        assert_eq!(
            read(json!({"callId": "a", "tool": "laptop__Bash", "args": {}}))
                .unwrap()
                .tool,
            "Bash"
        );
        let large = "x".repeat(1_048_600);
        for (event, call_id) in [
            (json!({"callId": "", "tool": "Bash", "args": {}}), None),
            (json!({"callId": "x".repeat(129), "tool": "Bash", "args": {}}), None),
            (json!({"callId": "a", "tool": "B".repeat(129), "args": {}}), Some("a")),
            (
                json!({"callId": "a", "tool": "Write", "args": {"content": large}}),
                Some("a"),
            ),
        ] {
            assert_eq!(read(event).unwrap_err().call_id.as_deref(), call_id);
        }
    }
}
