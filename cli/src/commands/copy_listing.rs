//! What a folder has for `gsv cp -r`: the files and folders of this machine or of the workspace, and what is left out. Copies nothing.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gsv_protocol::types::AgentId;

use super::copy_run::Session;
use super::workspace_file::too_many_files;
use crate::clean::{one_line, visible};
use crate::exit::{Failure, Outcome};

/// Files and folders of one command.
const MOST: usize = 100_000;

/// A file below the source.
pub struct Found {
    /// Relative, with `/` between the names.
    pub name: String,
    pub size: u64,
    pub version: String,
}

#[derive(Default)]
pub struct Listing {
    pub files: Vec<Found>,
    /// Folders without anything in them that is copied, too.
    pub folders: Vec<String>,
    /// Why each of these is not copied.
    pub failed: BTreeMap<String, String>,
    /// Links and other things that are not plain files: never copied, and no failure.
    pub skipped: Vec<String>,
}

impl Listing {
    fn fail(&mut self, name: &str, why: impl Into<String>) {
        self.failed.insert(name.to_owned(), why.into());
    }
    fn check(&self) -> Outcome {
        if self.files.len() + self.folders.len() <= MOST {
            return Ok(());
        }
        Err(Failure::failed(
            format!("The folder has more than {MOST} files and folders."),
            "Copy its folders one by one, or pack it into one file.",
        ))
    }
}

/// Another text after each change of the file. The time of a change can't be set back, as that of a write can.
pub fn version_of(meta: &Metadata) -> String {
    format!(
        "{} {} {}.{} {}.{}",
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    )
}

/// Files of this machine. Links are not followed.
pub fn list_local(root: &Path) -> Outcome<Listing> {
    let mut listing = Listing::default();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        let entries = match std::fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if folder.is_empty() => {
                return Err(Failure::failed(
                    format!("The folder can't be read: {error}."),
                    "Check the permissions of the folder.",
                ));
            }
            Err(error) => {
                listing.fail(&folder, format!("it can't be read: {error}"));
                continue;
            }
        };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                listing.fail(&format!("{folder}{}", name.to_string_lossy()), "its name is not UTF-8");
                continue;
            };
            // What an interrupted copy has left.
            if name.starts_with(".gsv-") && Path::new(name).extension().is_some_and(|ending| ending == "part") {
                continue;
            }
            let path = format!("{folder}{name}");
            let Ok(meta) = std::fs::symlink_metadata(root.join(&path)) else {
                listing.fail(&path, "it can't be read");
                continue;
            };
            if meta.is_dir() {
                listing.folders.push(path.clone());
                open.push(path + "/");
            } else if meta.is_file() {
                listing.files.push(Found {
                    name: path,
                    size: meta.len(),
                    version: version_of(&meta),
                });
            } else {
                listing.skipped.push(visible(&path));
            }
        }
        listing.check()?;
    }
    listing.files.sort_by(|one, other| one.name.cmp(&other.name));
    listing.skipped.sort();
    Ok(listing)
}

/// Whether a name of the gateway's list stays below the folder that was asked for.
fn is_below(name: &str) -> bool {
    !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Files of the workspace.
pub async fn list_workspace(session: &Session, place: &str, agent: Option<&AgentId>) -> Outcome<Listing> {
    let root = place.trim_start_matches("gsv:").trim_matches('/').to_owned();
    let mut listing = Listing::default();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        let listed = session.list(&folder, agent).await?;
        if listed.truncated == Some(true) {
            return Err(too_many_files(&folder));
        }
        let (files, folders) = (listing.files.len(), listing.folders.len());
        let below = |path: &str| path.strip_prefix(&root).unwrap_or(path).trim_matches('/').to_owned();
        listing
            .folders
            .extend(listed.directories.iter().map(|path| below(path)));
        // An older gateway tells none.
        let etags = listed.etags.unwrap_or_default();
        let versions = etags.into_iter().chain(std::iter::repeat(String::new()));
        listing
            .files
            .extend(listed.files.iter().zip(versions).map(|(path, version)| Found {
                name: below(path),
                size: 0,
                version,
            }));
        open.extend(listed.directories);
        listing.check()?;
        // The gateway names them, and this machine makes them.
        let names = listing.folders[folders..]
            .iter()
            .chain(listing.files[files..].iter().map(|file| &file.name));
        if let Some(name) = names.into_iter().find(|name| !is_below(name)) {
            return Err(Failure::failed(
                format!(
                    "The gateway lists {}, which is not in that folder. Nothing was copied.",
                    one_line(name, 200)
                ),
                "Check which gateway this is: `gsv status`.",
            ));
        }
    }
    if listing.files.is_empty() && listing.folders.is_empty() {
        return Err(Failure::failed(
            format!("There is no folder {} with files in it.", one_line(place, 200)),
            "List the files: `gsv workspace ls`.",
        ));
    }
    listing.files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf14_names_of_the_gateway_stay_below_the_folder() {
        for name in ["a", "a/b.txt", "..a/b"] {
            assert!(is_below(name), "{name}");
        }
        for name in ["", "..", "../a", "a/../../b", "a//b", "./a", "a\0b"] {
            assert!(!is_below(name), "{name:?}");
        }
    }

    #[test]
    fn tf14_a_listing_has_files_and_folders_and_says_what_it_leaves_out() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/empty")).unwrap();
        std::fs::write(at("a/x"), "12").unwrap();
        std::fs::write(at("b\n"), "3").unwrap();
        std::fs::write(at(".gsv-0123.part"), "left").unwrap();
        std::os::unix::fs::symlink("/etc", at("link")).unwrap();
        std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
        let listing = list_local(dir.path()).unwrap();
        let names: Vec<&str> = listing.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a/x", "b\n"]);
        let mut folders = listing.folders.clone();
        folders.sort();
        assert_eq!(folders, ["a", "a/empty"]);
        let why: Vec<&str> = listing.failed.values().map(String::as_str).collect();
        assert_eq!(why, ["its name is not UTF-8"]);
        assert_eq!(listing.skipped, ["link"]);
    }
}
