//! A release manifest: which version a channel has, and its files. PURE. Nothing of it is believed before its signature is verified.

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Outcome};

const FORMAT: u32 = 1;
/// Far more than a release has.
const MAX_FILE_BYTES: u64 = 1 << 30;
const MAX_NAME_BYTES: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Channel {
    #[default]
    Stable,
    Beta,
}

impl Channel {
    pub const ALL: [Self; 2] = [Self::Stable, Self::Beta];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Beta => "beta",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.as_str() == name)
    }

    /// The manifest's file at the address of the releases.
    pub fn file(self) -> String {
        format!("{}.json", self.as_str())
    }
}

/// The newest manifest that was seen, as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    pub version: String,
    pub published_at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    format: u32,
    channel: String,
    pub version: Version,
    /// Epoch ms. A later manifest of a channel has a later time.
    pub published_at: u64,
    /// The oldest version whose state and program this one can take over.
    pub oldest_version: Version,
    files: Vec<File>,
}

/// What a machine of one platform gets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    platform: String,
    pub name: String,
    pub size_bytes: u64,
    pub sha256: String,
}

impl Manifest {
    pub fn parse(channel: Channel, content: &[u8]) -> Outcome<Self> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let invalid = |why: &str| {
            Failure::failed(
                format!(
                    "{} is signed, but not valid: {why}. Nothing was replaced.",
                    channel.file()
                ),
                "Tell those who publish the releases.",
            )
        };
        let head: Head = serde_json::from_slice(content).map_err(|error| invalid(&error.to_string()))?;
        if head.format > FORMAT {
            return Err(Failure::failed(
                "The release manifest has a newer format than this program knows. Nothing was replaced.",
                "Install the new release by hand, once: docs/upgrade.md says how.",
            ));
        }
        let manifest: Self = serde_json::from_slice(content).map_err(|error| invalid(&error.to_string()))?;
        if manifest.channel != channel.as_str() {
            return Err(invalid(&format!(
                "it is the manifest of the channel `{}`",
                manifest.channel
            )));
        }
        if let Some(file) = manifest.files.iter().find(|file| !file.is_valid()) {
            return Err(invalid(&format!(
                "the file for {} is not described in full",
                file.platform
            )));
        }
        Ok(manifest)
    }

    /// The file for a platform.
    pub fn file(&self, platform: &str) -> Outcome<&File> {
        self.files.iter().find(|file| file.platform == platform).ok_or_else(|| {
            Failure::failed(
                format!("Version {} has no program for this machine ({platform}).", self.version),
                "Build it from the sources: docs/release.md says how.",
            )
        })
    }

    /// Refuses a manifest that is older than one that was seen before: someone may be hiding a newer release.
    pub fn check_fresh(&self, seen: &Seen) -> Outcome {
        if self.published_at >= seen.published_at {
            return Ok(());
        }
        Err(Failure::failed(
            format!(
                "The address offers an older release manifest (version {}) than the last one that was seen there (version {}). Nothing was replaced.",
                self.version, seen.version
            ),
            "Check the address of the releases; the server or someone on the way replays an old answer.",
        ))
    }

    /// Whether this release is newer than the program. Refuses one that is older, and one that can't take over from it.
    pub fn is_newer_than(&self, installed: &Version) -> Outcome<bool> {
        if self.version < *installed {
            return Err(Failure::failed(
                format!(
                    "The channel has version {}, which is older than this one ({installed}). Nothing was replaced.",
                    self.version
                ),
                "To go back to the version before the last update, run `gsv update --rollback`.",
            ));
        }
        if *installed < self.oldest_version {
            return Err(Failure::failed(
                format!(
                    "Version {} can't take over the state of version {installed}: it needs at least version {}. Nothing was replaced.",
                    self.version, self.oldest_version
                ),
                format!("Install version {} first.", self.oldest_version),
            ));
        }
        Ok(self.version > *installed)
    }
}

impl File {
    fn is_valid(&self) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        let is_name = (1..=MAX_NAME_BYTES).contains(&self.name.len())
            && self.name.chars().all(is_plain)
            && !self.name.starts_with('.');
        let is_hash = self.sha256.len() == 64 && self.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        is_name && is_hash && (1..=MAX_FILE_BYTES).contains(&self.size_bytes)
    }
}

/// This machine, as releases name it.
pub fn platform() -> String {
    let os = if cfg!(target_os = "macos") {
        "darwin"
    } else {
        std::env::consts::OS
    };
    let arch = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        arch if arch.starts_with("x86") && cfg!(target_pointer_width = "64") => "x64",
        other => other,
    };
    format!("{os}-{arch}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn text(change: impl Fn(&mut Value)) -> Vec<u8> {
        let mut value = serde_json::json!({
            "format": 1, "channel": "stable", "version": "1.2.0", "publishedAt": 1000, "oldestVersion": "1.0.0",
            "files": [{"platform": "linux-x64", "name": "gsv-1.2.0-linux-x64.tar.gz", "sizeBytes": 5, "sha256": "a".repeat(64)}],
        });
        change(&mut value);
        serde_json::to_vec(&value).unwrap()
    }
    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn up9_a_manifest_is_read_whole_and_of_its_channel_or_refused() {
        let manifest = Manifest::parse(Channel::Stable, &text(|_| {})).unwrap();
        assert_eq!(manifest.file("linux-x64").unwrap().size_bytes, 5);
        assert!(manifest.file("plan9-x64").unwrap_err().message.contains("plan9-x64"));
        assert!(
            Manifest::parse(Channel::Beta, &text(|_| {})).is_err(),
            "a stable manifest in the place of a beta one"
        );
        let changes: [&dyn Fn(&mut Value); 6] = [
            &|value| value["files"][0]["name"] = "../gsv".into(),
            &|value| value["files"][0]["name"] = ".gsv".into(),
            &|value| value["files"][0]["sha256"] = "A".repeat(64).into(),
            &|value| value["files"][0]["sizeBytes"] = 0.into(),
            &|value| value["version"] = "1.2".into(),
            &|value| value["format"] = 2.into(),
        ];
        for change in changes {
            let failure = Manifest::parse(Channel::Stable, &text(change)).unwrap_err();
            assert!(failure.message.contains("Nothing was replaced"), "{}", failure.message);
        }
    }

    #[test]
    fn up10_neither_an_older_version_nor_an_older_manifest_nor_a_jump_too_far_is_taken() {
        let manifest = Manifest::parse(Channel::Stable, &text(|_| {})).unwrap();
        assert!(manifest.is_newer_than(&version("1.1.9")).unwrap());
        assert!(!manifest.is_newer_than(&version("1.2.0")).unwrap());
        assert!(manifest.is_newer_than(&version("1.2.0-beta.1")).unwrap());
        let older = manifest.is_newer_than(&version("1.2.1")).unwrap_err();
        assert!(older.next.contains("--rollback"), "{}", older.next);
        let far = manifest.is_newer_than(&version("0.9.0")).unwrap_err();
        assert!(far.next.contains("1.0.0"), "{}", far.next);
        let seen = |published_at| Seen {
            version: "1.3.0".into(),
            published_at,
        };
        manifest.check_fresh(&seen(1000)).unwrap();
        assert!(manifest.check_fresh(&seen(1001)).unwrap_err().message.contains("1.3.0"));
    }
}
