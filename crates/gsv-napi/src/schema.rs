//! Input schemas of tools: compiled when the tool is registered, asked before each call (rules NJ7 and NJ4). Fetches nothing:
//! a reference to another document is a mistake of the schema.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Characters of a problem that the model gets.
const PROBLEM_CHARS: usize = 500;
/// A larger schema is refused: all tools of a node have to fit one frame.
const SCHEMA_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub struct Schema(Validator);

/// Why arguments are not valid.
#[derive(Debug, PartialEq, Eq)]
pub struct BadArgs {
    pub field: String,
    pub problem: String,
}

impl Schema {
    /// # Errors
    /// What is wrong with the schema, in words.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let bytes = schema.to_string().len();
        if bytes > SCHEMA_BYTES {
            return Err(format!(
                "its input schema has {bytes} bytes, at most {SCHEMA_BYTES} are allowed"
            ));
        }
        // Linear in the text: patterns are applied to what a model writes.
        let options = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex());
        match options.build(schema) {
            Ok(validator) => Ok(Self(validator)),
            Err(error) => Err(format!(
                "its input schema is not valid JSON Schema: {}",
                cut(&error.to_string())
            )),
        }
    }

    /// # Errors
    /// The first field that does not fit.
    pub fn check(&self, args: &Value) -> Result<(), BadArgs> {
        self.0.validate(args).map_err(|error| {
            let field = error.instance_path().to_string();
            BadArgs {
                field: if field.is_empty() {
                    "args".to_owned()
                } else {
                    cut(&field[1..])
                },
                problem: cut(&error.masked().to_string()),
            }
        })
    }
}

fn cut(text: &str) -> String {
    text.chars().take(PROBLEM_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nj4_arguments_are_compared_with_the_schema() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "properties": {
                "level": { "type": "integer", "minimum": 0, "maximum": 100 },
                "room": { "type": "string", "pattern": "^[a-z]+$" },
                "scene": { "$ref": "#/$defs/scene" },
            },
            "required": ["level"],
            "additionalProperties": false,
            "$defs": { "scene": { "enum": ["day", "night"] } },
        }))
        .unwrap();
        assert_eq!(
            schema.check(&json!({"level": 5, "room": "kitchen", "scene": "day"})),
            Ok(())
        );
        for (args, field, word) in [
            (json!({}), "args", "level"),
            (json!({"level": "5"}), "level", "integer"),
            (json!({"level": 101}), "level", "100"),
            (json!({"level": 1, "room": "9"}), "room", "match"),
            (json!({"level": 1, "scene": "dusk"}), "scene", "day"),
            (json!({"level": 1, "more": 1}), "args", "more"),
        ] {
            let bad = schema.check(&args).unwrap_err();
            assert_eq!(bad.field, field, "{bad:?}");
            assert!(bad.problem.contains(word), "{bad:?}");
        }
    }

    #[test]
    fn nj4_a_long_text_is_checked_in_linear_time_and_not_repeated_in_the_problem() {
        let schema = Schema::compile(&json!({
            "type": "object", "properties": { "text": { "type": "string", "pattern": "^(a+)+$" } },
        }))
        .unwrap();
        let bad = schema
            .check(&json!({ "text": format!("{}b", "a".repeat(100_000)) }))
            .unwrap_err();
        assert!(
            bad.problem.len() <= PROBLEM_CHARS && !bad.problem.contains("aaaa"),
            "{bad:?}"
        );
    }

    #[test]
    fn nj7_a_schema_that_is_not_one_or_that_needs_another_document_is_refused() {
        for schema in [
            json!({"type": "nothing"}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
            json!({"$ref": "https://example.org/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "#/$defs/missing"}),
            json!({"type": "object", "description": "x".repeat(SCHEMA_BYTES)}),
        ] {
            let problem = Schema::compile(&schema).unwrap_err();
            assert!(problem.starts_with("its input schema"), "{problem}");
        }
    }
}
