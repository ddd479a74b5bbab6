//! The codec at its borders: sizes, nesting, broken input, the looser frames of the reference gateway.
//! `protocol/test/codec.test.ts` tests the gateway's side.

use gsv_protocol::codec::{
    CodecError, EncodedRequest, Incoming, RECEIVED_BYTES, RECEIVED_DEPTH, UNKNOWN_REASON, decode, read_greeting,
};
use gsv_protocol::limits::{FRAME_BYTES, FRAME_DEPTH};
use gsv_protocol::methods::{ChatSend, NodesList};
use gsv_protocol::types::{ChatSendParams, ConfigSetParams, ConnectAuth, ErrorShape, Mode, NodeId, ThinkLevel};
use gsv_protocol::{ErrorReason, Event, EventName, Json, Method, NoParams, Request, errors};
use serde_json::{Value, json};

fn size(limit: u64) -> usize {
    usize::try_from(limit).expect("a limit that fits")
}

fn set(value: Value) -> Request {
    Request::ConfigSet(ConfigSetParams {
        path: "p".to_owned(),
        value,
    })
}

fn error_of(error: &str) -> ErrorShape {
    let text = format!(r#"{{"type":"res","id":"1","ok":false,"error":{error}}}"#);
    match decode(&text) {
        Ok(Incoming::Answer {
            outcome: Err(error), ..
        }) => error,
        other => panic!("{other:?}"),
    }
}

fn event_of(text: &str) -> Event {
    match decode(text) {
        Ok(Incoming::Event { event, .. }) => event,
        other => panic!("{other:?}"),
    }
}

#[test]
fn fr4_a_request_is_the_same_frame_under_every_id() {
    let request: Request =
        serde_json::from_value(json!({"method": "chat.send", "params": {"sessionKey": "s", "message": "m"}}))
            .expect("a request");
    let encoded = EncodedRequest::new(&request, size(FRAME_BYTES)).expect("a small frame");
    for id in ["1", "12345"] {
        let frame: Value = serde_json::from_str(&encoded.frame(id)).expect("JSON");
        assert_eq!(
            frame,
            json!({"type":"req","id":id,"method":"chat.send","params":{"sessionKey":"s","message":"m"}})
        );
    }
    let bare = EncodedRequest::new(&NodesList::request(NoParams {}), size(FRAME_BYTES)).expect("a small frame");
    assert_eq!(
        bare.frame("7"),
        r#"{"type":"req","id":"7","method":"nodes.list","params":{}}"#
    );
}

#[test]
fn p19_a_request_of_exactly_the_size_limit_passes_and_one_byte_more_does_not() {
    let longest_id = u64::MAX.to_string();
    let encode = |text: String| EncodedRequest::new(&set(json!(text)), size(FRAME_BYTES));
    let shell = encode(String::new()).expect("a small frame").frame(&longest_id).len();
    let fill = size(FRAME_BYTES) - shell;
    for character in ["x", "\u{e9}", "\u{20ac}", "\u{1F600}"] {
        let body = character.repeat(fill / character.len()) + &"x".repeat(fill % character.len());
        let frame = encode(body.clone())
            .expect("a frame of exactly the limit")
            .frame(&longest_id);
        assert_eq!(frame.len() as u64, FRAME_BYTES);
        assert!(matches!(encode(body + "x"), Err(CodecError::TooLarge { .. })));
    }
}

#[test]
fn p19_a_request_that_nests_to_the_limit_passes_and_one_level_more_does_not() {
    // The frame and the params are two levels.
    let nest = |levels: u64| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert!(EncodedRequest::new(&set(nest(FRAME_DEPTH - 2)), size(FRAME_BYTES)).is_ok());
    assert_eq!(
        EncodedRequest::new(&set(nest(FRAME_DEPTH - 1)), size(FRAME_BYTES)),
        Err(CodecError::TooDeep { limit: FRAME_DEPTH })
    );
}

#[test]
fn p19_incoming_frames_have_limits_too_and_any_depth_is_survived() {
    let at = |depth: usize| {
        let inner = "[".repeat(depth - 1) + &"]".repeat(depth - 1);
        format!(r#"{{"type":"evt","event":"x","payload":{inner}}}"#)
    };
    assert!(decode(&at(size(RECEIVED_DEPTH))).is_ok());
    let too_deep = Err(CodecError::TooDeep { limit: RECEIVED_DEPTH });
    assert_eq!(decode(&at(size(RECEIVED_DEPTH) + 1)), too_deep);
    assert_eq!(decode(&"[".repeat(size(FRAME_BYTES))), too_deep);
    assert_eq!(decode(&r#"{"a":"#.repeat(200_000)), too_deep);
    let padded = |bytes: usize| format!(r#"{{"type":"res","id":"1","ok":true}}{}"#, " ".repeat(bytes - 33));
    assert_eq!(padded(100).len(), 100);
    assert!(decode(&padded(RECEIVED_BYTES)).is_ok());
    assert!(matches!(
        decode(&padded(RECEIVED_BYTES + 1)),
        Err(CodecError::TooLarge { .. })
    ));
}

#[test]
fn brackets_inside_strings_are_not_nesting() {
    let text = r#"\"[[[[{{{{"#.repeat(40);
    assert!(decode(&json!({ "type": "evt", "event": "x", "payload": text }).to_string()).is_ok());
}

#[test]
fn fr1_broken_frames_are_errors_and_never_panics() {
    for text in ["", r#"{"type":"req""#] {
        assert!(matches!(decode(text), Err(CodecError::NotJson { .. })), "{text}");
    }
    for text in ["null", "[]", "{}", r#"{"type":"res"}"#, r#"{"type":"evt"}"#] {
        assert!(matches!(decode(text), Err(CodecError::Invalid { .. })), "{text}");
    }
    assert!(decode(r#"{"type":7}"#).is_err());
    let error = decode(r#"{"type":"res","ok":true}"#).expect_err("no id");
    assert_eq!(
        error.to_string(),
        "the frame does not fit the contract: missing field `id`"
    );
}

#[test]
fn p21_an_unknown_kind_of_frame_and_an_unknown_event_are_told_apart() {
    assert_eq!(decode(r#"{"type":"sig","id":"7"}"#), Err(CodecError::UnknownType));
    assert_eq!(decode(r#"{"type":"req","id":"7","method":"x"}"#), Ok(Incoming::Request));
    let unknown = event_of(r#"{"type":"evt","event":"later.thing","payload":{"a":1}}"#);
    assert!(matches!(unknown, Event::Unknown(event) if event.name == "later.thing"));
}

#[test]
fn fr2_events_are_typed_and_a_payload_that_does_not_fit_is_kept_as_it_came() {
    let text = r#"{"type":"evt","event":"tool.cancel","payload":{"callId":"c","reason":"r","later":1},"seq":3}"#;
    let Ok(Incoming::Event {
        event: Event::ToolCancel(cancel),
        seq: Some(3),
    }) = decode(text)
    else {
        panic!("not a tool.cancel")
    };
    assert_eq!((cancel.call_id.as_str(), cancel.reason.as_str()), ("c", "r"));
    let Event::Malformed(event) = event_of(r#"{"type":"evt","event":"tool.cancel","payload":{"callId":"c"}}"#) else {
        panic!("not malformed")
    };
    assert_eq!(
        (event.name, event.problem.as_str(), event.payload.as_str()),
        (EventName::ToolCancel, "missing field `reason`", r#"{"callId":"c"}"#)
    );
    assert!(matches!(
        event_of(r#"{"type":"evt","event":"tool.cancel"}"#),
        Event::Malformed(_)
    ));
}

#[test]
fn errors_of_the_reference_gateway_have_no_reason_and_are_understood_by_their_number() {
    let error = error_of(r#"{"code":401,"message":"Unauthorized"}"#);
    assert_eq!(
        (error.code, error.reason.as_str(), error.message.as_str()),
        (401, "auth.required", "Unauthorized")
    );
    for (code, row) in [
        (101, errors::PROTOCOL_NOT_CONNECTED),
        (102, errors::PROTOCOL_VERSION),
        (103, errors::PROTOCOL_BAD_CONNECT),
        (403, errors::AUTH_FORBIDDEN),
        (413, errors::PROTOCOL_TOO_LARGE),
        (429, errors::LIMIT_RATE),
        (500, errors::INTERNAL),
    ] {
        assert_eq!(error_of(&json!({ "code": code }).to_string()).reason, row.reason);
    }
    // 404 means different things on the two gateways.
    assert_eq!(error_of(r#"{"code":404,"reason":""}"#).reason, UNKNOWN_REASON);
    assert_eq!(error_of("null").reason, UNKNOWN_REASON);
    assert_eq!(error_of(r#"{"reason":"later.reason"}"#).reason, "later.reason");
}

#[test]
fn a_greeting_needs_only_a_protocol_version() {
    let greet = |hello: Value| read_greeting(&Json::of(&hello).expect("JSON"));
    let full = greet(json!({
        "type": "hello-ok", "protocol": 1, "server": {"version": "1", "connectionId": "c"},
        "features": {"methods": ["a"], "events": []}, "scopes": ["read"], "pingIntervalMs": 5,
    }));
    assert_eq!(
        (full.scopes, full.ping_interval_ms),
        (Some(vec!["read".to_owned()]), Some(5))
    );
    let bare = greet(
        json!({"type": "hello-ok", "protocol": 1, "server": {"version": 7, "connectionId": "c"}, "features": []}),
    );
    assert_eq!(
        (
            bare.protocol,
            bare.server.version.as_str(),
            bare.server.connection_id.as_str()
        ),
        (1, "", "c")
    );
    assert!(bare.features.methods.is_empty());
    for nothing in [json!(null), json!({}), json!({"protocol": "1"}), json!("1")] {
        assert_eq!(greet(nothing).protocol, 0);
    }
}

#[test]
fn s5_no_error_repeats_the_input() {
    let secret = "hunter2-canary";
    for text in [
        format!(r#"{{"token":"{secret}""#),
        format!(r#"{{"type":"res","id":1,"ok":"{secret}"}}"#),
        format!(r#"{{"type":"res","id":["{secret}"]}}"#),
        format!(r#"{{"type":"{secret}"}}"#),
        format!(r#""{secret}""#),
    ] {
        let error = decode(&text).expect_err("broken");
        assert!(!format!("{error} {error:?}").contains(secret), "{error:?}");
    }
    let event = format!(r#"{{"type":"evt","event":"tool.cancel","payload":{{"callId":["{secret}"]}}}}"#);
    assert!(!format!("{:?}", decode(&event)).contains(secret));
}

#[test]
fn s5_debug_output_hides_secrets() {
    let auth = ConnectAuth {
        token: Some("hunter2-canary".to_owned()),
    };
    assert_eq!(format!("{auth:?}"), r#"ConnectAuth { token: "[redacted]" }"#);
    let answer = decode(r#"{"type":"res","id":"1","ok":true,"payload":{"token":"hunter2-canary"}}"#);
    assert!(!format!("{answer:?}").contains("hunter2-canary"));
}

#[test]
fn errors_are_found_by_reason() {
    for row in errors::ERRORS {
        assert_eq!(ErrorReason::find(row.reason), Some(row));
    }
    assert_eq!(ErrorReason::find("nothing.of_the_kind"), None);
    let shape = errors::NODE_OFFLINE.to_shape();
    assert_eq!(
        (shape.code, shape.reason.as_str(), shape.retryable),
        (480, "node.offline", Some(true))
    );
}

#[test]
fn names_convert_both_ways() {
    assert_eq!(Mode::Node.to_string(), "node");
    assert_eq!("xhigh".parse(), Ok(ThinkLevel::Xhigh));
    assert_eq!(
        "nope".parse::<ThinkLevel>().map_err(|error| error.to_string()),
        Err("not a ThinkLevel".to_owned())
    );
    assert_eq!(NodeId::from("laptop").as_str(), "laptop");
}

#[test]
fn a_request_knows_its_method_and_reads_back() {
    let params: ChatSendParams =
        serde_json::from_value(json!({"sessionKey": "s", "message": "m"})).expect("params of chat.send");
    let request = ChatSend::request(params);
    assert_eq!((request.method(), ChatSend::NAME), ("chat.send", "chat.send"));
    let text = serde_json::to_string(&request).expect("JSON");
    assert_eq!(serde_json::from_str::<Request>(&text).expect("a request"), request);
    for without_params in [
        r#"{"method":"tools.list"}"#,
        r#"{"method":"tools.list","params":null}"#,
        r#"{"method":"tools.list","params":{"a":[1]}}"#,
    ] {
        let request: Request = serde_json::from_str(without_params).expect(without_params);
        assert_eq!(request, Request::ToolsList(NoParams {}));
    }
}
