//! `gsv tools`: lists and runs tools.

use std::time::Duration;

use gsv_protocol::NoParams;
use gsv_protocol::methods::{ToolInvoke, ToolsList};
use gsv_protocol::types::ToolInvokeParams;
use serde_json::{Map, Value};

use super::context::Context;
use crate::args::{ToolCall, ToolsCommand};
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::table::Table;

/// The gateway's own bound for a call comes first; this one is for a gateway that does not answer at all.
const PATIENCE: Duration = Duration::from_secs(24 * 3_600);
const MARGIN: Duration = Duration::from_secs(10);

pub async fn run(context: &Context, command: ToolsCommand) -> Outcome {
    let out = context.out;
    match command {
        ToolsCommand::List => {
            let list = context.show::<ToolsList>(NoParams {}, |result| {
                let rows = result.tools.into_iter().map(|tool| [tool.name, tool.description]);
                out.table(&Table::new(["TOOL", "DESCRIPTION"], rows));
            });
            list.await
        }
        ToolsCommand::Call(args) => call(context, args).await,
    }
}

async fn call(context: &Context, call: ToolCall) -> Outcome {
    let timeout_ms = call
        .timeout
        .map(|timeout| u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX));
    let params = ToolInvokeParams {
        tool: call.name,
        args: Some(arguments(&call.args, || context.read_stdin("the arguments as JSON"))?),
        call_id: None,
        timeout_ms,
    };
    let client = context.connect().await?;
    let patience = call.timeout.map_or(PATIENCE, |timeout| timeout + MARGIN);
    let result = client.call_within::<ToolInvoke>(params, patience).await?;
    client.close().await;
    let out = context.out;
    out.show(result, |result| print(out, &result.result.unwrap_or(Value::Null)));
    Ok(())
}

/// Text as text, text blocks one after the other, anything else as JSON.
fn print(out: Output, result: &Value) {
    let blocks = result.get("content").unwrap_or(result).as_array();
    let blocks = blocks.filter(|blocks| !blocks.is_empty());
    let texts: Option<Vec<&str>> =
        blocks.and_then(|blocks| blocks.iter().map(|block| block.get("text")?.as_str()).collect());
    match (result, texts) {
        (Value::Null, _) => {}
        (Value::String(text), _) => out.content(&with_line_end(text)),
        (_, Some(texts)) => out.content(&with_line_end(&texts.join("\n"))),
        _ => out.json_document(result),
    }
}

fn with_line_end(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{end}")
}

/// `{"a": 1}`, or `a=1 b=text`, or `-` for JSON on stdin.
fn arguments(args: &[String], stdin: impl FnOnce() -> Outcome<String>) -> Outcome<Map<String, Value>> {
    let json = match args {
        [only] if only == "-" => Some(stdin()?),
        [only] if only.trim_start().starts_with('{') => Some(only.clone()),
        _ => None,
    };
    if let Some(json) = json {
        return serde_json::from_str(&json).map_err(|error| {
            Failure::usage(
                format!("The arguments are not a JSON object: {error}."),
                "Write them like '{\"path\": \"notes.md\"}', or as path=notes.md.",
            )
        });
    }
    let pair = |pair: &String| {
        let (key, value) = pair.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            Failure::usage(
                format!("`{pair}` is not an argument."),
                "Write arguments as key=value, or as one JSON object.",
            )
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok((key.to_owned(), value))
    };
    args.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(args: &[&str]) -> Outcome<Value> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        arguments(&args, || Ok("{\"from\": \"stdin\"}".to_owned())).map(Value::from)
    }

    #[test]
    fn arguments_are_pairs_or_json() {
        assert_eq!(
            read(&["path=a.md", "limit=5", "all=true", "note=a=b", "empty="]).unwrap(),
            json!({"path": "a.md", "limit": 5, "all": true, "note": "a=b", "empty": ""})
        );
        assert_eq!(read(&["{\"a\": [1]}"]).unwrap(), json!({"a": [1]}));
        assert_eq!(read(&["-"]).unwrap(), json!({"from": "stdin"}));
        assert_eq!(read(&[]).unwrap(), json!({}));
        for wrong in [&["word"][..], &["=x"], &["{nope"], &["{}", "a=1"]] {
            assert_eq!(read(wrong).unwrap_err().exit, crate::exit::Exit::Usage, "{wrong:?}");
        }
    }
}
