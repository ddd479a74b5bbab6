//! How the command of a tool call ended, in words. Pure.

use gsv_protocol::types::StoryCall;

use crate::clean::visible;

/// How the command of a call ended when it did not succeed: its call is `ok`, because it ran.
pub fn ended_badly(call: &StoryCall) -> String {
    match (call.exit_code, call.signal.as_deref()) {
        (_, Some(signal)) => format!(", ended by {}", visible(signal)),
        (Some(code), None) if code != 0 => format!(", exit code {code}"),
        _ => String::new(),
    }
}
