//! Glob: files by name, newest first.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use globset::GlobMatcher;
use ignore::WalkState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ages::{Ages, Changed};
use super::{Base, Tree, compile};
use crate::args;
use crate::beneath::{Beneath, WalkOpener};
use crate::error::{ToolError, quote};
use crate::limits;
use crate::tool::{BoxFuture, CallContext, Effect, Stop, Tool, ToolDefinition, read_only};
use crate::tool_output::ToolOutput;

pub(crate) struct Glob {
    pub(crate) files: Arc<Beneath>,
}

#[derive(Deserialize)]
struct Args {
    pattern: String,
    path: Option<String>,
    hidden: Option<bool>,
    limit: Option<u64>,
}

impl Tool for Glob {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "Glob".into(),
            description: "Finds files of this machine by name, newest first. `*.rs` finds at any depth, `src/*.rs` only there, `**` spans directories. \
                Ignored (.gitignore) and hidden files are left out, .git always."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "maxLength": 1024, "description": "Glob, relative to `path`"},
                    "path": {"type": "string", "description": "Directory to search, the workspace by default"},
                    "hidden": {"type": "boolean", "description": "Include hidden files"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": limits::GLOB_MATCHES}
                },
                "required": ["pattern"]
            }),
            idempotent: true,
            timeout_ms: None,
        }
    }

    fn capabilities(&self) -> &'static [&'static str] {
        &["filesystem.list"]
    }

    fn effect(&self, _args: &Value) -> Effect {
        Effect::ReadOnly
    }

    fn invoke(&self, args: Value, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = args::parse(args)?;
            let limit = args::bounded("limit", args.limit, limits::GLOB_MATCHES, limits::GLOB_MATCHES)?;
            let matcher = compile(&self.files, "pattern", &args.pattern)?;
            let files = Arc::clone(&self.files);
            let stop = Stop::new(&context.cancel, limits::GLOB_TIME);
            read_only(
                &context,
                limits::GLOB_TIME + limits::SEARCH_SLACK,
                move || match Base::open(&files, args.path.as_deref())? {
                    Base::Dir(tree) => glob(&tree, &args, &matcher, limit, limits::GLOB_ENTRIES, &stop),
                    Base::File(rel, _) => Err(ToolError::NotADirectory {
                        path: quote(&files.show(&rel)),
                    }),
                },
            )
            .await
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GlobOutput<'a> {
    pattern: &'a str,
    base_path: String,
    count: usize,
    matches: Vec<String>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_directories: Option<usize>,
}

/// At most `most` files are sorted, and at most `limit` of them shown.
fn glob(
    tree: &Tree,
    args: &Args,
    matcher: &GlobMatcher,
    limit: usize,
    most: usize,
    stop: &Stop,
) -> Result<ToolOutput, ToolError> {
    let mut paths = Vec::new();
    let is_cut = AtomicBool::new(false);
    let skipped = tree.search(args.hidden == Some(true), |walk, walker| {
        let found: Mutex<Vec<(Changed, PathBuf)>> = Mutex::default();
        let count = AtomicUsize::new(0);
        walker.run(|| {
            let mut mine = Batch {
                found: &found,
                entries: Vec::new(),
            };
            let (count, is_cut) = (&count, &is_cut);
            let mut ages = Ages::default();
            Box::new(move |entry| {
                if stop.is_due() {
                    is_cut.store(true, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                let Ok(entry) = entry else { return WalkState::Continue };
                if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                    return WalkState::Continue;
                }
                let Some(path) = walk.relative(entry.path()) else {
                    return WalkState::Continue;
                };
                let below = path.strip_prefix(&walk.inner).unwrap_or(path);
                if matcher.is_match(below) {
                    if count.fetch_add(1, Ordering::Relaxed) >= most {
                        is_cut.store(true, Ordering::Relaxed);
                        return WalkState::Quit;
                    }
                    mine.entries.push((ages.of(entry.path()), path.to_path_buf()));
                }
                WalkState::Continue
            })
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        let mut check = WalkOpener::new(&tree.files, &walk.root);
        let total = found.len();
        paths.extend(
            found
                .into_iter()
                .take(limit)
                .filter(|(_, path)| check.exists(path))
                .map(|(_, path)| tree.files.show_path(&walk.shown.join(path))),
        );
        if total > limit {
            is_cut.store(true, Ordering::Relaxed);
        }
    })?;
    ToolOutput::json(&GlobOutput {
        pattern: &args.pattern,
        base_path: tree.files.show(&tree.base),
        count: paths.len(),
        matches: paths,
        truncated: is_cut.into_inner(),
        skipped_directories: (skipped > 0).then_some(skipped),
    })
}

/// The finds of one thread, added to the others when the thread ends.
struct Batch<'a> {
    found: &'a Mutex<Vec<(Changed, PathBuf)>>,
    entries: Vec<(Changed, PathBuf)>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut self.entries);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::beneath::{Resolver, Scope};
    use crate::tool::Cancel;

    /// The result for a folder with three files.
    fn found(most: usize, time: Duration) -> Value {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let files = Arc::new(Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap());
        let Ok(Base::Dir(tree)) = Base::open(&files, None) else {
            panic!("no folder");
        };
        let args: Args = args::parse(json!({"pattern": "*"})).unwrap();
        let matcher = compile(&files, "pattern", "*").unwrap();
        let stop = Stop::new(&Cancel::default(), time);
        let output = glob(&tree, &args, &matcher, 100, most, &stop).unwrap();
        serde_json::to_value(output).unwrap()
    }

    #[test]
    fn th16_more_files_than_can_be_sorted_are_cut_visibly() {
        for (most, count, truncated) in [(2, 2, true), (3, 3, false)] {
            let found = found(most, Duration::from_secs(1000));
            assert_eq!(
                (&found["count"], &found["truncated"]),
                (&json!(count), &json!(truncated))
            );
        }
    }

    #[test]
    fn th16_a_search_that_runs_out_of_time_says_so() {
        assert_eq!(found(100, Duration::ZERO)["truncated"], true);
        assert_eq!(found(100, Duration::from_secs(1000))["truncated"], false);
    }
}
