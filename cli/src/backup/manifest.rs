//! The list of a backup's files with their sizes and hashes. PURE. It stands before the files in the archive and decides alone what is
//! read from it: an archive can't name a path, a link or a size that was not checked here.

use gsv_protocol::types::MoveHome;
use serde::{Deserialize, Serialize};

use super::content;
use super::seal::Fault;

/// Some 400,000 files.
pub const MAX_BYTES: u32 = 128 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Epoch milliseconds.
    pub made_at: u64,
    /// The machine and the state folder that it is of.
    pub host: String,
    pub home: String,
    /// The versions of the program, and of the gateway that ran or ran last.
    pub program: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    pub has_secrets: bool,
    /// Channels whose variables are left out, as they may be secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels_without_variables: Vec<String>,
    /// What an export of a home says of it (`gsv deploy export`). A backup of a state folder has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MoveHome>,
    /// In the order of their paths.
    pub files: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub path: String,
    pub size: u64,
    /// Hex.
    pub sha256: String,
    /// Nanoseconds since the epoch. The bucket knows by it which files were changed by hand.
    pub modified_ns: u64,
    /// The owner may execute it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// The name of a page of an export, from 1.
pub fn page_path(number: usize) -> String {
    format!("page-{number:08}")
}

impl Manifest {
    /// The manifest of an export, whose files are the pages, in order.
    pub fn of_home(home: MoveHome, program: &str, host: String, files: Vec<Entry>) -> Self {
        Self {
            made_at: home.made_at,
            host,
            home: "an export".to_owned(),
            program: program.to_owned(),
            gateway: Some(home.version.clone()),
            has_secrets: false,
            channels_without_variables: Vec::new(),
            moved: Some(home),
            files,
        }
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|_| Fault::Malformed("its list of files can't be read"))?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Fault> {
        if self.moved.is_some() {
            let numbered = self.files.iter().zip(1..);
            if self.files.is_empty()
                || numbered
                    .into_iter()
                    .any(|(entry, number)| entry.path != page_path(number))
            {
                return Err(Fault::Malformed("its list has a page that no export has"));
            }
        }
        let mut before: Option<&str> = None;
        for entry in &self.files {
            if (self.moved.is_none() && !content::is_allowed(&entry.path))
                || (!self.has_secrets && content::SECRETS.contains(&entry.path.as_str()))
            {
                return Err(Fault::Malformed("its list has a path that no backup has"));
            }
            if before.is_some_and(|before| before >= entry.path.as_str()) {
                return Err(Fault::Malformed("its list is not in order"));
            }
            before = Some(&entry.path);
        }
        let mut sizes = self.files.iter().map(|entry| entry.size);
        let total = sizes.try_fold(0_u64, u64::checked_add);
        total.map(|_| ()).ok_or(Fault::Malformed("its sizes are too large"))
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|entry| entry.size).sum()
    }

    pub fn databases(&self) -> usize {
        self.files
            .iter()
            .filter(|entry| content::is_database(&entry.path))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(paths: &[&str], size: u64) -> Vec<u8> {
        let entry = |path: &&str| Entry {
            path: (*path).into(),
            size,
            sha256: String::new(),
            modified_ns: 0,
            executable: false,
        };
        let manifest = Manifest {
            made_at: 1,
            host: "h".into(),
            home: "/h".into(),
            program: "1".into(),
            gateway: None,
            has_secrets: false,
            channels_without_variables: Vec::new(),
            moved: None,
            files: paths.iter().map(entry).collect(),
        };
        serde_json::to_vec(&manifest).unwrap()
    }

    #[test]
    fn bk9_paths_outside_twice_or_secret_and_impossible_sizes_are_refused() {
        assert!(Manifest::parse(&manifest(&["gateway/port", "workspace/a"], 1)).is_ok());
        for paths in [
            &["workspace/../../x"][..],
            &["/etc/passwd"],
            &["workspace/a", "workspace/a"],
            &["workspace/b", "workspace/a"],
            &["secrets/token"],
        ] {
            assert!(Manifest::parse(&manifest(paths, 1)).is_err(), "{paths:?}");
        }
        assert!(Manifest::parse(&manifest(&["workspace/a", "workspace/b"], u64::MAX)).is_err());
        assert!(Manifest::parse(b"{}").is_err());
    }
}
