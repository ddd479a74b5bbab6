//! `gsv tools`.

use std::time::Duration;

use gsv_protocol::NoParams;
use gsv_protocol::methods::{ToolInvoke, ToolsList};
use gsv_protocol::types::{ToolInvokeParams, ToolName};
use serde_json::{Map, Value};

use super::{Context, read_stdin};
use crate::args::ToolsCommand;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::table::Table;

/// The gateway's own bound for a call comes first; this one is for a gateway that says nothing at all.
const PATIENCE: Duration = Duration::from_secs(24 * 3_600);
const MARGIN: Duration = Duration::from_secs(10);

pub async fn run(context: &Context, command: ToolsCommand) -> Outcome {
    match command {
        ToolsCommand::List => list(context).await,
        ToolsCommand::Call { name, args, timeout } => call(context, name, &args, timeout).await,
    }
}

async fn list(context: &Context) -> Outcome {
    let client = context.connect().await?;
    let result = client.call::<ToolsList>(NoParams {}).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
        return Ok(());
    }
    let mut table = Table::new(["TOOL", "WHAT IT DOES"]);
    for tool in result.tools {
        table.row(&[tool.name, tool.description]);
    }
    context.out.table(&table);
    Ok(())
}

async fn call(context: &Context, name: String, args: &[String], timeout: Option<Duration>) -> Outcome {
    let args = arguments(args, context.out)?;
    let timeout_ms = timeout.map(|timeout| u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX));
    let params = ToolInvokeParams {
        tool: ToolName(name),
        args: Some(args),
        call_id: None,
        timeout_ms,
    };
    let client = context.connect().await?;
    let patience = timeout.map_or(PATIENCE, |timeout| timeout + MARGIN);
    let result = client.call_within::<ToolInvoke>(params, patience).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        show(context.out, &result.result.unwrap_or(Value::Null));
    }
    Ok(())
}

/// Text as text, text blocks one after the other, anything else as JSON.
fn show(out: Output, result: &Value) {
    let blocks = result.get("content").unwrap_or(result).as_array();
    let texts: Option<Vec<&str>> = blocks.filter(|blocks| !blocks.is_empty()).and_then(|blocks| {
        blocks
            .iter()
            .map(|block| block.get("text").and_then(Value::as_str))
            .collect()
    });
    match (result, texts) {
        (Value::Null, _) => {}
        (Value::String(text), _) => out.content(&with_line_end(text)),
        (_, Some(texts)) => out.content(&with_line_end(&texts.join("\n"))),
        _ => out.json_document(result),
    }
}

fn with_line_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    }
}

/// `{"a": 1}`, or `a=1 b=text`, or `-`.
fn arguments(args: &[String], out: Output) -> Outcome<Map<String, Value>> {
    let json = match args {
        [only] if only == "-" => Some(read_stdin(out, "the arguments as JSON")?),
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
    let mut map = Map::new();
    for pair in args {
        let (key, value) = pair.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            Failure::usage(
                format!("`{pair}` is not an argument."),
                "Write arguments as key=value, or as one JSON object.",
            )
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        map.insert(key.to_owned(), value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(args: &[&str]) -> Outcome<Value> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        arguments(&args, Output::plain()).map(Value::from)
    }

    #[test]
    fn arguments_are_pairs_or_json() {
        assert_eq!(
            read(&["path=a.md", "limit=5", "all=true", "note=a=b", "empty="]).unwrap(),
            json!({"path": "a.md", "limit": 5, "all": true, "note": "a=b", "empty": ""})
        );
        assert_eq!(read(&["{\"a\": [1]}"]).unwrap(), json!({"a": [1]}));
        assert_eq!(read(&[]).unwrap(), json!({}));
        for wrong in [&["word"][..], &["=x"], &["{nope"], &["{}", "a=1"]] {
            assert_eq!(read(wrong).unwrap_err().exit, crate::exit::Exit::Usage, "{wrong:?}");
        }
    }
}
