//! Edit: replaces exact text in a file. Works on bytes, so that all other bytes stay unchanged.

use std::io::Read as _;
use std::sync::Arc;

use rustix::fs::Stat;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args;
use crate::beneath::{Beneath, RelPath};
use crate::error::{ToolError, quote};
use crate::limits;
use crate::tool::{BoxFuture, CallContext, Effect, Tool, ToolDefinition, mutating};
use crate::tool_output::ToolOutput;
use crate::undo::{Keeper, Kept};
use crate::write::{WriteLock, check_size, with_note};

pub(crate) struct Edit {
    pub(crate) files: Arc<Beneath>,
    pub(crate) write_lock: Arc<WriteLock>,
    pub(crate) keeper: Keeper,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    path: String,
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

impl Tool for Edit {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "Edit".into(),
            description: "Replaces text in a file of this machine. `oldString` must be in the file exactly once, white space included, \
                unless `replaceAll` is set. In a file with CRLF line ends, plain line ends of both strings stand for CRLF."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Path, relative to the workspace"},
                    "oldString": {"type": "string", "minLength": 1, "description": "The text to replace, without line numbers"},
                    "newString": {"type": "string", "description": "The text to put there"},
                    "replaceAll": {"type": "boolean", "description": "Replace every occurrence"}
                },
                "required": ["path", "oldString", "newString"]
            }),
            idempotent: false,
            timeout_ms: None,
        }
    }

    fn capabilities(&self) -> &'static [&'static str] {
        &["filesystem.edit"]
    }

    fn effect(&self, _args: &Value) -> Effect {
        Effect::Mutating
    }

    fn invoke(&self, args: Value, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = args::parse(args)?;
            let rel = self.files.parse(&args.path)?;
            if args.old_string.is_empty() {
                return Err(ToolError::bad_args(
                    "oldString",
                    "it is empty; to make a file use Write",
                ));
            }
            if args.old_string == args.new_string {
                return Err(ToolError::bad_args(
                    "newString",
                    "it is the same as oldString, so nothing would change",
                ));
            }
            let (files, write_lock, keeper) = (
                Arc::clone(&self.files),
                Arc::clone(&self.write_lock),
                self.keeper.clone(),
            );
            let call = context.call_id.clone();
            mutating(&context, move || {
                write_lock.run(|| Draft::new(&files, &rel, &args)?.save(&files, &rel, &keeper, &call))
            })
            .await
            .map(ToolOutput::Json)
        })
    }
}

/// The new content of a file, made from one state of it.
struct Draft {
    content: Vec<u8>,
    replacements: usize,
    made_from: Stat,
}

impl Draft {
    fn new(files: &Beneath, rel: &RelPath, args: &Args) -> Result<Self, ToolError> {
        let path = files.show(rel);
        let opened = files.open_file(rel)?;
        let size = opened.size();
        let mut bytes = Vec::new();
        opened
            .file
            .take(limits::EDIT_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| ToolError::io(format!("read {}", quote(&path)), error))?;
        if bytes.len() as u64 > limits::EDIT_FILE_BYTES {
            return Err(ToolError::TooLarge {
                what: quote(&path),
                // It may have grown since.
                size: size.max(bytes.len() as u64),
                limit: limits::EDIT_FILE_BYTES,
                hint: "change it with Bash (sed, perl)",
            });
        }
        if bytes.iter().take(8192).any(|byte| *byte == 0) {
            return Err(ToolError::Binary {
                path: quote(&path),
                size: bytes.len() as u64,
            });
        }
        let (content, replacements) = replace(&bytes, args).map_err(|count| match count {
            0 => ToolError::NoMatch {
                path: quote(&path),
                hint: hint(&bytes, &args.old_string),
            },
            count => ToolError::Ambiguous {
                path: quote(&path),
                count,
            },
        })?;
        check_size(&path, content.len())?;
        Ok(Self {
            content,
            replacements,
            made_from: opened.stat,
        })
    }

    /// Writes the content, unless the file was changed after the draft was made.
    fn save(&self, files: &Beneath, rel: &RelPath, keeper: &Keeper, call: &str) -> Result<Value, ToolError> {
        let mut kept = Kept::Yes;
        files.write_after(rel, &self.content, Some(&self.made_from), &mut |target| {
            kept = keeper.keep(files, call, target, Some(&self.content))?;
            Ok(())
        })?;
        let result = json!({"path": files.show(rel), "replacements": self.replacements});
        Ok(with_note(result, kept))
    }
}

/// The new content and its number of replacements. Error: the number of matches, when it is not allowed.
fn replace(bytes: &[u8], args: &Args) -> Result<(Vec<u8>, usize), usize> {
    let crlf = has_only_crlf(bytes);
    let adapt = |text: &str| {
        if crlf {
            text.replace("\r\n", "\n").replace('\n', "\r\n")
        } else {
            text.to_owned()
        }
    };
    let (old, new) = (adapt(&args.old_string), adapt(&args.new_string));
    let matches = find_all(bytes, old.as_bytes());
    if matches.is_empty() || (matches.len() > 1 && args.replace_all != Some(true)) {
        return Err(matches.len());
    }
    let mut content = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for at in &matches {
        content.extend_from_slice(&bytes[from..*at]);
        content.extend_from_slice(new.as_bytes());
        from = at + old.len();
    }
    content.extend_from_slice(&bytes[from..]);
    Ok((content, matches.len()))
}

