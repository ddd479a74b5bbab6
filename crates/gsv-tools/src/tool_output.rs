//! The output of a call that succeeded. It stays typed until the caller sends it, so that no reader looks for keys in JSON.

use serde::Serialize;
use serde_json::Value;

use crate::error::ToolError;
use crate::exec::CommandOutput;

/// The output of a tool. Its JSON is the result that the model sees.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ToolOutput {
    /// The output of Bash.
    Command(CommandOutput),
    /// The output of Read for an image, and of tools of other programs.
    Blocks(BlockOutput),
    /// The output of every other call.
    Json(Value),
}

impl ToolOutput {
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, ToolError> {
        serde_json::to_value(value)
            .map(Self::Json)
            .map_err(|error| ToolError::Failed(format!("the result can't be written as JSON: {error}")))
    }
}

/// Content blocks, such as those of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockOutput {
    /// The path of the file. Absent: the blocks are not from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub content: Vec<Block>,
}

/// One content block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum Block {
    #[serde(rename = "text")]
    Text { text: String },
    /// `data` is base64.
    #[serde(rename = "image", rename_all = "camelCase")]
    Image { data: String, mime_type: String },
    /// An image that the gateway stores under `r2_key`.
    #[serde(rename = "image", rename_all = "camelCase")]
    StoredImage { r2_key: String, mime_type: String },
}
