//! A program for this crate's tests. Its first argument says what it does: confine a command, try to break out of a sandbox, or write files.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use gsv_tools::beneath::{Beneath, Resolver, Scope};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("__confine") => gsv_sandbox::confine_main(args),
        Some("__canary") => gsv_sandbox::canary_main(args),
        Some("__supervise") => gsv_tools::supervise_main(args),
        Some("__write") => write(&args.collect::<Vec<_>>()),
        _ => ExitCode::from(2),
    }
}

/// `WORKSPACE FILE...`: writes files of a workspace as the tools do. Prints a line for each.
#[allow(clippy::print_stdout, reason = "the test reads it")]
fn write(args: &[OsString]) -> ExitCode {
    let [workspace, files @ ..] = args else {
        return ExitCode::from(2);
    };
    let Ok(beneath) = Beneath::new(Path::new(workspace), Scope::Workspace, Resolver::Auto) else {
        return ExitCode::from(2);
    };
    for file in files.iter().filter_map(|file| file.to_str()) {
        let written = beneath
            .parse(file)
            .and_then(|path| beneath.write_file(&path, b"new", None));
        match written {
            Ok(()) => println!("{file}: written"),
            Err(error) => println!("{file}: {error}"),
        }
    }
    ExitCode::SUCCESS
}
