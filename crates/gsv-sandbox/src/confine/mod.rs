//! The program between a command's supervisor and the shell: enforces the stored plan on itself and becomes the shell. With bubblewrap it
//! waits for the shell, and runs a second time, inside, where it checks what was mounted (check.rs); a plan that was out of date is made
//! again (attempt.rs). When that fails, it ends with 126 and a sentence, and the command does not run. Where it has a gate (gate.rs), all
//! is made before the gate is passed.
//!
//! Map: `program` has the `main` and `options` its words; `enter` enforces the plan by tier, with bubblewrap in `outside`; `handover` is
//! what the program inside gets from it, and `inside` what it does there; `exit` has the texts of a command that was not run.

mod enter;
mod exit;
#[cfg(target_os = "linux")]
mod handover;
#[cfg(target_os = "linux")]
mod inside;
mod options;
#[cfg(not(target_os = "linux"))]
mod other_systems;
#[cfg(target_os = "linux")]
mod outside;
mod program;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::options::{ConfineOptions, PlanUse};
pub use self::program::confine_main;
use crate::plan::Plan;
use crate::profile::Tier;

/// What enforces a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enforcer {
    /// This program, `bwrap`.
    Bubblewrap(PathBuf),
    Landlock,
    Seatbelt,
}

impl Enforcer {
    /// `bubblewrap`: where `bwrap` is, which the other tiers do not need. `None`: it is needed, and is not known.
    #[must_use]
    pub fn new(tier: Tier, bubblewrap: Option<PathBuf>) -> Option<Self> {
        match tier {
            Tier::Bubblewrap => bubblewrap.map(Self::Bubblewrap),
            Tier::Landlock => Some(Self::Landlock),
            Tier::Seatbelt => Some(Self::Seatbelt),
        }
    }

    #[must_use]
    pub fn tier(&self) -> Tier {
        match self {
            Self::Bubblewrap(_) => Tier::Bubblewrap,
            Self::Landlock => Tier::Landlock,
            Self::Seatbelt => Tier::Seatbelt,
        }
    }
}

/// A plan and what enforces it, as it is stored for the commands of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Confinement {
    pub enforcer: Enforcer,
    pub plan: Plan,
}

/// [`Confinement`] in its file, which a node of another version may have written.
#[derive(Serialize, Deserialize)]
struct Stored {
    tier: Tier,
    plan: Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    bubblewrap: Option<PathBuf>,
}

impl TryFrom<Stored> for Confinement {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let enforcer = Enforcer::new(stored.tier, stored.bubblewrap);
        Ok(Self {
            enforcer: enforcer.ok_or("the plan does not say where bubblewrap is")?,
            plan: stored.plan,
        })
    }
}

impl From<Confinement> for Stored {
    fn from(Confinement { enforcer, plan }: Confinement) -> Self {
        let tier = enforcer.tier();
        let bubblewrap = match enforcer {
            Enforcer::Bubblewrap(program) => Some(program),
            Enforcer::Landlock | Enforcer::Seatbelt => None,
        };
        Self { tier, plan, bubblewrap }
    }
}

impl Confinement {
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let temp = file.with_extension("tmp");
        std::fs::write(&temp, serde_json::to_vec(self)?)?;
        std::fs::rename(temp, file)
    }

    /// # Errors
    /// There is no such file, or it can't be read.
    pub fn read(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }

    /// The tier of an earlier start. It counts also where the program of that tier is gone from the record.
    ///
    /// # Errors
    /// As [`Confinement::read`].
    pub fn read_tier(file: &Path) -> io::Result<Tier> {
        let stored: Stored = serde_json::from_slice(&std::fs::read(file)?)?;
        Ok(stored.tier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb12_a_stored_plan_is_read_as_it_was_written_and_bubblewrap_has_its_program() {
        let plan =
            r#"{"profile":"workspace","workspace":"/ws","writable":[],"readable":null,"hidden":[],"own":"/own"}"#;
        let read = |tier: &str| serde_json::from_str::<Confinement>(&format!("{{{tier},\"plan\":{plan}}}"));
        for (text, enforcer) in [
            (
                r#""tier":"bubblewrap","bubblewrap":"/usr/bin/bwrap""#,
                Enforcer::Bubblewrap("/usr/bin/bwrap".into()),
            ),
            (r#""tier":"landlock""#, Enforcer::Landlock),
            (r#""tier":"seatbelt""#, Enforcer::Seatbelt),
        ] {
            let confinement = read(text).unwrap();
            assert_eq!(confinement.enforcer, enforcer);
            let written = serde_json::to_string(&confinement).unwrap();
            assert_eq!(serde_json::from_str::<Confinement>(&written).unwrap(), confinement);
        }
        let problem = read(r#""tier":"bubblewrap""#).unwrap_err().to_string();
        assert!(problem.contains("where bubblewrap is"), "{problem}");
    }
}
