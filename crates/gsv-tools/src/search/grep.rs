//! Grep: lines by regular expression, in parallel, in the order of `rg --sort=path`.
//!
//! The regex engine is linear in its input. Once enough matches are known, files that sort after the last of them are
//! left out, so a frequent pattern costs little and the answer does not depend on which thread was faster.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use ignore::WalkState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::best::{Best, Bound};
use super::lines::{Found, Lines, Match};
use super::{Base, Walk, compile};
use crate::args;
use crate::beneath::{Beneath, Opened, RelPath, WalkOpener};
use crate::error::ToolError;
use crate::limits;
use crate::tool::{BoxFuture, CallContext, Effect, Stop, Tool, ToolDefinition, read_only};
use crate::tool_output::ToolOutput;

pub(crate) struct Grep {
    pub(crate) files: Arc<Beneath>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    pattern: String,
    path: Option<String>,
    include: Option<String>,
    ignore_case: Option<bool>,
    context: Option<u64>,
    before: Option<u64>,
    after: Option<u64>,
    files_only: Option<bool>,
    hidden: Option<bool>,
    limit: Option<u64>,
}

impl Tool for Grep {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "Grep".into(),
            description: "Searches the files of this machine for lines that match a regular expression (Rust syntax, no look-around or back-references). \
                Ignored (.gitignore), hidden, binary and very large files are left out; at most 100 matches, sorted by path."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "maxLength": limits::GREP_PATTERN_BYTES, "description": "Regular expression"},
                    "path": {"type": "string", "description": "File or directory to search, the workspace by default"},
                    "include": {"type": "string", "description": "Glob of the files to search, such as *.{ts,tsx}"},
                    "ignoreCase": {"type": "boolean"},
                    "context": {"type": "integer", "minimum": 0, "maximum": limits::GREP_CONTEXT_LINES, "description": "Lines to show before and after each match"},
                    "before": {"type": "integer", "minimum": 0, "maximum": limits::GREP_CONTEXT_LINES},
                    "after": {"type": "integer", "minimum": 0, "maximum": limits::GREP_CONTEXT_LINES},
                    "filesOnly": {"type": "boolean", "description": "Only the first match of each file"},
                    "hidden": {"type": "boolean", "description": "Include hidden files"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": limits::GREP_MATCHES}
                },
                "required": ["pattern"]
            }),
            idempotent: true,
            timeout_ms: None,
        }
    }

    fn capabilities(&self) -> &'static [&'static str] {
        &["text.search"]
    }

    fn effect(&self, _args: &Value) -> Effect {
        Effect::ReadOnly
    }

    fn invoke(&self, args: Value, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = args::parse(args)?;
            let plan = Plan::new(&self.files, &args)?;
            let files = Arc::clone(&self.files);
            let stop = Stop::new(&context.cancel, limits::GREP_TIME);
            read_only(&context, limits::GREP_TIME + limits::SEARCH_SLACK, move || {
                plan.run(&files, &args, &stop)
            })
            .await
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GrepOutput<'a> {
    pattern: &'a str,
    base_path: String,
    count: usize,
    matches: Vec<Match>,
    truncated: bool,
    /// The search ran out of time, so there may be more matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_out: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_large_files: Option<usize>,
    /// They may have another name in a private folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_linked_files: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_directories: Option<usize>,
}

struct Plan {
    matcher: RegexMatcher,
    include: Option<GlobMatcher>,
    before: usize,
    after: usize,
    limit: usize,
    files_only: bool,
}

impl Plan {
    fn new(files: &Beneath, args: &Args) -> Result<Self, ToolError> {
        if args.pattern.is_empty() || args.pattern.len() > limits::GREP_PATTERN_BYTES {
            return Err(ToolError::bad_args("pattern", "must be from 1 to 1024 bytes"));
        }
        let lines = |field, value: Option<u64>| match value.or(args.context) {
            Some(lines) if lines > limits::GREP_CONTEXT_LINES as u64 => {
                Err(ToolError::bad_args(field, "must be at most 5"))
            }
            lines => Ok(usize::try_from(lines.unwrap_or(0)).unwrap_or(0)),
        };
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(args.ignore_case == Some(true))
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .size_limit(16 << 20)
            .dfa_size_limit(64 << 20)
            .build(&args.pattern)
            .map_err(|error| ToolError::bad_args("pattern", error.to_string()))?;
        Ok(Self {
            matcher,
            include: args
                .include
                .as_deref()
                .map(|include| compile(files, "include", include))
                .transpose()?,
            before: lines("before", args.before)?,
            after: lines("after", args.after)?,
            limit: args::bounded("limit", args.limit, limits::GREP_MATCHES, limits::GREP_MATCHES)?,
            files_only: args.files_only == Some(true),
        })
    }

