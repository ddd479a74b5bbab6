//! The frames of a client or node: requests to text, and text to answers and events.
//!
//! Outgoing frames keep the contract's limits. Incoming ones may be larger and looser, because the published reference
//! gateway keeps neither: its errors carry no `reason` and its greeting leaves fields out. Never panics, never recurses
//! over input, and never repeats input in an error, since a frame may carry a secret.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;

use crate::error_table::ErrorReason;
use crate::errors;
use crate::events::{Event, EventName};
use crate::json::Json;
use crate::limits::FRAME_DEPTH;
use crate::methods::Request;
use crate::types::{ConnectResult, ConnectResultType, ErrorShape, Features, ServerInfo};
use crate::unread_event::{MalformedEvent, UnknownEvent};

/// Bytes before the chunk in a binary frame: the transfer id, a little-endian u32.
pub const CHUNK_HEADER_BYTES: usize = 4;
/// Largest text frame that is read. The contract's limit is smaller; only the reference gateway sends larger ones.
pub const RECEIVED_BYTES: usize = 8 * 1024 * 1024;
/// Deepest nesting that is read: what serde reads without exhausting the stack.
pub const RECEIVED_DEPTH: u64 = 127;
/// Stands for the reason of an error that came without one and whose number says nothing. No row of the error table.
pub const UNKNOWN_REASON: &str = "unknown";

/// Why a message is not a frame, or a frame can't be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    #[error("the frame has {bytes} bytes, at most {limit} are allowed")]
    TooLarge { bytes: usize, limit: usize },
    #[error("the frame is nested deeper than {limit}")]
    TooDeep { limit: u64 },
    #[error("the frame is not valid JSON (line {line}, column {column})")]
    NotJson { line: usize, column: usize },
    /// A kind of frame that a newer peer knows. The socket stays.
    #[error("this kind of frame is not supported here")]
    UnknownType,
    #[error("the frame does not fit the contract: {problem}")]
    Invalid { problem: String },
}

/// A frame from the gateway.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// The answer to the request with this id. An absent payload reads as `null`.
    Answer {
        id: String,
        outcome: Result<Json, ErrorShape>,
    },
    Event {
        event: Event,
        seq: Option<u64>,
    },
    /// A request: a gateway never sends one.
    Request,
}

/// Reads one text message.
///
/// # Errors
/// The message is too large or too deep, not JSON, or not a frame.
pub fn decode(text: &str) -> Result<Incoming, CodecError> {
    if text.len() > RECEIVED_BYTES {
        return Err(CodecError::TooLarge {
            bytes: text.len(),
            limit: RECEIVED_BYTES,
        });
    }
    check_depth(text, RECEIVED_DEPTH)?;
    let frame: LooseFrame = serde_json::from_str(text).map_err(|error| not_a_frame(&error))?;
    let missing = |field: &str| CodecError::Invalid {
        problem: format!("missing field `{field}`"),
    };
    match frame.kind {
        Kind::Res => Ok(Incoming::Answer {
            id: frame.id.ok_or_else(|| missing("id"))?,
            outcome: if frame.ok == Some(true) {
                Ok(frame.payload.unwrap_or_default())
            } else {
                Err(frame.error.unwrap_or_default().into())
            },
        }),
        Kind::Evt => {
            let name = frame.event.ok_or_else(|| missing("event"))?;
            Ok(Incoming::Event {
                event: read_event(&name, frame.payload.unwrap_or_default()),
                seq: frame.seq,
            })
        }
        Kind::Req => Ok(Incoming::Request),
        Kind::Other => Err(CodecError::UnknownType),
    }
}

/// Reads an event. Never fails: what cannot be read is [`Event::Unknown`] or [`Event::Malformed`].
#[must_use]
pub fn read_event(name: &str, payload: Json) -> Event {
    let Ok(name) = name.parse::<EventName>() else {
        return Event::Unknown(UnknownEvent { name: name.to_owned() });
    };
    Event::read(name, &payload).unwrap_or_else(|error| {
        Event::Malformed(MalformedEvent {
            name,
            payload,
            problem: problem(&error),
        })
    })
}

/// A request as text, without its id: it can be sent again under another id with exactly the same content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRequest {
    /// `{"method":...,"params":...}`
    body: String,
}

impl EncodedRequest {
    /// The longest id that a link gives to a frame: a u64.
    const ID_BYTES: usize = 20;
    const HEAD_BYTES: usize = r#"{"type":"req","id":"","#.len() - "{".len();

    /// Writes a request whose frame has at most `limit_bytes` bytes under an id of up to 20 bytes.
    ///
    /// # Errors
    /// The frame would be too large or nested too deeply.
    pub fn new(request: &Request, limit_bytes: usize) -> Result<Self, CodecError> {
        let body = serde_json::to_string(request).map_err(|_| CodecError::Invalid {
            problem: "it can't be written as JSON".to_owned(),
        })?;
        check_depth(&body, FRAME_DEPTH)?;
        let bytes = Self::HEAD_BYTES + Self::ID_BYTES + body.len();
        if bytes > limit_bytes {
            return Err(CodecError::TooLarge {
                bytes,
                limit: limit_bytes,
            });
        }
        Ok(Self { body })
    }

