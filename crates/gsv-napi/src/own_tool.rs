//! A tool whose function is JavaScript. It passes the same ledger, limits, cancellation and results as a tool of GSV (rules NJ3
//! to NJ6); what is special is that its function can't be ended from outside, only asked to.

use std::sync::Arc;
use std::time::Duration;

use gsv_tools::{Block, BlockOutput, BoxFuture, CallContext, Effect, Tool, ToolDefinition, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use crate::host::{Answer, Host, Stop};
use crate::schema::Schema;

/// Time in which a function ends after its signal. Shorter than the five seconds that the gateway waits for a late report.
const GRACE: Duration = Duration::from_secs(2);

pub struct OwnTool {
    definition: ToolDefinition,
    schema: Schema,
    host: Arc<Host>,
}

impl OwnTool {
    /// # Errors
    /// What is wrong with the definition.
    pub fn new(definition: ToolDefinition, host: Arc<Host>) -> Result<Self, String> {
        if let Some(problem) = gsv_tools::own::problem(&definition) {
            return Err(problem);
        }
        let schema = Schema::compile(&definition.input_schema)?;
        Ok(Self {
            definition,
            schema,
            host,
        })
    }

    async fn run(&self, args: Value, context: CallContext) -> Result<ToolOutput, ToolError> {
        let bad_args = |bad: crate::schema::BadArgs| ToolError::BadArgs {
            field: bad.field,
            problem: bad.problem,
        };
        self.schema.check(&args).map_err(bad_args)?;
        if context.cancel.is_cancelled() {
            return Err(ToolError::Cancelled { tail: None });
        }
        let begun = Instant::now();
        let handed = self
            .host
            .begin(&context.call_id, &self.definition.name, args, context.progress);
        let Some(mut handed) = handed else {
            return Err(ToolError::Failed(
                "the program that has this tool is ending; nothing was run".to_owned(),
            ));
        };
        let stop = tokio::select! {
            biased;
            answer = handed.answer() => return self.ended(answer, None, begun),
            () = context.cancel.cancelled() => Stop::Cancelled,
            () = at(context.deadline) => Stop::Late,
        };
        handed.stop(stop);
        tokio::select! {
            biased;
            answer = handed.answer() => self.ended(answer, Some(stop), begun),
            () = sleep(GRACE) => Err(self.not_ended(stop, begun)),
        }
    }

    /// The function has ended, or its program has. `stop`: it was asked to end before.
    fn ended(&self, answer: Option<Answer>, stop: Option<Stop>, begun: Instant) -> Result<ToolOutput, ToolError> {
        match (answer, stop) {
            // A result counts also when it comes after the signal.
            (Some(Ok(value)), _) => Ok(output_of(value)),
            (Some(Err(message)), None) => Err(ToolError::Failed(message)),
            (Some(Err(_)), Some(stop)) => Err(stopped(stop, begun)),
            (None, _) => Err(self.unknown("the program that has this tool ended")),
        }
    }

    fn not_ended(&self, stop: Stop, begun: Instant) -> ToolError {
        if self.definition.idempotent {
            stopped(stop, begun)
        } else {
            self.unknown("the tool went on after it was told to stop")
        }
    }

    fn unknown(&self, why: &'static str) -> ToolError {
        if self.definition.idempotent {
            return ToolError::Failed(format!("{why}; call it again"));
        }
        ToolError::OutcomeUnknown {
            why,
            pid: None,
            started_at: None,
            tail: None,
        }
    }
}

impl Tool for OwnTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn capabilities(&self) -> &'static [&'static str] {
        &[]
    }

    fn effect(&self, _: &Value) -> Effect {
        if self.definition.idempotent {
            Effect::ReadOnly
        } else {
            Effect::Mutating
        }
    }

    fn invoke(&self, args: Value, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(args, context))
    }
}

fn stopped(stop: Stop, begun: Instant) -> ToolError {
    match stop {
        Stop::Late => ToolError::Timeout {
            ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        },
        Stop::Cancelled | Stop::Closed => ToolError::Cancelled { tail: None },
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Blocks as a function gives them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Blocks {
    content: Vec<Given>,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum Given {
    #[serde(rename = "text")]
    Text { text: String },
    #[serde(rename = "image", rename_all = "camelCase")]
    Image { data: String, mime_type: String },
}

/// `{content: [blocks]}` as blocks, so that images are kept whole; anything else as JSON.
fn output_of(value: Value) -> ToolOutput {
    let Ok(blocks) = Blocks::deserialize(&value) else {
        return ToolOutput::Json(value);
    };
    let block = |given| match given {
        Given::Text { text } => Block::Text { text },
        Given::Image { data, mime_type } => Block::Image { data, mime_type },
    };
    ToolOutput::Blocks(BlockOutput {
        path: None,
        content: blocks.content.into_iter().map(block).collect(),
    })
}

#[cfg(test)]
#[path = "own_tool_tests.rs"]
mod tests;
