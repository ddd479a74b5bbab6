//! How the command of a tool call ended, in words. Pure.

use gsv_protocol::types::StoryCall;

use crate::clean::visible;

/// The signal or the exit code of a command that did not succeed, whose call is `ok` because it ran. None: it succeeded.
pub fn failed_end(call: &StoryCall) -> Option<String> {
    match (call.exit_code, call.signal.as_deref()) {
        (_, Some(signal)) => Some(format!("ended by {}", visible(signal))),
        (Some(code), None) if code != 0 => Some(format!("exit code {code}")),
        _ => None,
    }
}
