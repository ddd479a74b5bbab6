//! Write: replaces or creates a whole file, atomically. Never appends; creates regular files only.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args;
use crate::beneath::Beneath;
use crate::error::{ToolError, quote};
use crate::limits;
use crate::tool::{BoxFuture, CallContext, Effect, Tool, ToolDefinition, mutating};
use crate::tool_output::ToolOutput;
use crate::undo::{Keeper, Kept};

pub(crate) struct Write {
    pub(crate) files: Arc<Beneath>,
    pub(crate) lock: Arc<WriteLock>,
    pub(crate) keeper: Keeper,
}

/// How often a file is written that other programs change at the same time.
const TRIES: usize = 3;

/// Serialises changes of files, so that two edits of one file do not overwrite each other.
#[derive(Default)]
pub(crate) struct WriteLock(std::sync::Mutex<()>);

impl WriteLock {
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        // The lock guards no data, so a panic under it leaves nothing broken.
        let _held = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work()
    }
}

#[derive(Deserialize)]
struct Args {
    path: String,
    content: String,
}

impl Tool for Write {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "Write".into(),
            description: "Writes a whole file of this machine, replacing what was there; makes missing directories. To change a part of a file use Edit.".into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Path, relative to the workspace"},
                    "content": {"type": "string", "description": "The file's whole content"}
                },
                "required": ["path", "content"]
            }),
            idempotent: false,
            timeout_ms: None,
        }
    }

    fn capabilities(&self) -> &'static [&'static str] {
        &["filesystem.write"]
    }

    fn effect(&self, _args: &Value) -> Effect {
        Effect::Mutating
    }

    fn invoke(&self, args: Value, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = args::parse(args)?;
            let rel = self.files.parse(&args.path)?;
            check_size(&args.path, args.content.len())?;
            let (files, write_lock, keeper) = (Arc::clone(&self.files), Arc::clone(&self.lock), self.keeper.clone());
            let call = context.call_id.clone();
            mutating(&context, move || {
                let bytes = args.content.as_bytes();
                let mut kept = Kept::Yes;
                let mut attempt = || {
                    files.write_after(&rel, bytes, None, &mut |target| {
                        kept = keeper.keep(&files, &call, target, Some(bytes))?;
                        Ok(())
                    })
                };
                write_lock.run(|| {
                    for _ in 1..TRIES {
                        match attempt() {
                            Err(ToolError::Changed { .. }) => {}
                            done => return done,
                        }
                    }
                    attempt()
                })?;
                Ok(with_note(json!({"path": files.show(&rel), "bytes": bytes.len()}), kept))
            })
            .await
            .map(ToolOutput::Json)
        })
    }
}

/// The result of a change, with a note when it can't be undone.
pub(crate) fn with_note(mut result: Value, kept: Kept) -> Value {
    if let Some(note) = kept.note() {
        result["undo"] = note.into();
    }
    result
}

pub(crate) fn check_size(path: &str, size: usize) -> Result<(), ToolError> {
    if size <= limits::WRITE_BYTES {
        return Ok(());
    }
    Err(ToolError::TooLarge {
        what: format!("the content for {}", quote(path)),
        size: size as u64,
        limit: limits::WRITE_BYTES as u64,
        hint: "write it in parts, or use a transfer",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p19_content_may_have_as_many_bytes_as_the_limit_says() {
        assert!(check_size("a", limits::WRITE_BYTES).is_ok());
        assert_eq!(
            check_size("a", limits::WRITE_BYTES + 1).unwrap_err().reason(),
            "file.too_large"
        );
    }
}
