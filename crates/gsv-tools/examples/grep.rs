//! Times Grep on a directory, to compare with `rg`: `cargo run --release --example grep -- PATTERN DIR [TIMES]`.
//! Prints the best time and the number of matches.
#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::time::{Duration, Instant};

use gsv_tools::{CallContext, Config, ToolBox};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [pattern, dir, ..] = args.as_slice() else {
        return Err("usage: grep PATTERN DIR [TIMES]".into());
    };
    let times: u32 = args.get(2).map_or(Ok(5), |times| times.parse())?;
    let spool = std::env::temp_dir().join(format!("gsv-grep-{}", std::process::id()));
    let tools = ToolBox::new(Config::new(dir, &spool))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut best, mut count) = (Duration::MAX, 0);
    for _ in 0..times {
        let started = Instant::now();
        let found = runtime.block_on(tools.invoke(
            "Grep",
            serde_json::json!({ "pattern": pattern }),
            CallContext::new("grep"),
        ))?;
        best = best.min(started.elapsed());
        count = serde_json::to_value(&found)?["count"].as_u64().unwrap_or(0);
    }
    std::fs::remove_dir_all(spool)?;
    println!("{:.3} s, {count} matches", best.as_secs_f64());
    Ok(())
}
