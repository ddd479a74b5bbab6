//! The border of the wire: sizes, nesting, broken input. `protocol/test/codec.test.ts` is the twin.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may stop")]

use gsv_protocol::limits::{FRAME_BYTES, FRAME_DEPTH, TRANSFER_CHUNK_BYTES};
use gsv_protocol::methods::{self, METHOD_NAMES};
use gsv_protocol::types::{ConnectAuth, Mode, NodeId, ThinkLevel};
use gsv_protocol::{
    CodecError, ErrorReason, Frame, Method, NoParams, decode_chunk, decode_frame, encode_chunk, encode_frame, errors,
};
use serde_json::{Value, json};

fn size(limit: u64) -> usize {
    usize::try_from(limit).expect("a limit that fits")
}

fn reason(text: &str) -> &'static str {
    decode_frame(text).map_or_else(|error| error.reason().reason, |_| "accepted")
}

fn request(params: Value) -> Frame {
    Frame::Req {
        id: "1".to_owned(),
        method: "chat.send".to_owned(),
        params: Some(params),
    }
}

#[test]
fn p19_a_frame_of_exactly_the_size_limit_passes_one_byte_more_does_not() {
    let shell = encode_frame(&request(json!(""))).expect("a small frame").len();
    let fill = size(FRAME_BYTES) - shell;
    for character in ["x", "\u{e9}", "\u{20ac}", "\u{1F600}"] {
        let body = character.repeat(fill / character.len()) + &"x".repeat(fill % character.len());
        let text = encode_frame(&request(json!(body))).expect("a frame of exactly the limit");
        assert_eq!(text.len() as u64, FRAME_BYTES);
        assert_eq!(reason(&text), "accepted");
        assert!(matches!(
            encode_frame(&request(json!(body + "x"))),
            Err(CodecError::TooLarge { .. })
        ));
        assert_eq!(reason(&(text + " ")), "protocol.too_large");
    }
}

