//! The mark of a state that was restored beside its gateway: a file in it, which is there before the state gets its name. Until
//! `gsv resume` removes it, the gateway starts stopped and no channel runs (rule BK23). Can't be read means that it is set.

use std::fs;
use std::io::ErrorKind;

use super::layout::Layout;
use crate::exit::{OrFail, Outcome};
use crate::{paths, private_file};

const REPAIR: &str = "Make it readable for your user alone: `chmod 600`.";
const DAMAGED: &str = "damaged";

pub fn set(layout: &Layout) -> Outcome {
    private_file::write(&layout.start_stopped(), ulid::Ulid::generate().to_string())
}

pub fn is_set(layout: &Layout) -> bool {
    fs::symlink_metadata(layout.start_stopped()).is_ok()
}

/// The gateway stops itself once for each id.
pub fn id(layout: &Layout) -> Outcome<Option<String>> {
    let text = private_file::read_private(&layout.start_stopped(), REPAIR)?;
    Ok(text.map(|text| match text.trim() {
        "" => DAMAGED.to_owned(),
        id => id.to_owned(),
    }))
}

pub fn remove(layout: &Layout) -> Outcome {
    let path = layout.start_stopped();
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).or_fail(
            format_args!("remove {}", path.display()),
            "Check that the folder is yours.",
        ),
        _ => Ok(()),
    }
}

/// What `gsv up` says about it.
pub fn warning(layout: &Layout) -> Outcome<Option<String>> {
    Ok(id(layout)?.map(|_| {
        format!(
            "this state is a restored copy, so nothing runs by itself and no channel connects. To let it act: `{}`",
            resume_command(layout)
        )
    }))
}

/// The command that lets the copy act, in any shell.
pub fn resume_command(layout: &Layout) -> String {
    of_folder(layout, "gsv resume")
}

/// The command that starts the gateway of this folder, in any shell.
pub fn up_command(layout: &Layout) -> String {
    of_folder(layout, "gsv up")
}

/// The command that ends the gateway of this folder, in any shell.
pub fn down_command(layout: &Layout) -> String {
    of_folder(layout, "gsv down")
}

fn of_folder(layout: &Layout, command: &str) -> String {
    if paths::usual_state_dir().is_ok_and(|usual| usual == layout.home) {
        return command.to_owned();
    }
    format!("GSV_HOME={} {command}", paths::shell(&layout.home))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bk23_the_command_that_lets_a_copy_act_names_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: dir.path().join("my copy"),
        };
        let command = format!("GSV_HOME='{}/my copy' gsv resume", dir.path().display());
        assert_eq!(resume_command(&layout), command);
        assert_eq!(up_command(&layout), command.replace("gsv resume", "gsv up"));
        assert_eq!(warning(&layout).unwrap(), None);
        paths::ensure_private_dir(&layout.home).unwrap();
        paths::ensure_private_dir(&layout.gateway()).unwrap();
        set(&layout).unwrap();
        assert!(warning(&layout).unwrap().unwrap().contains(&command));
        let home = paths::usual_state_dir().unwrap();
        assert_eq!(resume_command(&Layout { home }), "gsv resume");
    }
}
