//! Reads lines `<type> <json>` and says of each what Rust makes of it: `ok <json as written again>`, or `no`.
//! The type `@frame` goes through the codec. Driven by `scripts/codegen/differential.ts`; never part of a product.
#![allow(clippy::expect_used, reason = "a development tool may stop")]

#[path = "../tests/golden_types/mod.rs"]
mod golden_types;

use std::io::{self, BufRead, Write};

use gsv_protocol::{decode_frame, encode_frame};

fn verdict(line: &str) -> Option<String> {
    let (name, text) = line.split_once(' ')?;
    if name == "@frame" {
        return encode_frame(&decode_frame(text).ok()?).ok();
    }
    Some(golden_types::read(name, text)?.ok()?.to_string())
}

fn main() {
    debug_assert!(golden_types::TYPE_NAMES.is_sorted());
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line.expect("lines of UTF-8");
        match verdict(&line) {
            Some(text) => writeln!(out, "ok {text}").expect("a reader"),
            None => writeln!(out, "no").expect("a reader"),
        }
    }
}
