//! Read: a window of a text file with line numbers, or an image. Streams, so that memory does not depend on the file's size.

use std::io::{BufRead, BufReader, Read as _, Seek as _};
use std::sync::Arc;

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args;
use crate::beneath::{Beneath, Opened, RelPath};
use crate::error::{ToolError, quote};
use crate::limits;
use crate::text::cut_chars;
use crate::tool::{BoxFuture, CallContext, Effect, Stop, Tool, ToolDefinition, read_only};
use crate::tool_output::{Block, BlockOutput, ToolOutput};

pub(crate) struct Read {
    pub(crate) files: Arc<Beneath>,
}

#[derive(Deserialize)]
struct Args {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl Tool for Read {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "Read".into(),
            description:
                "Reads a file of this machine. Text comes with line numbers (at most 2000 lines or 256 KiB at a time; \
                go on with `offset`), PNG, JPEG, GIF and WebP come as images."
                    .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Path, relative to the workspace"},
                    "offset": {"type": "integer", "minimum": 0, "description": "Lines to skip; 0 is the start"},
                    "limit": {"type": "integer", "minimum": 1, "description": "Lines to read, 2000 by default"}
                },
                "required": ["path"]
            }),
            idempotent: true,
            timeout_ms: None,
        }
    }

    fn capabilities(&self) -> &'static [&'static str] {
        &["filesystem.read"]
    }

    fn effect(&self, _args: &Value) -> Effect {
        Effect::ReadOnly
    }

    fn invoke(&self, args: Value, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = args::parse(args)?;
            let limit = args::bounded("limit", args.limit, limits::READ_LINES, usize::MAX)?;
            let window = Window {
                offset: args.offset.unwrap_or(0),
                limit,
                count_bytes: limits::READ_COUNT_BYTES,
            };
            let rel = self.files.parse(&args.path)?;
            let files = Arc::clone(&self.files);
            let stop = Stop::new(&context.cancel, limits::READ_TIME);
            read_only(&context, limits::READ_TIME + limits::SEARCH_SLACK, move || {
                read(&files, &rel, &window, &stop)
            })
            .await
        })
    }
}

/// The lines of a text file. `total_lines` is absent when the file was too long to count them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextFile {
    path: String,
    content: String,
    lines: usize,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

struct Window {
    offset: u64,
    limit: usize,
    /// Beyond this many bytes of the file its lines are no longer counted.
    count_bytes: u64,
}

fn read(files: &Beneath, rel: &RelPath, window: &Window, stop: &Stop) -> Result<ToolOutput, ToolError> {
    let mut opened = files.open_file(rel)?;
    let path = files.show(rel);
    let failed = |error| ToolError::io(format!("read {}", quote(&path)), error);
    let mut head = Vec::with_capacity(8192);
    (&mut opened.file).take(8192).read_to_end(&mut head).map_err(failed)?;
    if let Some(mime) = image_type(&head) {
        return image(opened, &path, mime);
    }
    if head.contains(&0) {
        return Err(ToolError::Binary {
            path: quote(&path),
            size: opened.size(),
        });
    }
    opened.file.rewind().map_err(failed)?;
    let mut page = Page::default();
    page.fill(BufReader::with_capacity(64 * 1024, opened.file), window, stop)
        .map_err(failed)?;
    if !page.complete {
        return Err(ToolError::Timeout {
            ms: u64::try_from(limits::READ_TIME.as_millis()).unwrap_or(u64::MAX),
        });
    }
    ToolOutput::json(&TextFile {
        note: page.note(window),
        path,
        lines: page.lines,
        truncated: page.truncated,
        total_lines: page.counted.then_some(page.line),
        content: page.content,
    })
}

fn image(opened: Opened, path: &str, mime: &'static str) -> Result<ToolOutput, ToolError> {
    let size = opened.size();
    let mut file = opened.file;
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.take(limits::IMAGE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| ToolError::io(format!("read {}", quote(path)), error))?;
    if bytes.len() as u64 > limits::IMAGE_BYTES {
        return Err(ToolError::TooLarge {
            what: format!("the image {}", quote(path)),
            // It may have grown since.
            size: size.max(bytes.len() as u64),
            limit: limits::IMAGE_BYTES,
            hint: "make a smaller copy with Bash and read that",
        });
    }
    Ok(ToolOutput::Blocks(BlockOutput {
        path: Some(path.to_owned()),
        content: vec![
            Block::Text {
                text: format!("{path}: {mime}, {} bytes", bytes.len()),
            },
            Block::Image {
                data: base64::engine::general_purpose::STANDARD.encode(&bytes),
                mime_type: mime.to_owned(),
            },
        ],
    }))
}

