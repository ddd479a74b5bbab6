//! Files that the agent sends with an answer: their names, sizes, and where a person finds them. Fetches nothing.

use std::path::{Component, Path};

use gsv_protocol::types::ChatMessage;
use serde_json::Value;

use crate::clean::{clean, one_line};
use crate::embedded::layout::Layout;
use crate::units::bytes;

const NAME_COLUMNS: usize = 120;

#[derive(Debug, Clone, PartialEq)]
pub struct SentFile {
    pub name: String,
    pub size: Option<u64>,
    pub key: String,
}

/// The files of a message, in order.
pub fn files_of(message: &ChatMessage) -> Vec<SentFile> {
    let file = |block: &serde_json::Map<String, Value>| {
        let text = |name: &str| block.get(name).and_then(Value::as_str);
        let key = text("r2Key")?;
        let name = text("filename").or_else(|| key.rsplit('/').next()).unwrap_or(key);
        Some(SentFile {
            name: name.to_owned(),
            size: block.get("sizeBytes").and_then(Value::as_u64),
            key: key.to_owned(),
        })
    };
    message.content.iter().filter_map(file).collect()
}

/// `file: plan.pdf (12 KiB): /home/me/.gsv/workspace/media/...`, or where the gateway has it.
pub fn line(file: &SentFile, layout: Option<&Layout>) -> String {
    let size = file.size.map(|size| format!(" ({})", bytes(size))).unwrap_or_default();
    let name = one_line(&file.name, NAME_COLUMNS);
    // The gateway of this machine keeps its files as plain files under their keys.
    let is_plain = Path::new(&file.key)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let local = layout
        .filter(|_| is_plain)
        .map(|layout| layout.workspace().join(&file.key));
    let place = match local.filter(|path| path.is_file()) {
        Some(path) => path.display().to_string(),
        None => format!("the gateway has it under /{} (HTTP, with your token)", file.key),
    };
    format!("file: {name}{size}: {}", clean(&place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn p12_1_a_sent_file_is_named_with_its_size_and_place() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: dir.path().to_owned(),
        };
        let key = "media/agent%3Amain/0001.pdf";
        let path = layout.workspace().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        let content = json!([
            {"type": "text", "text": "Here it is."},
            {"type": "document", "r2Key": key, "mimeType": "application/pdf", "filename": "plan\u{1b}[2J.pdf", "sizeBytes": 1536},
            {"type": "image", "r2Key": "../../etc/passwd", "mimeType": "image/png"},
        ]);
        let message: ChatMessage = serde_json::from_value(json!({"role": "assistant", "content": content})).unwrap();
        let lines: Vec<String> = files_of(&message)
            .iter()
            .map(|file| line(file, Some(&layout)))
            .collect();
        assert_eq!(lines[0], format!("file: plan.pdf (1.5 KiB): {}", path.display()));
        assert_eq!(
            lines[1],
            "file: passwd: the gateway has it under /../../etc/passwd (HTTP, with your token)"
        );
        assert_eq!(lines.len(), 2);
    }
}
