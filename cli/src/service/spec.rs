//! What a service runs: the program, its arguments and its environment. No secret is part of it, because other programs of this user can
//! read it and managers show it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::{Failure, OrFail, Outcome};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Gateway,
    Node,
}

impl Kind {
    /// What stands before the verbs of a service.
    pub const fn command(self) -> &'static str {
        match self {
            Self::Gateway => "gsv service",
            Self::Node => "gsv node",
        }
    }

    pub fn install(self) -> String {
        format!("{} install", self.command())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub kind: Kind,
    /// The name of the unit, without an ending.
    pub name: String,
    pub description: String,
    pub program: String,
    pub args: Vec<String>,
    /// Sorted by name.
    pub env: Vec<(String, String)>,
}

/// Variables that say where GSV's files are. Everything else comes from the local config.
const PLACES: [&str; 6] = [
    "GSV_CONFIG_DIR",
    "GSV_HOME",
    "GSV_RUNTIME_DIR",
    "GSV_WORKERD",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
];

impl Spec {
    /// A service of this program, with the folders that it uses now.
    pub fn new(kind: Kind, name: String, description: String, args: Vec<String>) -> Outcome<Self> {
        let program = env::current_exe().or_fail("find the gsv program", "Install it again.")?;
        let mut env = Vec::new();
        for place in PLACES {
            let Some(value) = env::var_os(place).filter(|value| !value.is_empty()) else {
                continue;
            };
            let path = std::path::absolute(Path::new(&value)).or_fail("find a folder", format!("Check {place}."))?;
            env.push((place.to_owned(), plain(path.as_os_str())?));
        }
        let spec = Self {
            kind,
            name,
            description,
            program: plain(program.as_os_str())?,
            args,
            env,
        };
        for text in &spec.args {
            plain(OsStr::new(text))?;
        }
        Ok(spec)
    }
}

/// Text that stands in one line of a unit.
fn plain(text: &OsStr) -> Outcome<String> {
    let found = text.to_str().filter(|text| !text.chars().any(char::is_control));
    found.map(str::to_owned).ok_or_else(|| {
        Failure::usage(
            format!(
                "A service can't use {}: it is not UTF-8, or has control characters.",
                PathBuf::from(text).display()
            ),
            "Rename it.",
        )
    })
}