fn image_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The lines of the window, and the number of lines seen in the whole file.
#[derive(Default)]
struct Page {
    content: String,
    lines: usize,
    /// Lines seen so far; the total once `counted`.
    line: u64,
    counted: bool,
    complete: bool,
    truncated: bool,
    /// The line being read: its start, kept, and its full length.
    start: Vec<u8>,
    length: usize,
}

const KEEP: usize = limits::READ_LINE_CHARS * 4;

impl Page {
    fn fill(&mut self, mut input: impl BufRead, window: &Window, stop: &Stop) -> std::io::Result<()> {
        let mut seen = 0u64;
        loop {
            if stop.is_due() || (self.complete && seen >= window.count_bytes) {
                return Ok(());
            }
            let chunk = input.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let used = chunk.len();
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                self.piece(piece, window);
            }
            seen += used as u64;
            input.consume(used);
        }
        if self.length > 0 {
            self.end_line(window);
        }
        self.complete = true;
        self.counted = true;
        Ok(())
    }

    fn piece(&mut self, piece: &[u8], window: &Window) {
        let room = KEEP.saturating_sub(self.start.len());
        if self.is_wanted(window) {
            self.start.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        self.length += piece.len();
        if piece.ends_with(b"\n") {
            self.end_line(window);
        }
    }

    fn is_wanted(&self, window: &Window) -> bool {
        !self.complete && self.line >= window.offset
    }

    fn end_line(&mut self, window: &Window) {
        if self.line >= window.offset {
            if self.complete {
                self.truncated = true;
            } else {
                self.add_line();
                if self.lines >= window.limit {
                    self.complete = true;
                }
            }
        }
        self.line += 1;
        self.start.clear();
        self.length = 0;
    }

    fn add_line(&mut self) {
        let kept = self.start.as_slice();
        // The start holds more than is shown, so a character that it cuts is not shown.
        let is_cut = self.length > kept.len();
        let kept = kept.strip_suffix(b"\n").unwrap_or(kept);
        let kept = kept.strip_suffix(b"\r").unwrap_or(kept);
        let text = String::from_utf8_lossy(kept);
        let shown = cut_chars(&text, limits::READ_LINE_CHARS);
        let mut line = format!("{:6}\t{shown}", self.line + 1);
        if is_cut || shown.len() < text.len() {
            line.extend([
                "… [cut; this line is ".to_owned(),
                self.length.to_string(),
                " bytes]".to_owned(),
            ]);
        }
        line.push('\n');
        if self.content.len() + line.len() > limits::READ_BYTES {
            self.complete = true;
            self.truncated = true;
            return;
        }
        self.content += &line;
        self.lines += 1;
    }

    fn note(&self, window: &Window) -> Option<String> {
        if self.lines == 0 && window.offset > 0 {
            return Some(format!("the file ends before line {}", window.offset.saturating_add(1)));
        }
        if !self.truncated {
            return None;
        }
        let next = window.offset + self.lines as u64;
        let total = if self.counted {
            format!(" of {}", self.line)
        } else {
            String::new()
        };
        Some(format!(
            "lines {} to {next}{total}; go on with offset {next}",
            window.offset + 1
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tool::Cancel;

    fn page(bytes: &[u8], offset: u64, limit: usize, buffer: usize) -> Page {
        let stop = Stop::new(&Cancel::default(), limits::READ_TIME);
        let mut page = Page::default();
        page.fill(
            BufReader::with_capacity(buffer, bytes),
            &Window {
                offset,
                limit,
                count_bytes: limits::READ_COUNT_BYTES,
            },
            &stop,
        )
        .unwrap();
        page
    }

    proptest! {
        #[test]
        fn a_window_equals_a_slice_of_the_lines(text in "[aä\n]{0,80}", offset in 0u64..12, limit in 1usize..12, buffer in 1usize..16) {
            let all: Vec<&str> = text.lines().collect();
            let page = page(text.as_bytes(), offset, limit, buffer);
            let start = usize::try_from(offset).unwrap().min(all.len());
            let end = (start + limit).min(all.len());
            let want = (start..end).map(|at| format!("{:6}\t{}\n", at + 1, all[at])).collect::<Vec<_>>().concat();
            prop_assert_eq!(page.content, want);
            prop_assert_eq!(page.lines, end - start);
            prop_assert_eq!(page.line, all.len() as u64);
            prop_assert_eq!(page.truncated, end < all.len());
        }
    }

    #[test]
    fn p14_a_read_that_runs_out_of_time_has_no_result() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "text").unwrap();
        let files = Beneath::new(
            dir.path(),
            crate::beneath::Scope::Workspace,
            crate::beneath::Resolver::Auto,
        )
        .unwrap();
        let window = Window {
            offset: 0,
            limit: 1,
            count_bytes: 0,
        };
        let stop = Stop::new(&Cancel::default(), std::time::Duration::ZERO);
        let error = read(&files, &files.parse("f").unwrap(), &window, &stop)
            .map(drop)
            .unwrap_err();
        assert_eq!(error.reason(), "tool.timeout");
    }

    #[test]
    fn w26_lines_are_counted_up_to_a_limit() {
        let counted = |bytes: &[u8], count_bytes: u64| {
            let stop = Stop::new(&Cancel::default(), limits::READ_TIME);
            let mut page = Page::default();
            let window = Window {
                offset: 0,
                limit: 1,
                count_bytes,
            };
            page.fill(BufReader::with_capacity(2, bytes), &window, &stop).unwrap();
            (page.counted, page.line)
        };
        assert_eq!(counted(b"1\n2\n3\n", 7), (true, 3));
        assert_eq!(counted(b"1\n2\n3\n", 6), (false, 3), "it may go on");
        assert_eq!(counted(b"1\n2\n3\n", 4), (false, 2));
    }

    #[test]
    fn th19_a_line_is_cut_beyond_2000_characters_of_any_size() {
        let shown = |text: &str| page(text.as_bytes(), 0, 1, 4096).content;
        for character in ["x", "ä", "😀"] {
            let whole = character.repeat(2000);
            assert_eq!(shown(&whole), format!("     1\t{whole}\n"));
            let bytes = 2001 * character.len();
            assert_eq!(
                shown(&character.repeat(2001)),
                format!("     1\t{whole}… [cut; this line is {bytes} bytes]\n")
            );
        }
    }

    #[test]
    fn the_byte_limit_may_be_reached() {
        // 1024 bytes of a result each.
        let line = "x".repeat(1024 - 8) + "\n";
        let lines = limits::READ_BYTES / 1024;
        let whole = page(line.repeat(lines).as_bytes(), 0, 2000, 65536);
        assert_eq!((whole.lines, whole.truncated), (lines, false));
        let cut = page(line.repeat(lines + 1).as_bytes(), 0, 2000, 65536);
        assert_eq!((cut.lines, cut.truncated), (lines, true));
    }

    #[test]
    fn th19_a_very_long_line_is_cut() {
        let bytes = "ä".repeat(5_000_000);
        let page = page(bytes.as_bytes(), 0, 10, 4097);
        assert_eq!(page.lines, 1);
        assert!(page.content.contains("ä… [cut; this line is 10000000 bytes]"));
        assert!(!page.content.contains('\u{FFFD}'));
        assert!(page.content.chars().count() < limits::READ_LINE_CHARS + 60);
    }

    #[test]
    fn the_byte_limit_cuts_between_lines() {
        let line = "x".repeat(999) + "\n";
        let page = page(line.repeat(2000).as_bytes(), 0, 2000, 65536);
        assert!(page.truncated && page.content.len() <= limits::READ_BYTES && page.content.ends_with("x\n"));
        assert_eq!(
            page.note(&Window {
                offset: 0,
                limit: 2000,
                count_bytes: 0
            })
            .unwrap(),
            format!("lines 1 to {0} of 2000; go on with offset {0}", page.lines)
        );
    }
}
