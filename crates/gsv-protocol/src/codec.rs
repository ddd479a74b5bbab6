//! Text and binary messages to frames and back, with every limit enforced before anything is parsed.
//!
//! Never panics, never recurses over input, and never repeats input in an error: a frame may carry a secret.

use serde::Deserialize;
use serde_json::error::Category;

use crate::error_table::ErrorReason;
use crate::errors;
use crate::limits::{FRAME_BYTES, FRAME_DEPTH, TRANSFER_CHUNK_BYTES};
use crate::types::Frame;

/// Bytes before the chunk in a binary frame: the transfer id, a little-endian u32.
pub const CHUNK_HEADER_BYTES: usize = 4;
/// The longest request id, in characters: a longer one is not echoed in an answer.
const ID_CHARS: usize = 128;

/// Why a message is not a frame, or a frame can't be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    #[error("the frame has {bytes} bytes, at most {limit} are allowed; send less, or use a transfer")]
    TooLarge { bytes: usize, limit: u64 },
    #[error("the frame is nested deeper than {limit}")]
    TooDeep { limit: u64 },
    #[error("the frame is not valid JSON (line {line}, column {column})")]
    NotJson { line: usize, column: usize },
    /// A kind of frame that a newer peer knows. The socket stays.
    #[error("this kind of frame is not supported here")]
    UnknownType { id: Option<String> },
    /// `id` is there when the sender can be answered.
    #[error("the frame does not fit the contract: {problem}")]
    Invalid { id: Option<String>, problem: String },
    #[error("a binary frame has {bytes} bytes; it has a transfer id of 4 and a chunk of at most {limit}")]
    BadChunk { bytes: usize, limit: u64 },
}

impl CodecError {
    /// The row of the error table to answer with.
    #[must_use]
    pub fn reason(&self) -> &'static ErrorReason {
        match self {
            Self::TooLarge { .. } | Self::BadChunk { .. } => &errors::PROTOCOL_TOO_LARGE,
            Self::TooDeep { .. } => &errors::PROTOCOL_TOO_DEEP,
            Self::NotJson { .. } => &errors::PROTOCOL_INVALID_JSON,
            Self::UnknownType { .. } => &errors::PROTOCOL_UNSUPPORTED,
            Self::Invalid { .. } => &errors::PROTOCOL_INVALID_FRAME,
        }
    }

    /// The id of the request that was refused, when one could be read.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::UnknownType { id } | Self::Invalid { id, .. } => id.as_deref(),
            _ => None,
        }
    }
}

/// A string that is none of an enum's wire names. Does not repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a {expected}")]
pub struct UnknownName {
    pub expected: &'static str,
}

/// Reads one text message.
pub fn decode_frame(text: &str) -> Result<Frame, CodecError> {
    check_text(text)?;
    serde_json::from_str::<Frame>(text).map_err(|error| match error.classify() {
        Category::Data => explain(text, &error),
        Category::Syntax | Category::Eof | Category::Io => not_json(&error),
    })
}

/// Writes one text message.
pub fn encode_frame(frame: &Frame) -> Result<String, CodecError> {
    let text = serde_json::to_string(frame).map_err(|_| CodecError::Invalid {
        id: None,
        problem: "it can't be written as JSON".to_owned(),
    })?;
    check_text(&text)?;
    Ok(text)
}

/// Reads one binary message: the transfer it belongs to, and its bytes.
pub fn decode_chunk(message: &[u8]) -> Result<(u32, &[u8]), CodecError> {
    match message.split_first_chunk::<CHUNK_HEADER_BYTES>() {
        Some((id, chunk)) if chunk.len() as u64 <= TRANSFER_CHUNK_BYTES => Ok((u32::from_le_bytes(*id), chunk)),
        _ => Err(bad_chunk(message.len())),
    }
}

/// Writes one binary message.
pub fn encode_chunk(transfer_id: u32, chunk: &[u8]) -> Result<Vec<u8>, CodecError> {
    if chunk.len() as u64 > TRANSFER_CHUNK_BYTES {
        return Err(bad_chunk(chunk.len().saturating_add(CHUNK_HEADER_BYTES)));
    }
    let mut message = Vec::with_capacity(CHUNK_HEADER_BYTES + chunk.len());
    message.extend_from_slice(&transfer_id.to_le_bytes());
    message.extend_from_slice(chunk);
    Ok(message)
}

fn bad_chunk(bytes: usize) -> CodecError {
    CodecError::BadChunk {
        bytes,
        limit: TRANSFER_CHUNK_BYTES,
    }
}

fn not_json(error: &serde_json::Error) -> CodecError {
    CodecError::NotJson {
        line: error.line(),
        column: error.column(),
    }
}

/// Size and nesting, in one pass that looks only at brackets outside strings.
fn check_text(text: &str) -> Result<(), CodecError> {
    if text.len() as u64 > FRAME_BYTES {
        return Err(CodecError::TooLarge {
            bytes: text.len(),
            limit: FRAME_BYTES,
        });
    }
    if nests_deeper(text, FRAME_DEPTH) {
        return Err(CodecError::TooDeep { limit: FRAME_DEPTH });
    }
    Ok(())
}

/// Whether arrays and objects nest deeper than `limit`; `{}` is 1. Exact for JSON, harmless for anything else.
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

/// What can still be read of a frame that does not fit.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
}

fn explain(text: &str, error: &serde_json::Error) -> CodecError {
    let Ok(head) = serde_json::from_str::<Head>(text) else {
        // Broken JSON behind the first misfit, or an id that is no string.
        return match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => CodecError::Invalid {
                id: None,
                problem: problem(error),
            },
            Err(error) => not_json(&error),
        };
    };
    let id = head.id.filter(|id| (1..=ID_CHARS).contains(&id.chars().count()));
    match head.kind.as_deref() {
        None | Some("req" | "res" | "evt") => CodecError::Invalid {
            id,
            problem: problem(error),
        },
        Some(_) => CodecError::UnknownType { id },
    }
}

/// serde's sentence where it names only our own fields; other sentences repeat the input.
fn problem(error: &serde_json::Error) -> String {
    let sentence = error.to_string();
    let own = sentence.starts_with("missing field") || sentence.starts_with("duplicate field");
    if own {
        sentence
            .split(" at line")
            .next()
            .unwrap_or("a field is missing")
            .to_owned()
    } else {
        "a field has the wrong type".to_owned()
    }
}
