//! The mark of a state that was restored beside its gateway: a file in it, which is there before the state gets its name. Until
//! `gsv resume` removes it, the gateway starts stopped and no channel runs (rule BK23). Can't be read means that it is set.

use std::fs;
use std::io::ErrorKind;

use super::layout::Layout;
use crate::exit::{OrFail, Outcome};
use crate::private_file;

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
        "this state is a restored copy, so nothing runs by itself and no channel connects. To let it act: `gsv resume`"
            .to_owned()
    }))
}
