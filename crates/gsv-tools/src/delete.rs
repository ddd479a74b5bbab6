//! Delete: removes one regular file or one symlink. Never removes a directory or the target of a symlink.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args;
use crate::beneath::Beneath;
use crate::error::ToolError;
use crate::tool::{BoxFuture, CallContext, Effect, Tool, ToolDefinition, mutating};
use crate::tool_output::ToolOutput;
use crate::undo::{Keeper, Kept};
use crate::write::{WriteLock, with_note};

pub(crate) struct Delete {
    pub(crate) files: Arc<Beneath>,
    pub(crate) write_lock: Arc<WriteLock>,
    pub(crate) keeper: Keeper,
}

#[derive(Deserialize)]
struct Args {
    path: String,
}

impl Tool for Delete {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "Delete".into(),
            description: "Removes one file or symlink of this machine. Directories are not removed.".into(),
            input_schema: json!({
                "type": "object",
                "properties": {"path": {"type": "string", "description": "Path, relative to the workspace"}},
                "required": ["path"]
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
            let (files, write_lock, keeper) = (
                Arc::clone(&self.files),
                Arc::clone(&self.write_lock),
                self.keeper.clone(),
            );
            let call = context.call_id.clone();
            mutating(&context, move || {
                let mut kept = Kept::Yes;
                write_lock.run(|| {
                    files.remove_after(&rel, &mut |target| {
                        kept = keeper.keep(&files, &call, target, None)?;
                        Ok(())
                    })
                })?;
                Ok(with_note(json!({"path": files.show(&rel), "deleted": true}), kept))
            })
            .await
            .map(ToolOutput::Json)
        })
    }
}
