//! Reading and writing frames. Lenient where the published reference gateway differs (its errors carry no `reason`),
//! strict about size. Knows nothing of order or time.

use gsv_protocol::types::{ConnectResult, ErrorShape};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What came in.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    Response {
        id: String,
        outcome: Result<Value, ErrorShape>,
    },
    Event {
        name: String,
        payload: Value,
        seq: Option<u64>,
    },
    /// A request: the gateway never sends one.
    Request { id: String },
}

#[derive(Deserialize)]
struct LooseFrame {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    ok: Option<bool>,
    #[serde(default)]
    payload: Option<Value>,
    #[serde(default)]
    error: Option<LooseError>,
    #[serde(default)]
    event: Option<String>,
    #[serde(default)]
    seq: Option<u64>,
}
#[derive(Deserialize)]
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

/// # Errors
/// A short cause, without the frame's content.
pub fn decode(text: &str) -> Result<Incoming, String> {
    let frame: LooseFrame = serde_json::from_str(text).map_err(|error| format!("not a frame: {error}"))?;
    match frame.kind.as_str() {
        "res" => {
            let id = frame.id.ok_or("a response without an id")?;
            let outcome = match (frame.ok.unwrap_or(false), frame.error) {
                (true, _) => Ok(frame.payload.unwrap_or(Value::Null)),
                (false, error) => Err(shape(error)),
            };
            Ok(Incoming::Response { id, outcome })
        }
        "evt" => {
            let name = frame.event.ok_or("an event without a name")?;
            Ok(Incoming::Event {
                name,
                payload: frame.payload.unwrap_or(Value::Null),
                seq: frame.seq,
            })
        }
        "req" => Ok(Incoming::Request {
            id: frame.id.ok_or("a request without an id")?,
        }),
        other => Err(format!(
            "a frame of type {:?}",
            other.chars().take(32).collect::<String>()
        )),
    }
}

fn shape(error: Option<LooseError>) -> ErrorShape {
    let Some(error) = error else {
        return ErrorShape {
            code: 0,
            reason: UNKNOWN_REASON.into(),
            message: String::new(),
            hint: None,
            details: None,
            retryable: None,
        };
    };
    let reason = error
        .reason
        .filter(|reason| !reason.is_empty())
        .unwrap_or_else(|| reason_of_code(error.code).into());
    ErrorShape {
        code: error.code,
        reason,
        message: error.message.unwrap_or_default(),
        hint: error.hint,
        details: error.details,
        retryable: error.retryable,
    }
}

/// Stands where a gateway gave no reason and its number says nothing.
pub const UNKNOWN_REASON: &str = "unknown";

/// Only numbers that mean the same on the reference gateway.
fn reason_of_code(code: u32) -> &'static str {
    match code {
        101 => "protocol.not_connected",
        102 => "protocol.version",
        103 => "protocol.bad_connect",
        401 => "auth.required",
        403 => "auth.forbidden",
        413 => "protocol.too_large",
        429 => "limit.rate",
        500 => "internal",
        _ => UNKNOWN_REASON,
    }
}

#[derive(Serialize)]
struct Body<'a> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Value>,
}

/// A request without its id, so that it can be sent again under another id with exactly the same content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBody(String);

impl RequestBody {
    /// # Errors
    /// A short cause: nested too deeply, or (unreachable for a [`Value`]) serde's.
    pub fn new(method: &str, params: Option<&Value>) -> Result<Self, String> {
        let deepest = usize::try_from(gsv_protocol::limits::FRAME_DEPTH).unwrap_or(usize::MAX);
        if params.is_some_and(|params| !fits_depth(params, deepest.saturating_sub(1))) {
            return Err(format!("it is nested deeper than {deepest}"));
        }
        serde_json::to_string(&Body { method, params })
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// The frame's text. `id` must need no escaping.
    pub fn frame(&self, id: &str) -> String {
        // The body is an object with at least `method`, so its first byte is the brace that is replaced here.
        format!("{{\"type\":\"req\",\"id\":\"{id}\",{}", &self.0[1..])
    }

    pub fn frame_bytes(&self, id: &str) -> usize {
        self.0.len() + id.len() + "{\"type\":\"req\",\"id\":\"\",".len() - 1
    }
}

fn fits_depth(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left > 0 && items.iter().all(|item| fits_depth(item, left - 1)),
        Value::Object(fields) => left > 0 && fields.values().all(|field| fits_depth(field, left - 1)),
        _ => true,
    }
}

/// A gateway whose greeting lacks something optional to us is still a gateway.
pub fn read_hello(hello: &Value) -> ConnectResult {
    use gsv_protocol::types::{ConnectResultType, Features, ServerInfo};
    serde_json::from_value(hello.clone()).unwrap_or_else(|_| {
        let text = |path: &str| {
            hello
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let list = |path: &str| {
            let items = hello
                .pointer(path)
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        ConnectResult {
            r#type: ConnectResultType::HelloOk,
            protocol: 1,
            server: ServerInfo {
                version: text("/server/version"),
                connection_id: text("/server/connectionId"),
            },
            features: Features {
                methods: list("/features/methods"),
                events: list("/features/events"),
            },
            fingerprint: None,
            scopes: None,
            ping_interval_ms: None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_errors_of_the_reference_gateway_which_have_no_reason() {
        let frame =
            decode(r#"{"type":"res","id":"1","ok":false,"error":{"code":401,"message":"Unauthorized"}}"#).unwrap();
        let Incoming::Response {
            outcome: Err(error), ..
        } = frame
        else {
            panic!("{frame:?}")
        };
        assert_eq!(
            (error.code, error.reason.as_str(), error.message.as_str()),
            (401, "auth.required", "Unauthorized")
        );
    }

    #[test]
    fn a_request_is_the_same_frame_whatever_its_id() {
        let body = RequestBody::new("tool.result", Some(&json!({"callId": "a/b", "ok": true}))).unwrap();
        for id in ["1", "12345"] {
            let text = body.frame(id);
            assert_eq!(text.len(), body.frame_bytes(id));
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                value,
                json!({"type":"req","id":id,"method":"tool.result","params":{"callId":"a/b","ok":true}})
            );
        }
        let bare: Value = serde_json::from_str(&RequestBody::new("nodes.list", None).unwrap().frame("7")).unwrap();
        assert_eq!(bare, json!({"type":"req","id":"7","method":"nodes.list"}));
    }

    #[test]
    fn refuses_what_is_nested_too_deeply_f1() {
        let nest = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(RequestBody::new("x", Some(&nest(31))).is_ok());
        assert!(RequestBody::new("x", Some(&nest(32))).is_err());
    }

    #[test]
    fn garbage_is_an_error_never_a_panic_f1() {
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"type":"res"}"#,
            r#"{"type":"evt"}"#,
            r#"{"type":7}"#,
            r#"{"type":"zap","id":"1"}"#,
        ] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