fn has_only_crlf(bytes: &[u8]) -> bool {
    let mut any = false;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' {
            if at == 0 || bytes[at - 1] != b'\r' {
                return false;
            }
            any = true;
        }
    }
    any
}

/// Where `needle` starts, without overlaps, in linear time (Knuth, Morris, Pratt).
fn find_all(hay: &[u8], needle: &[u8]) -> Vec<usize> {
    let mut border = vec![0; needle.len()];
    let mut length = 0;
    for at in 1..needle.len() {
        while length > 0 && needle[at] != needle[length] {
            length = border[length - 1];
        }
        if needle[at] == needle[length] {
            length += 1;
        }
        border[at] = length;
    }
    let mut found = Vec::new();
    let mut matched = 0;
    for (at, byte) in hay.iter().enumerate() {
        while matched > 0 && *byte != needle[matched] {
            matched = border[matched - 1];
        }
        if *byte == needle[matched] {
            matched += 1;
        }
        if matched == needle.len() {
            found.push(at + 1 - needle.len());
            matched = 0;
        }
    }
    found
}

fn hint(bytes: &[u8], old: &str) -> &'static str {
    let trimmed = old.trim();
    if !trimmed.is_empty() && trimmed.len() < old.len() && !find_all(bytes, trimmed.as_bytes()).is_empty() {
        return " (the file has it with other white space around it)";
    }
    if old.contains('\n') && bytes.contains(&b'\r') {
        return " (the file mixes line ends)";
    }
    ""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::beneath::{Resolver, Scope};

    fn args(old: &str, new: &str, all: bool) -> Args {
        Args {
            path: String::new(),
            old_string: old.into(),
            new_string: new.into(),
            replace_all: Some(all),
        }
    }

    proptest! {
        #[test]
        fn find_all_agrees_with_the_standard_library(hay in "[ab\n]{0,60}", needle in "[ab\n]{1,5}") {
            let want: Vec<usize> = hay.match_indices(&needle).map(|(at, _)| at).collect();
            prop_assert_eq!(find_all(hay.as_bytes(), needle.as_bytes()), want);
        }

        #[test]
        fn replace_all_agrees_with_the_standard_library(hay in "[abc]{0,60}", old in "[ab]{1,3}", new in "[a-c]{0,3}") {
            match replace(hay.as_bytes(), &args(&old, &new, true)) {
                Ok((content, count)) => {
                    prop_assert_eq!(content, hay.replace(&old, &new).into_bytes());
                    prop_assert_eq!(count, hay.matches(&old).count());
                }
                Err(count) => prop_assert!(count == 0 && !hay.contains(&old)),
            }
        }

        #[test]
        fn a_crlf_file_stays_a_crlf_file(lines in proptest::collection::vec("[ab]{0,3}", 2..8), new in "[ab\n]{1,5}") {
            let file = lines.join("\r\n") + "\r\n";
            if let Ok((content, _)) = replace(file.as_bytes(), &args("a", &new, true)) {
                prop_assert!(has_only_crlf(&content));
            }
        }
    }

    #[test]
    fn f75_an_edit_does_not_overwrite_a_file_that_changed_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        let files = Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap();
        let rel = files.parse("f").unwrap();
        std::fs::write(&file, "one two").unwrap();
        let draft = Draft::new(&files, &rel, &args("one", "1", false)).unwrap();
        std::fs::write(&file, "another program's longer text").unwrap();
        assert!(matches!(
            draft.save(&files, &rel, &Keeper::default(), "c"),
            Err(ToolError::Changed { .. })
        ));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "another program's longer text");
        std::fs::write(&file, "one two").unwrap();
        Draft::new(&files, &rel, &args("one", "1", false))
            .and_then(|draft| draft.save(&files, &rel, &Keeper::default(), "c"))
            .unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1 two");
    }

    #[test]
    fn a_file_with_both_line_ends_is_changed_as_it_is_written() {
        assert_eq!(
            replace(b"a\r\nb\nc", &args("b\nc", "x", false)),
            Ok((b"a\r\nx".to_vec(), 1))
        );
        assert_eq!(
            replace(b"\na\r\n", &args("\na", "b", false)),
            Ok((b"b\r\n".to_vec(), 1))
        );
    }

    #[test]
    fn a_hint_is_given_only_when_it_helps() {
        assert_eq!(
            hint(b"a b", " a\n"),
            " (the file has it with other white space around it)"
        );
        assert_eq!(hint(b"x\r\ny\n", "q\nz"), " (the file mixes line ends)");
        for (file, old) in [
            ("abc", "zz"),
            ("abc", "b"),
            ("abc", "  "),
            ("a\r\nb", "zz"),
            ("ab", "z\nq"),
        ] {
            assert_eq!(hint(file.as_bytes(), old), "", "{file:?} {old:?}");
        }
    }

    #[test]
    fn no_match_and_several_matches_give_their_count() {
        assert_eq!(replace(b"a a a", &args("a", "b", false)), Err(3));
        assert_eq!(replace(b"a a a", &args("x", "b", true)), Err(0));
        assert_eq!(
            replace(b"x\r\ny\r\n", &args("x\ny", "z", false)),
            Ok((b"z\r\n".to_vec(), 1))
        );
        assert_eq!(
            replace(b"\xff a \xfe", &args("a", "b", false)),
            Ok((b"\xff b \xfe".to_vec(), 1))
        );
    }
}