#[test]
fn p19_nesting_of_exactly_the_limit_passes_one_more_does_not_and_any_depth_is_survived() {
    let at = |depth: usize| {
        let inner = "[".repeat(depth - 1) + &"]".repeat(depth - 1);
        format!(r#"{{"type":"evt","event":"x","payload":{inner}}}"#)
    };
    assert_eq!(reason(&at(size(FRAME_DEPTH))), "accepted");
    assert_eq!(reason(&at(size(FRAME_DEPTH) + 1)), "protocol.too_deep");
    assert_eq!(reason(&"[".repeat(size(FRAME_BYTES))), "protocol.too_deep");
    assert_eq!(reason(&r#"{"a":"#.repeat(200_000)), "protocol.too_deep");
    let mut deep = json!(null);
    for _ in 0..FRAME_DEPTH {
        deep = json!([deep]);
    }
    assert!(matches!(encode_frame(&request(deep)), Err(CodecError::TooDeep { .. })));
}

#[test]
fn brackets_inside_strings_are_no_nesting() {
    let text = r#"\"[[[[{{{{"#.repeat(40);
    assert_eq!(
        reason(&json!({ "type": "evt", "event": "x", "payload": text }).to_string()),
        "accepted"
    );
}

#[test]
fn each_kind_of_broken_input_has_its_own_reason() {
    assert_eq!(reason(""), "protocol.invalid_json");
    assert_eq!(reason(r#"{"type":"req""#), "protocol.invalid_json");
    assert_eq!(reason(r#"{"type":"req","id":1,"#), "protocol.invalid_json");
    assert_eq!(reason("null"), "protocol.invalid_frame");
    assert_eq!(reason(r#"{"type":"req","id":"1"}"#), "protocol.invalid_frame");
    assert_eq!(
        reason(r#"{"type":"res","id":"1","ok":true,"error":null}"#),
        "protocol.invalid_frame"
    );
}

#[test]
fn p21_an_unknown_kind_of_frame_is_told_apart() {
    let error = decode_frame(r#"{"type":"sig","id":"7"}"#).expect_err("an unknown kind");
    assert_eq!(
        error,
        CodecError::UnknownType {
            id: Some("7".to_owned())
        }
    );
    assert_eq!(error.reason(), &errors::PROTOCOL_UNSUPPORTED);
}

#[test]
fn a_request_that_does_not_fit_can_be_answered_by_its_id() {
    let error = decode_frame(r#"{"type":"req","id":"7"}"#).expect_err("no method");
    assert_eq!(error.request_id(), Some("7"));
    assert_eq!(
        error.to_string(),
        "the frame does not fit the contract: missing field `method`"
    );
    let long = format!(r#"{{"type":"req","id":"{}"}}"#, "x".repeat(129));
    assert_eq!(decode_frame(&long).expect_err("no method").request_id(), None);
}

#[test]
fn s5_no_error_repeats_the_input() {
    let secret = "hunter2-canary";
    for text in [
        format!(r#"{{"token":"{secret}""#),
        format!(r#"{{"type":"req","id":1,"method":"{secret}"}}"#),
        format!(r#"{{"type":"req","id":"1","method":["{secret}"]}}"#),
        format!(r#"{{"type":"{secret}"}}"#),
        format!(r#""{secret}""#),
    ] {
        let error = decode_frame(&text).expect_err("broken");
        assert!(!format!("{error} {error:?}").contains(secret), "{error:?}");
    }
}

#[test]
fn s5_debug_output_hides_secrets() {
    let auth = ConnectAuth {
        token: Some("hunter2-canary".to_owned()),
    };
    assert_eq!(format!("{auth:?}"), r#"ConnectAuth { token: "***" }"#);
}

#[test]
fn an_explicit_null_is_kept_apart_from_absence() {
    let with_null = r#"{"type":"res","id":"1","ok":true,"payload":null}"#;
    let frame = decode_frame(with_null).expect("a frame");
    assert!(matches!(
        &frame,
        Frame::Res {
            payload: Some(Value::Null),
            ..
        }
    ));
    assert_eq!(encode_frame(&frame).expect("a frame"), with_null);
    let without = r#"{"type":"res","id":"1","ok":true}"#;
    assert_eq!(
        encode_frame(&decode_frame(without).expect("a frame")).expect("a frame"),
        without
    );
}

#[test]
fn a_binary_frame_is_a_little_endian_id_and_its_chunk() {
    let message = encode_chunk(0x0102_0304, &[9, 8]).expect("a small chunk");
    assert_eq!(message, [4, 3, 2, 1, 9, 8]);
    assert_eq!(decode_chunk(&message), Ok((0x0102_0304, &[9, 8][..])));
}

#[test]
fn p19_chunks_over_the_limit_and_torn_headers_are_refused() {
    let limit = size(TRANSFER_CHUNK_BYTES);
    assert!(encode_chunk(1, &vec![0; limit]).is_ok());
    assert!(encode_chunk(1, &vec![0; limit + 1]).is_err());
    assert!(decode_chunk(&vec![0; limit + 4]).is_ok());
    assert!(decode_chunk(&vec![0; limit + 5]).is_err());
    assert!(decode_chunk(&[1, 2, 3]).is_err());
    assert_eq!(decode_chunk(&[1, 0, 0, 0]), Ok((1, &[][..])));
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
fn methods_know_their_names_and_types() {
    fn name<M: Method<Params = NoParams>>() -> &'static str {
        M::NAME
    }
    assert_eq!(name::<methods::ToolsList>(), "tools.list");
    assert!(METHOD_NAMES.is_sorted());
    assert!(METHOD_NAMES.contains(&methods::ChatSend::NAME));
    assert_eq!(serde_json::to_string(&NoParams {}).expect("JSON"), "{}");
    assert!(serde_json::from_str::<NoParams>(r#"{"a":[1]}"#).is_ok());
}
