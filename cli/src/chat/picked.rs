//! Files that are chosen at the prompt for the next message: `/attach FILE`, `/attach`, `/attach none`.

use std::path::PathBuf;

use super::attach::{Chosen, choose};
use crate::clean::clean;
use crate::output::Output;
use crate::units::bytes;

/// Adds the file of this path, shows the chosen ones (no path), or removes all (`none`).
pub fn attach(files: &mut Vec<Chosen>, path: &str, out: Output) {
    match path {
        "" if files.is_empty() => out.aside("no files; /attach FILE sends one with the next message"),
        "" => list(files, out),
        "none" => {
            files.clear();
            out.aside("no files");
        }
        path => {
            let mut paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
            paths.push(typed_path(path));
            match choose(&paths) {
                Ok(chosen) => {
                    *files = chosen;
                    list(files, out);
                }
                Err(failure) => out.failure(&failure),
            }
        }
    }
}

/// Shows which files go with the next message, if there are any.
pub fn list(files: &[Chosen], out: Output) {
    let names = files
        .iter()
        .map(|file| format!("{} ({})", clean(&file.name), bytes(file.size)));
    let names = names.collect::<Vec<_>>().join(", ");
    if !names.is_empty() {
        out.aside(&format!("with the next message: {names} · /attach none removes them"));
    }
}

/// A path as people type it: `~/` for their home, and quotes or backslashes around spaces, as completion writes them.
fn typed_path(path: &str) -> PathBuf {
    let bare = path.trim_matches('"').replace("\\ ", " ");
    match (bare.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(bare),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_completion_writes_them() {
        assert_eq!(typed_path("a\\ b.txt"), PathBuf::from("a b.txt"));
        assert_eq!(typed_path("\"a b.txt\""), PathBuf::from("a b.txt"));
    }
}
