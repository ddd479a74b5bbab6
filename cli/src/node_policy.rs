//! Reads `node.toml`, the policy of this machine's nodes, from the configuration folder.

use std::path::PathBuf;

use gsv_node::policy::NodePolicy;

use crate::exit::{Failure, Outcome};
use crate::{paths, private_file};

pub fn path() -> Outcome<PathBuf> {
    Ok(paths::config_dir()?.join("node.toml"))
}

/// A file that does not exist means the defaults.
pub fn load() -> Outcome<NodePolicy> {
    let path = path()?;
    let repair = "Fix it with an editor.";
    let text = private_file::read_checked(&path, repair, |meta, _| paths::check_policy_file(&path, meta))?;
    NodePolicy::parse(&text.unwrap_or_default(), &paths::home()?).map_err(|problem| {
        Failure::usage(
            format!("{} is not valid: {problem}.", path.display()),
            format!("{repair} The node does not start with a policy that it can't read."),
        )
    })
}