    fn searcher(&self) -> Searcher {
        // One more than shown, to know whether there are more.
        let most = if self.files_only { 1 } else { self.limit as u64 + 1 };
        SearcherBuilder::new()
            .line_number(true)
            .memory_map(MmapChoice::never())
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.before)
            .after_context(self.after)
            .max_matches(Some(most))
            .build()
    }

    fn run(&self, files: &Arc<Beneath>, args: &Args, stop: &Stop) -> Result<ToolOutput, ToolError> {
        let best = Best::new(self.limit + 1);
        let (too_large, unclear, out_of_time) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let (base, skipped) = match Base::open(files, args.path.as_deref())? {
            Base::File(rel, opened) => (self.one_file(&rel, &opened, &best, &too_large), 0),
            Base::Dir(tree) => {
                let skipped = tree.search(args.hidden == Some(true), |walk, walker| {
                    walker.run(|| {
                        let mut thread = Thread {
                            plan: self,
                            walk,
                            best: &best,
                            bound: Bound::default(),
                            searcher: self.searcher(),
                            matcher: self.matcher.clone(),
                            opener: WalkOpener::new(&tree.files, &walk.root),
                            too_large: &too_large,
                            unclear: &unclear,
                        };
                        let out_of_time = &out_of_time;
                        Box::new(move |entry| {
                            if stop.is_due() {
                                out_of_time.store(true, Ordering::Relaxed);
                                return WalkState::Quit;
                            }
                            entry.map_or(WalkState::Continue, |entry| thread.visit(&entry))
                        })
                    });
                })?;
                (tree.base.clone(), skipped)
            }
        };
        let (mut matches, mut is_cut) = (Vec::new(), out_of_time.load(Ordering::Relaxed));
        for (path, found) in best.into_sorted() {
            let path = files.show_path(&path);
            for found in found {
                if matches.len() == self.limit {
                    is_cut = true;
                    break;
                }
                matches.push(found.into_match(&path, self.before > 0, self.after > 0));
            }
        }
        let counted = |count: usize| (count > 0).then_some(count);
        ToolOutput::json(&GrepOutput {
            pattern: &args.pattern,
            base_path: files.show(&base),
            count: matches.len(),
            matches,
            truncated: is_cut,
            timed_out: out_of_time.into_inner().then_some(true),
            skipped_large_files: counted(too_large.into_inner()),
            skipped_linked_files: counted(unclear.into_inner()),
            skipped_directories: counted(skipped),
        })
    }

    fn one_file(&self, rel: &RelPath, opened: &Opened, best: &Best, too_large: &AtomicUsize) -> RelPath {
        if opened.size() > limits::GREP_FILE_BYTES {
            too_large.fetch_add(1, Ordering::Relaxed);
        } else if let Some(found) = self.search(&mut self.searcher(), &self.matcher, opened) {
            best.add(&rel.joined(), found);
        }
        rel.clone()
    }

    fn search(&self, searcher: &mut Searcher, matcher: &RegexMatcher, opened: &Opened) -> Option<Vec<Found>> {
        let mut lines = Lines::new(matcher, self.before, self.after);
        // A file that can't be read to its end counts as not matching, as a binary one does.
        searcher.search_file(matcher, &opened.file, &mut lines).ok()?;
        lines.into_found()
    }
}

struct Thread<'a> {
    plan: &'a Plan,
    walk: &'a Walk,
    best: &'a Best,
    bound: Bound,
    searcher: Searcher,
    matcher: RegexMatcher,
    opener: WalkOpener<'a>,
    too_large: &'a AtomicUsize,
    unclear: &'a AtomicUsize,
}

impl Thread<'_> {
    fn visit(&mut self, entry: &ignore::DirEntry) -> WalkState {
        let Some(kind) = entry.file_type() else {
            return WalkState::Continue;
        };
        let Some(path) = self.walk.relative(entry.path()) else {
            return WalkState::Continue;
        };
        if self.best.excludes(&mut self.bound, &self.walk.shown, path) {
            // For a file, Skip and Continue are the same.
            return WalkState::Skip;
        }
        if kind.is_file() && self.is_included(path) {
            self.file(path);
        }
        WalkState::Continue
    }

    fn is_included(&self, path: &Path) -> bool {
        self.plan
            .include
            .as_ref()
            .is_none_or(|include| include.is_match(path.strip_prefix(&self.walk.inner).unwrap_or(path)))
    }

    fn file(&mut self, path: &Path) {
        let Some(opened) = self.opener.open(path) else {
            self.unclear
                .fetch_add(std::mem::take(&mut self.opener.unclear), Ordering::Relaxed);
            return;
        };
        if opened.size() > limits::GREP_FILE_BYTES {
            self.too_large.fetch_add(1, Ordering::Relaxed);
        } else if let Some(found) = self.plan.search(&mut self.searcher, &self.matcher, &opened) {
            self.best.add(&self.walk.shown.join(path), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::beneath::{Resolver, Scope};
    use crate::tool::Cancel;

    #[test]
    fn th16_a_search_that_runs_out_of_time_says_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "needle\n").unwrap();
        let files = Arc::new(Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap());
        let args: Args = args::parse(json!({"pattern": "needle"})).unwrap();
        let plan = Plan::new(&files, &args).unwrap();
        for (time, count) in [(Duration::from_secs(1000), 1), (Duration::ZERO, 0)] {
            let stop = Stop::new(&Cancel::default(), time);
            let found = serde_json::to_value(plan.run(&files, &args, &stop).unwrap()).unwrap();
            assert_eq!(found["count"], count);
            assert_eq!(found["truncated"], count == 0);
            assert_eq!(found.get("timedOut").is_some(), count == 0);
        }
    }
}