    /// The frame's text. `id` must need no escaping.
    #[must_use]
    pub fn frame(&self, id: &str) -> String {
        // The body is an object with at least `method`, so its first byte is the brace that is replaced here.
        format!(r#"{{"type":"req","id":"{id}",{}"#, &self.body[1..])
    }
}

/// Reads the answer to `connect`. A gateway whose greeting lacks something optional to us is still a gateway. `protocol`
/// is 0 when the gateway names no version.
#[must_use]
pub fn read_greeting(answer: &Json) -> ConnectResult {
    answer.read().unwrap_or_else(|_| {
        let loose: LooseHello = answer.read_or_default();
        ConnectResult {
            r#type: ConnectResultType::HelloOk,
            protocol: loose.protocol,
            server: ServerInfo {
                version: loose.server.version,
                connection_id: loose.server.connection_id,
                time_zone: None,
            },
            features: Features {
                methods: loose.features.methods,
                events: loose.features.events,
            },
            fingerprint: None,
            scopes: None,
            ping_interval_ms: loose.ping_interval_ms,
        }
    })
}

#[derive(Deserialize)]
struct LooseFrame {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    ok: Option<bool>,
    #[serde(default)]
    payload: Option<Json>,
    #[serde(default)]
    error: Option<LooseError>,
    #[serde(default)]
    event: Option<String>,
    #[serde(default)]
    seq: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Req,
    Res,
    Evt,
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
struct LooseError {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    hint: Option<String>,
    #[serde(default)]
    details: Option<Value>,
    #[serde(default)]
    retryable: Option<bool>,
}

impl From<LooseError> for ErrorShape {
    fn from(error: LooseError) -> Self {
        let reason = error.reason.filter(|reason| !reason.is_empty());
        Self {
            code: error.code,
            reason: reason.unwrap_or_else(|| {
                reason_of_code(error.code)
                    .map_or(UNKNOWN_REASON, |row| row.reason)
                    .to_owned()
            }),
            message: error.message.unwrap_or_default(),
            hint: error.hint,
            details: error.details,
            retryable: error.retryable,
        }
    }
}

/// The reason that a number stands for, as far as the reference gateway uses the number for the same thing.
fn reason_of_code(code: u32) -> Option<&'static ErrorReason> {
    const SHARED: [&ErrorReason; 8] = [
        &errors::PROTOCOL_NOT_CONNECTED,
        &errors::PROTOCOL_VERSION,
        &errors::PROTOCOL_BAD_CONNECT,
        &errors::AUTH_REQUIRED,
        &errors::AUTH_FORBIDDEN,
        &errors::PROTOCOL_TOO_LARGE,
        &errors::LIMIT_RATE,
        &errors::INTERNAL,
    ];
    SHARED.into_iter().find(|row| row.code == code)
}

/// Every field on its own: one that is missing or of another type takes its default.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LooseHello {
    #[serde(deserialize_with = "or_default")]
    protocol: u16,
    #[serde(deserialize_with = "or_default")]
    server: LooseServer,
    #[serde(deserialize_with = "or_default")]
    features: LooseFeatures,
    #[serde(deserialize_with = "or_default")]
    ping_interval_ms: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LooseServer {
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(deserialize_with = "or_default")]
    connection_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LooseFeatures {
    #[serde(deserialize_with = "or_default")]
    methods: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    events: Vec<String>,
}

fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Json::deserialize(deserializer).map(|json| json.read_or_default())
}

fn not_a_frame(error: &serde_json::Error) -> CodecError {
    match error.classify() {
        Category::Data => CodecError::Invalid {
            problem: problem(error),
        },
        Category::Syntax | Category::Eof | Category::Io => CodecError::NotJson {
            line: error.line(),
            column: error.column(),
        },
    }
}

/// serde's sentence where it names only our own fields; its other sentences repeat the input.
fn problem(error: &serde_json::Error) -> String {
    let sentence = error.to_string();
    if sentence.starts_with("missing field") || sentence.starts_with("duplicate field") {
        sentence.split(" at line").next().unwrap_or_default().to_owned()
    } else {
        "a field has the wrong type".to_owned()
    }
}

fn check_depth(text: &str, limit: u64) -> Result<(), CodecError> {
    if nests_deeper(text, limit) {
        return Err(CodecError::TooDeep { limit });
    }
    Ok(())
}

/// Whether arrays and objects nest deeper than `limit`; `{}` is 1. Looks only at brackets outside strings: exact for
/// JSON, harmless for anything else.
fn nests_deeper(text: &str, limit: u64) -> bool {
    let mut depth = 0_u64;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
