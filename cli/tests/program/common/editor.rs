//! An editor for tests: a script that changes the file, and keeps what it was given.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::Home;

/// Writes the editor into the home. It runs one of these lines of shell on the file at each opening; at a further one it fails.
pub fn editor(home: &Home, scripts: &[&str]) -> PathBuf {
    let editor = home.root().join("editor");
    let mut text =
        "#!/bin/sh\nset -e\nroot=$(dirname \"$0\")\necho x >>\"$root/opened\"\nturn=$(wc -l <\"$root/opened\")\n"
            .to_owned();
    text += "cp \"$1\" \"$root/seen$((turn))\"\ncase $((turn)) in\n";
    for (turn, script) in scripts.iter().enumerate() {
        writeln!(text, "{}) {script};;", turn + 1).unwrap();
    }
    fs::write(&editor, text + "*) exit 9;;\nesac\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    editor
}

/// The file as it was at an opening, from 1.
pub fn seen(home: &Home, turn: usize) -> String {
    fs::read_to_string(home.root().join(format!("seen{turn}"))).unwrap()
}
