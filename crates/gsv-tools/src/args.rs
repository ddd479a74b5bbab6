//! Reads a tool's arguments: a wrong type is an error that names the field; unknown fields are ignored.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ToolError;
use crate::text::cut_chars;

pub(crate) fn parse<T: DeserializeOwned>(args: Value) -> Result<T, ToolError> {
    if !args.is_object() {
        return Err(ToolError::bad_args("args", "must be an object"));
    }
    serde_path_to_error::deserialize(args).map_err(|error| {
        let problem = error.inner().to_string();
        // A missing field has no path of its own; serde names it in the text: missing field `path`.
        let missing = problem
            .strip_prefix("missing field `")
            .and_then(|rest| rest.split('`').next())
            .map(str::to_owned);
        let field = missing.clone().unwrap_or_else(|| error.path().to_string());
        let problem = if missing.is_some() {
            "it is required".to_owned()
        } else {
            cut_chars(&problem, 200).to_owned()
        };
        ToolError::BadArgs { field, problem }
    })
}

/// Refuses numbers outside `1..=max`.
pub(crate) fn bounded(field: &str, value: Option<u64>, default: usize, max: usize) -> Result<usize, ToolError> {
    match value {
        None => Ok(default),
        Some(value) => usize::try_from(value)
            .ok()
            .filter(|value| (1..=max).contains(value))
            .ok_or_else(|| ToolError::bad_args(field, format!("must be from 1 to {max}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Args {
        #[expect(dead_code, reason = "only read")]
        path: String,
    }
    fn refused(args: Value) -> String {
        parse::<Args>(args).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_argument_is_named_with_what_is_wrong() {
        let missing = refused(json!({}));
        assert!(
            missing.contains("path") && missing.contains("it is required"),
            "{missing}"
        );
        let wrong = refused(json!({"path": 1}));
        assert!(wrong.contains("path") && wrong.contains("expected a string"), "{wrong}");
        let list = refused(json!(["path"]));
        assert!(list.contains("must be an object"), "{list}");
    }
}
