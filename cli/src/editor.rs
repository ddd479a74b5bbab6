//! Opens a file in the user's editor and waits until it is closed.

use std::env;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::Command;

use crate::exit::{Failure, OrFail, Outcome};

/// `$VISUAL`, else `$EDITOR`, else `vi`. `otherwise`: the command that needs no editor, as a sentence.
pub fn open(file: &Path, otherwise: &str) -> Outcome {
    let named = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.trim().is_empty()));
    if named.is_none() && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::usage(
            "Not a terminal, so the editor `vi` can't be used and nothing was changed.",
            format!("Run it in a terminal, or set EDITOR to a program that edits the file. {otherwise}"),
        ));
    }
    let editor = named.unwrap_or_else(|| "vi".to_owned());
    let next = "Set EDITOR to an editor that waits until you are done, such as `vi`, `nano` or `code --wait`.";
    // EDITOR may contain arguments; the file's name is not given to the shell as text.
    let command = format!("exec {editor} \"$1\"");
    let status = Command::new("sh").args(["-c", &command, "sh"]).arg(file).status();
    if status
        .or_fail(format_args!("start the editor `{editor}`"), next)?
        .success()
    {
        Ok(())
    } else {
        Err(Failure::failed(
            format!("The editor `{editor}` failed, so nothing was stored."),
            next,
        ))
    }
}
