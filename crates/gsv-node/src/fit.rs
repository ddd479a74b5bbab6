//! Fits an outcome into one frame: cuts long text out of the middle, visibly. Never cuts an image.

use gsv_protocol::types::ToolResultParams;
use gsv_protocol::{errors, limits};
use gsv_tools::{Block, ToolOutput};
use serde_json::Value;

use crate::outcome::{CallResult, Outcome};
use crate::scrub::Scrub;

/// Bytes for the frame around the params.
const AROUND_BYTES: usize = 4096;
/// A string is not cut below this; then something else is too large.
const SHORTEST_CUT: usize = 4096;

impl Outcome {
    /// Params of `tool.result`, without tokens. What does not fit is cut in the middle, visibly; what can't be cut becomes an
    /// error.
    pub fn into_params(self, call_id: &str, duration_ms: Option<u64>, scrub: &Scrub) -> ToolResultParams {
        let limit = usize::try_from(limits::FRAME_BYTES).unwrap_or(usize::MAX) - AROUND_BYTES;
        let has_image = self.has_image();
        let mut params = self.params(call_id, duration_ms);
        scrub.result(&mut params);
        let mut size = size_of(&params);
        if size > limit && has_image {
            let error = format!(
                "The image is too large: {size} bytes as text, at most {limit} can be sent. Make a smaller copy and read that."
            );
            return Self::error(&errors::TOOL_TOO_LARGE, error).params(call_id, duration_ms);
        }
        while size > limit {
            let over = size - limit;
            if !cut_longest(&mut params, over) {
                let error = format!(
                    "The result is too large: {size} bytes, at most {limit} can be sent. Ask for less at a time."
                );
                return Self::error(&errors::TOOL_TOO_LARGE, error).params(call_id, duration_ms);
            }
            size = size_of(&params);
        }
        params
    }

    /// Half an image is of no use, so a result with an image is not cut.
    fn has_image(&self) -> bool {
        let Some(CallResult::Output(ToolOutput::Blocks(output))) = &self.result else {
            return false;
        };
        output
            .content
            .iter()
            .any(|block| matches!(block, Block::Image { .. } | Block::StoredImage { .. }))
    }
}

/// Bytes of the params as JSON.
fn size_of(params: &ToolResultParams) -> usize {
    serde_json::to_string(params).map_or(usize::MAX, |text| text.len())
}

/// Whether the outcome can be sent as it is, whatever the call's id. The gateway takes ids of at most 256 characters.
pub fn fits_a_frame(outcome: &Outcome) -> bool {
    const ID: usize = 1024;
    let limit = usize::try_from(limits::FRAME_BYTES).unwrap_or(usize::MAX) - AROUND_BYTES - ID;
    // Without images there is nothing to move; measuring costs as much as writing it out.
    !outcome.has_image() || serde_json::to_string(&outcome.result).is_ok_and(|text| text.len() <= limit)
}

/// Takes at least `over` bytes out of the middle of the longest string. False: no string is long enough to be cut.
fn cut_longest(params: &mut ToolResultParams, over: usize) -> bool {
    let strings = params.result.iter_mut().filter_map(longest).chain(&mut params.error);
    let Some(text) = strings.max_by_key(|text| text.len()) else {
        return false;
    };
    if text.len() <= SHORTEST_CUT {
        return false;
    }
    // A character may take up to six bytes in JSON.
    let in_json = serde_json::to_string(text).map_or(text.len(), |json| json.len());
    let cut = over.saturating_mul(text.len()).div_ceil(in_json.max(1)) + 128;
    let keep = text.len().saturating_sub(cut).max(SHORTEST_CUT / 2);
    let mut head = keep / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - keep / 2;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    *text = format!(
        "{}\n[... {} bytes left out by the node ...]\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    );
    true
}

fn longest(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(items) => items.iter_mut().filter_map(longest).max_by_key(|text| text.len()),
        Value::Object(fields) => fields.values_mut().filter_map(longest).max_by_key(|text| text.len()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gsv_protocol::types::ToolOutcome;
    use gsv_tools::BlockOutput;
    use serde_json::json;

    use super::*;

    const FRAME: usize = 1_048_576;

    #[test]
    fn p19_every_result_fits_a_frame() {
        let control = "\u{1}".repeat(900_000);
        for result in [
            json!({"output": "ü".repeat(900_000)}),
            json!({"output": control}),
            json!(["a".repeat(600_000), "b".repeat(600_000)]),
        ] {
            let params = Outcome::ok(ToolOutput::Json(result)).into_params("c", None, &Scrub::default());
            let text = serde_json::to_string(&params).unwrap();
            assert!(text.len() < FRAME - 1000);
            assert_eq!(params.outcome, Some(ToolOutcome::Ok));
            assert!(text.contains("left out by the node"));
            assert!(text.len() > FRAME / 3, "more was cut than needed");
        }
        let many: Vec<Value> = (0..200_000).map(|number| json!(format!("line {number}"))).collect();
        let params = Outcome::ok(ToolOutput::Json(json!(many))).into_params("c", None, &Scrub::default());
        assert_eq!(
            (params.outcome, params.reason.as_deref()),
            (Some(ToolOutcome::Error), Some("tool.too_large"))
        );
        let image = ToolOutput::Blocks(BlockOutput {
            path: Some("a.png".into()),
            content: vec![Block::Image {
                data: "A".repeat(2_000_000),
                mime_type: "image/png".into(),
            }],
        });
        assert_eq!(
            Outcome::ok(image)
                .into_params("c", None, &Scrub::default())
                .reason
                .as_deref(),
            Some("tool.too_large")
        );
        let small = Outcome::ok(ToolOutput::Json(json!({"output": "x".repeat(1000)}))).into_params(
            "c",
            None,
            &Scrub::default(),
        );
        assert_eq!(small.result.unwrap()["output"].as_str().map(str::len), Some(1000));
    }
}
