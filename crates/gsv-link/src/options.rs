//! How to connect, and as which client or node.

use std::sync::Arc;
use std::time::Duration;

use gsv_protocol::limits;
use gsv_protocol::types::{
    ClientInfo, ConnectAuth, ConnectParams, ConnectResume, Mode, NodeLedger, NodeRuntime, ResumePoint, ToolDefinition,
};

use crate::net::target::Target;

/// The frame around the params of `connect`.
const FRAME_AROUND_BYTES: u64 = 64;

/// Called at each connect: the unreleased calls of a node.
pub type LedgerProvider = Arc<dyn Fn() -> NodeLedger + Send + Sync>;
/// Called at each connect: the sessions to follow again. The last ones are left out when the list does not fit
/// the first frame.
pub type ResumeProvider = Arc<dyn Fn() -> Vec<ResumePoint> + Send + Sync>;

/// Called before each attempt: the gateway's current address. `None`: unchanged.
pub type AddressProvider = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The settings of a link.
#[derive(Clone)]
pub struct Options {
    /// `ws://`, `wss://`, `http://`, `https://` or `host[:port]`; an empty path becomes `/ws`.
    pub url: String,
    /// For a gateway that may move, such as the one on this machine.
    pub address: Option<AddressProvider>,
    pub token: Option<String>,
    pub mode: Mode,
    pub id: String,
    pub version: String,
    pub platform: String,
    pub tools: Option<Vec<ToolDefinition>>,
    pub node_runtime: Option<NodeRuntime>,
    pub ledger: Option<LedgerProvider>,
    pub resume: Option<ResumeProvider>,
    /// False: the first lost or refused connection ends the link.
    pub reconnect: bool,
    /// From dialling to `hello-ok`.
    pub connect_timeout: Duration,
}

impl Options {
    /// A client of this platform that does not reconnect.
    pub fn new(url: impl Into<String>, mode: Mode, id: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            address: None,
            token: None,
            mode,
            id: id.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            platform: std::env::consts::OS.to_owned(),
            tools: None,
            node_runtime: None,
            ledger: None,
            resume: None,
            reconnect: false,
            connect_timeout: Duration::from_millis(limits::CONNECT_TIMEOUT_MS),
        }
    }

    /// The params of `connect`. Sessions to resume are left out, the last first, until the frame fits.
    pub(crate) fn connect_params(&self) -> ConnectParams {
        let mut params = ConnectParams {
            min_protocol: 1,
            max_protocol: 1,
            client: ClientInfo {
                id: self.id.clone(),
                version: self.version.clone(),
                platform: self.platform.clone(),
                mode: self.mode,
                channel: None,
                account_id: None,
            },
            tools: self.tools.clone(),
            node_runtime: self.node_runtime.clone(),
            auth: self.token.clone().map(|token| ConnectAuth { token: Some(token) }),
            resume: self
                .resume
                .as_ref()
                .map(|resume| resume())
                .filter(|sessions| !sessions.is_empty())
                .map(|sessions| ConnectResume { sessions }),
            ledger: self.ledger.as_ref().map(|ledger| ledger()),
            fingerprint: Some(gsv_protocol::methods::PROTOCOL_FINGERPRINT.to_owned()),
        };
        let limit = if self.mode == Mode::Node {
            limits::UNAUTH_NODE_FRAME_BYTES
        } else {
            limits::UNAUTH_FRAME_BYTES
        };
        let fits = |params: &ConnectParams| {
            serde_json::to_string(params).is_ok_and(|text| text.len() as u64 + FRAME_AROUND_BYTES <= limit)
        };
        while params.resume.is_some() && !fits(&params) {
            params.resume.as_mut().and_then(|resume| resume.sessions.pop());
            params.resume = params.resume.filter(|resume| !resume.sessions.is_empty());
        }
        params
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field(
                "url",
                &Target::parse(&self.url).map_or_else(|_| "(not a url)".to_owned(), |target| target.shown),
            )
            .field("mode", &self.mode)
            .field("id", &self.id)
            .field("reconnect", &self.reconnect)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(mode: Mode, sessions: usize) -> Options {
        let points: Vec<ResumePoint> = (0..sessions)
            .map(|at| ResumePoint {
                session_key: format!("agent:main:cli:dm:{at:04}"),
                after_seq: 1,
            })
            .collect();
        Options {
            resume: Some(Arc::new(move || points.clone())),
            ..Options::new("ws://host", mode, "laptop")
        }
    }
    fn resumed(params: &ConnectParams) -> Vec<String> {
        let sessions = params.resume.iter().flat_map(|resume| &resume.sessions);
        sessions.map(|point| point.session_key.clone()).collect()
    }
    fn frame_bytes(params: &ConnectParams) -> u64 {
        serde_json::to_string(params).unwrap().len() as u64 + FRAME_AROUND_BYTES
    }

    #[test]
    fn p11_the_first_frame_names_the_sessions_to_resume_and_none_when_there_are_none() {
        let few = options(Mode::Client, 2).connect_params();
        assert_eq!(resumed(&few), ["agent:main:cli:dm:0000", "agent:main:cli:dm:0001"]);
        assert_eq!(options(Mode::Client, 0).connect_params().resume, None);
    }

    #[test]
    fn p11_as_many_sessions_as_fit_the_first_frame_are_resumed() {
        let all = resumed(&options(Mode::Node, 300).connect_params());
        assert_eq!(all.len(), 300, "the frame of a node is large");
        let kept = resumed(&options(Mode::Client, 300).connect_params());
        assert_eq!(kept, all[..kept.len()]);
        let frame = |sessions| {
            let mut params = options(Mode::Node, sessions).connect_params();
            params.client.mode = Mode::Client;
            frame_bytes(&params)
        };
        assert!(frame(kept.len()) <= limits::UNAUTH_FRAME_BYTES);
        assert!(frame(kept.len() + 1) > limits::UNAUTH_FRAME_BYTES);
    }

    #[test]
    fn p11_a_session_that_fills_the_frame_to_the_last_byte_is_resumed() {
        let mut options = options(Mode::Client, 1);
        let missing = limits::UNAUTH_FRAME_BYTES - frame_bytes(&options.connect_params());
        options.version += &"x".repeat(usize::try_from(missing).unwrap());
        assert_eq!(resumed(&options.connect_params()).len(), 1);
        options.version.push('x');
        assert_eq!(
            options.connect_params().resume,
            None,
            "a frame without sessions, and not an empty list"
        );
    }
}
