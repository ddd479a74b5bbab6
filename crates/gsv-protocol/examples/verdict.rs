//! Reads lines `<type> <json>` and prints for each how Rust reads it: `ok <json as written again>`, or `no`.
//! Driven by `scripts/codegen/differential.ts`; never part of a product.
#![allow(clippy::expect_used, reason = "a development tool may stop")]

#[path = "../tests/contract/golden_types.rs"]
mod golden_types;

use std::io::{self, BufRead, Write};

fn verdict(line: &str) -> Option<String> {
    let (name, text) = line.split_once(' ')?;
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
