//! A test harness for programs that have their own `main`, because they are also a node or a supervisor. Prints one line for
//! each test, as Rust's own harness does, so that the runner counts the tests.

#![allow(clippy::print_stdout, reason = "the harness prints the tests' results")]

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Runs one test after the other; a test fails when it panics. `args`: words that a test's name must contain, and `--list`.
pub fn run_tests<T: FnOnce()>(args: &[OsString], tests: impl IntoIterator<Item = (String, T)>) -> ExitCode {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let (flags, filter): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| word.starts_with('-'));
    let mut exit = ExitCode::SUCCESS;
    for (name, test) in tests {
        if !filter.iter().all(|part| name.contains(part)) {
            continue;
        }
        if flags.contains(&"--list") {
            println!("{name}: test");
            continue;
        }
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        if !passed {
            exit = ExitCode::FAILURE;
        }
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    exit
}
