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
    /// As `Workspace`, and the hosts that the owner has listed.
    #[serde(rename = "workspace+net")]
    WorkspaceNet,
    /// As `Workspace`, but read only the workspace and the system's programs and libraries.
    Strict,
}

impl Profile {
    pub const ALL: [Self; 4] = [Self::Off, Self::Workspace, Self::WorkspaceNet, Self::Strict];

    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::WorkspaceNet => "workspace+net",
            Self::Strict => "strict",
        }
    }

    /// # Errors
    /// A sentence that names the profiles.
    pub fn parse(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| "it must be `off`, `workspace`, `workspace+net` or `strict`".into())
    }
}

/// How a profile is enforced, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Bubblewrap,
    Landlock,
    /// `sandbox-exec` of macOS.
    Seatbelt,
}

impl Tier {
    /// Whether it can let commands reach single hosts: that needs a network of their own.
    pub fn has_hosts(self) -> bool {
        self == Self::Bubblewrap
    }

    pub const ALL: [Self; 3] = [Self::Bubblewrap, Self::Landlock, Self::Seatbelt];

    /// Whether this system can have it.
    pub const fn is_of_this_system(self) -> bool {
        match self {
            Self::Bubblewrap | Self::Landlock => cfg!(target_os = "linux"),
            Self::Seatbelt => cfg!(target_os = "macos"),
        }
    }

    /// # Errors
    /// A sentence that names the tiers.
    pub fn parse(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|tier| tier.name() == name)
            .ok_or_else(|| "it must be `bubblewrap`, `landlock` or `seatbelt`".into())
    }

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
    fn sb1_profiles_have_names_and_others_are_refused() {
        for profile in Profile::ALL {
            assert_eq!(Profile::parse(profile.name()), Ok(profile));
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.name());
        }
        assert!(Profile::parse("on").unwrap_err().contains("`strict`"));
    }
}
