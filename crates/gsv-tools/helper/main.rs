//! The program that confines commands and the one that tries to break out, for this crate's tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("__confine") => gsv_sandbox::confine_main(args),
        Some("__canary") => gsv_sandbox::canary_main(args),
        Some("__supervise") => gsv_tools::supervise_main(args),
        _ => ExitCode::from(2),
    }
}
