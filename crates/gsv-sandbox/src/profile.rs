//! The names of profiles and tiers. PURE.

use serde::{Deserialize, Serialize};

/// What commands may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything that the user of the node may do.
    Off,
    /// Read the system, write the workspace and a temporary folder; no network.
    Workspace,
    /// As `Workspace`, but read only the workspace and the system's programs and libraries.
    Strict,
}

impl Profile {
    pub const ALL: [Self; 3] = [Self::Off, Self::Workspace, Self::Strict];

    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }

    /// # Errors
    /// A sentence that names the profiles.
    pub fn parse(name: &str) -> Result<Self, String> {
        if name == "workspace+net" {
            return Err(
                "the profile `workspace+net` is not available in this version; use `workspace`, `strict` or `off`"
                    .into(),
            );
        }
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| "it must be `off`, `workspace` or `strict`".into())
    }
}

/// How a profile is enforced, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Bubblewrap,
    Landlock,
    /// `sandbox-exec` of macOS.
    Seatbelt,
}

impl Tier {
    pub const ALL: [Self; 3] = [Self::Bubblewrap, Self::Landlock, Self::Seatbelt];

    pub fn name(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Seatbelt => "seatbelt",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb1_profiles_have_names_and_the_missing_one_is_named() {
        for profile in Profile::ALL {
            assert_eq!(Profile::parse(profile.name()), Ok(profile));
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.name());
        }
        assert!(Profile::parse("workspace+net").unwrap_err().contains("not available"));
        assert!(Profile::parse("on").unwrap_err().contains("`strict`"));
    }
}
