//! `gsv config edit`: the whole configuration in the user's editor. The gateway checks it as a whole; on a terminal, a refused file is
//! opened again with the reason. Secrets are masked by the gateway and never reach the file.

use std::io::{self, IsTerminal};

use gsv_protocol::errors;
use gsv_protocol::methods::{ConfigGet, ConfigReplace};
use gsv_protocol::types::{ConfigGetParams, ConfigReplaceParams};
use serde_json::Value;

use super::context::Context;
use crate::clean::{clean, one_line};
use crate::draft::Draft;
use crate::exit::{Failure, Outcome};

const HEAD: &str = "Every setting, with defaults. A setting that you remove gets its default; a secret stays as it is while it is masked.
Save and close the file to store it. Lines that begin with // are not read.";
/// What is wrong with the text; the next opening shows it.
const REPAIRABLE: [&str; 4] = [
    errors::CONFIG_UNKNOWN_PATH.reason,
    errors::CONFIG_INVALID.reason,
    errors::CONFIG_NOT_SERVED.reason,
    errors::CONFIG_TOO_LARGE.reason,
];

pub async fn run(context: &Context) -> Outcome {
    let out = context.out;
    let shown = context.ask::<ConfigGet>(ConfigGetParams { path: None }).await?;
    let (Some(config), Some(version)) = (shown.config, shown.version) else {
        return Err(Failure::failed(
            "The gateway is older and has no `config edit`.",
            "Update it, or change one setting: `gsv config set PATH VALUE`.",
        ));
    };
    let draft = Draft::new("config-edit", "json", "One setting: `gsv config set PATH VALUE`.")?;
    let original = pretty(&config);
    let mut body = original.clone();
    let mut refused: Option<Failure> = None;
    // Without a person, an editor that is a program makes the same mistake each time.
    let is_watched = io::stdin().is_terminal();
    loop {
        if let Some(failure) = refused.take_if(|_| !is_watched) {
            return Err(draft.kept(failure));
        }
        let text = format!("{}{body}", comment(refused.as_ref()));
        let edited = draft.edit(&text, |typed| without_comments(typed) == original)?;
        if edited == text {
            return match refused {
                None => {
                    draft.remove();
                    out.note("Nothing was changed.");
                    Ok(())
                }
                Some(failure) => Err(draft.kept(failure)),
            };
        }
        body = without_comments(&edited);
        let wanted = match serde_json::from_str::<Value>(&blanked(&edited)) {
            Ok(wanted) => wanted,
            Err(error) => {
                refused = Some(Failure::usage(
                    format!("The file is not valid JSON: {error}."),
                    "Correct that line.",
                ));
                continue;
            }
        };
        if wanted == config {
            draft.remove();
            out.note("Nothing was changed.");
            return Ok(());
        }
        let params = ConfigReplaceParams {
            config: wanted,
            version,
        };
        match context.ask::<ConfigReplace>(params).await {
            Ok(result) => {
                draft.remove();
                out.warn_all(result.warnings.as_deref());
                let paths: Vec<String> = result.changed.iter().map(|path| one_line(path, 200)).collect();
                let words = if paths.is_empty() {
                    "Nothing was changed: what you removed has its default already.".to_owned()
                } else {
                    format!("changed: {}", paths.join(", "))
                };
                out.done(&result, &words);
                return Ok(());
            }
            Err(failure)
                if failure
                    .reason
                    .as_deref()
                    .is_some_and(|reason| REPAIRABLE.contains(&reason)) =>
            {
                refused = Some(failure);
            }
            Err(failure) => return Err(draft.kept(failure)),
        }
    }
}

fn pretty(config: &Value) -> String {
    let text = serde_json::to_string_pretty(config).unwrap_or_default();
    format!("{text}\n")
}

/// The head of the file: what it is, or why it was refused.
fn comment(refused: Option<&Failure>) -> String {
    let text = refused.map_or_else(
        || HEAD.to_owned(),
        |failure| {
            let next = failure.next_step().map(|next| format!("\n{next}")).unwrap_or_default();
            format!(
                "Nothing was stored. {}{next}\nCorrect it and save, or close the file without a change to give up.",
                failure.message
            )
        },
    );
    let lines: Vec<String> = clean(&text).lines().map(|line| format!("// {line}")).collect();
    format!("{}\n", lines.join("\n"))
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn without_comments(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !is_comment(line)).collect()
}

/// With empty lines for comments, so that the lines of an error are those of the file.
fn blanked(text: &str) -> String {
    text.lines()
        .map(|line| {
            if is_comment(line) {
                "\n".to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cf3_comments_are_not_read_and_lines_of_errors_are_those_of_the_file() {
        let text = "// head\n{\n  // why\n  \"a\": 1,\n}\n";
        let error = serde_json::from_str::<Value>(&blanked(text)).unwrap_err();
        assert_eq!(error.line(), 5, "{error}");
        assert_eq!(without_comments(text), "{\n  \"a\": 1,\n}\n");
        assert!(comment(None).lines().all(is_comment));
        let refused = Failure::usage("model.id: one\ntwo", "Do this.");
        assert!(comment(Some(&refused)).lines().all(is_comment));
    }
}
