//! PURE. What a program may offer as a tool of its own, beside the tools of this crate (rule NJ7). The limits are those of the
//! contract: a gateway refuses a node whose tools do not keep them.

use serde_json::Value;

use crate::tool::ToolDefinition;

/// The tools of this crate. The gateway knows what a call of them does by the name alone, so no other tool may have one.
pub const BUILT_IN: [&str; 8] = ["Bash", "Process", "Read", "Write", "Edit", "Delete", "Glob", "Grep"];
/// Tools of one node.
pub const TOOLS: usize = 64;
const NAME_CHARS: usize = 128;
const DESCRIPTION_CHARS: usize = 8192;
const TIMEOUT_MAX_MS: u32 = 24 * 60 * 60 * 1000;
/// Between a node's id and the name of its tool.
const SEPARATOR: &str = "__";

/// Why a definition can't be offered. `None`: it can.
pub fn problem(definition: &ToolDefinition) -> Option<String> {
    let ToolDefinition {
        name,
        description,
        input_schema,
        timeout_ms,
        ..
    } = definition;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_plain) || name.len() > NAME_CHARS {
        return Some(format!(
            "a name has at most {NAME_CHARS} letters, digits, `_`, `.` and `-`, the first a letter"
        ));
    }
    if name.contains(SEPARATOR) {
        return Some("a name can't contain `__`, which separates a machine from its tools".to_owned());
    }
    if BUILT_IN.contains(&name.as_str()) {
        return Some("the name belongs to a tool of GSV, so choose another".to_owned());
    }
    if description.chars().count() > DESCRIPTION_CHARS {
        return Some(format!("its description has more than {DESCRIPTION_CHARS} characters"));
    }
    if input_schema.get("type").and_then(Value::as_str) != Some("object") {
        return Some("the type of its input schema must be `object`".to_owned());
    }
    if timeout_ms.is_some_and(|ms| ms == 0 || ms > TIMEOUT_MAX_MS) {
        return Some(format!("its time must be from 1 to {TIMEOUT_MAX_MS} ms"));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({ "type": "object" }),
            idempotent: false,
            timeout_ms: None,
        }
    }

    #[test]
    fn nj7_names_that_the_gateway_would_refuse_or_take_for_another_tool_are_refused() {
        for name in ["Lights", "a", "A.b-c_d9", &"x".repeat(128)] {
            assert_eq!(problem(&tool(name)), None, "{name}");
        }
        for (name, word) in [
            ("", "first a letter"),
            ("9a", "first a letter"),
            ("_a", "first a letter"),
            ("Licht an", "letters"),
            ("größer", "letters"),
            (&"x".repeat(129), "at most 128"),
            ("a__b", "`__`"),
            ("Read", "tool of GSV"),
            ("Bash", "tool of GSV"),
        ] {
            let said = problem(&tool(name)).unwrap();
            assert!(said.contains(word), "{name}: {said}");
        }
    }

    #[test]
    fn nj7_a_definition_keeps_the_limits_of_the_contract() {
        let with = |change: &dyn Fn(&mut ToolDefinition)| {
            let mut definition = tool("Lights");
            change(&mut definition);
            problem(&definition)
        };
        assert_eq!(with(&|tool| tool.description = "ü".repeat(8192)), None);
        assert!(with(&|tool| tool.description = "ü".repeat(8193)).is_some());
        assert_eq!(with(&|tool| tool.timeout_ms = Some(86_400_000)), None);
        assert!(with(&|tool| tool.timeout_ms = Some(86_400_001)).is_some());
        assert!(with(&|tool| tool.timeout_ms = Some(0)).is_some());
        for schema in [
            json!({}),
            json!(true),
            json!({"type": "string"}),
            json!({"type": ["object"]}),
            json!([]),
        ] {
            assert!(with(&|tool| tool.input_schema = schema.clone()).is_some(), "{schema}");
        }
    }
}
