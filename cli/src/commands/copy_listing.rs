//! What a folder has for `gsv cp -r`: the files and folders of this machine or of the workspace, and what is left out. Copies nothing.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gsv_node::is_temp_name;
use gsv_protocol::methods::WorkspaceList;
use gsv_protocol::types::{AgentId, WorkspaceListParams};

use super::rate_limit::retry_rate_limited;
use super::workspace_file::too_many_files;
use crate::clean::{one_line, visible};
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::output::Output;

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
    /// Temporary files of copies: never copied, and no failure.
    pub unfinished: Vec<String>,
}

impl Listing {
    fn fail(&mut self, name: &str, why: impl Into<String>) {
        self.failed.insert(name.to_owned(), why.into());
    }
    /// Nothing of this folder is copied: each of its files fails, and without one the folder itself.
    pub fn fail_folder(&mut self, folder: &str, why: &str) {
        let below = format!("{folder}/");
        let (lost, kept): (Vec<Found>, Vec<Found>) = std::mem::take(&mut self.files)
            .into_iter()
            .partition(|file| file.name.starts_with(&below));
        self.files = kept;
        if lost.is_empty() {
            self.fail(folder, why);
        }
        for file in lost {
            self.fail(&file.name, why);
        }
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
            let path = format!("{folder}{name}");
            // What an interrupted copy has left. Any other name that looks like it is the user's own.
            if is_temp_name(name) {
                listing.unfinished.push(visible(&path));
                continue;
            }
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
    listing.unfinished.sort();
    Ok(listing)
}

/// Whether a name of the gateway's list stays below the folder that was asked for.
fn is_below(name: &str) -> bool {
    !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The folder that a place of the workspace names, as the gateway writes it: without `.` and doubled slashes. `..` is the gateway's to refuse.
pub fn workspace_folder(place: &str) -> String {
    let path = place.strip_prefix("gsv:").unwrap_or(place);
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

/// The name of a listed path below the folder. `None`: it is not below it.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let name = match folder {
        "" => path,
        folder => path.strip_prefix(folder)?.strip_prefix('/')?,
    };
    is_below(name).then_some(name)
}

/// Files of the workspace. `root`: as `workspace_folder` gives it.
pub async fn list_workspace(client: &Client, root: &str, agent: Option<&AgentId>, out: Output) -> Outcome<Listing> {
    let mut listing = Listing::default();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let params = WorkspaceListParams {
            path: Some(folder.clone()),
            agent_id: agent.cloned(),
        };
        // A workspace may have more folders than a client may ask about in a minute.
        let listed = retry_rate_limited(out, || client.call::<WorkspaceList>(params.clone())).await?;
        if listed.truncated == Some(true) {
            return Err(too_many_files(&folder));
        }
        // The gateway names them, and this machine makes them.
        let named = |path: &str| {
            below(path, root).map(str::to_owned).ok_or_else(|| {
                Failure::failed(
                    format!(
                        "The gateway lists {}, which is not in that folder. Nothing was copied.",
                        one_line(path, 200)
                    ),
                    "Check which gateway this is: `gsv status`.",
                )
            })
        };
        for path in &listed.directories {
            listing.folders.push(named(path)?);
        }
        // An older gateway tells none.
        let etags = listed.etags.unwrap_or_default();
        let versions = etags.into_iter().chain(std::iter::repeat(String::new()));
        for (path, version) in listed.files.iter().zip(versions) {
            listing.files.push(Found {
                name: named(path)?,
                size: 0,
                version,
            });
        }
        open.extend(listed.directories);
        listing.check()?;
    }
    if listing.files.is_empty() && listing.folders.is_empty() {
        return Err(Failure::failed(
            format!("There is no folder gsv:{} with files in it.", one_line(root, 200)),
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
    fn tf14_a_place_of_the_workspace_is_one_folder_however_it_is_written() {
        for (place, folder) in [
            ("gsv:a", "a"),
            ("gsv:./a", "a"),
            ("gsv:a/./b/", "a/b"),
            ("gsv://skills//", "skills"),
            ("gsv:", ""),
            ("gsv:.", ""),
            ("gsv:gsv:a", "gsv:a"),
            ("gsv:a/..", "a/.."),
        ] {
            assert_eq!(workspace_folder(place), folder, "{place}");
        }
        assert_eq!(below("a/x", "a"), Some("x"));
        assert_eq!(below("a/a/x", "a"), Some("a/x"));
        assert_eq!(below("a/x", ""), Some("a/x"));
        for other in ["ab/x", "b/a/x", "a", "a/", "a/../x"] {
            assert_eq!(below(other, "a"), None, "{other}");
        }
    }

    #[test]
    fn tf14_a_folder_that_can_t_be_made_fails_with_its_files_and_no_others() {
        let found = |name: &str| Found {
            name: name.to_owned(),
            size: 0,
            version: String::new(),
        };
        let mut listing = Listing {
            files: ["a/x", "a/b/y", "ab/x", "z"].map(found).into(),
            ..Listing::default()
        };
        listing.fail_folder("a", "in the way");
        listing.fail_folder("empty", "in the way");
        let names: Vec<&str> = listing.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["ab/x", "z"]);
        let failed: Vec<&str> = listing.failed.keys().map(String::as_str).collect();
        assert_eq!(failed, ["a/b/y", "a/x", "empty"]);
    }

    #[test]
    fn tf14_a_listing_has_files_and_folders_and_says_what_it_leaves_out() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/empty")).unwrap();
        std::fs::write(at("a/x"), "12").unwrap();
        std::fs::write(at("b\n"), "3").unwrap();
        std::fs::write(at("a/.gsv-0123456789abcdef0123456789abcdef.part"), "left").unwrap();
        std::fs::write(at(".gsv-x.part"), "the user's own").unwrap();
        std::os::unix::fs::symlink("/etc", at("link")).unwrap();
        std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
        let listing = list_local(dir.path()).unwrap();
        let names: Vec<&str> = listing.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, [".gsv-x.part", "a/x", "b\n"]);
        let mut folders = listing.folders.clone();
        folders.sort();
        assert_eq!(folders, ["a", "a/empty"]);
        let why: Vec<&str> = listing.failed.values().map(String::as_str).collect();
        assert_eq!(why, ["its name is not UTF-8"]);
        assert_eq!(listing.skipped, ["link"]);
        assert_eq!(listing.unfinished, ["a/.gsv-0123456789abcdef0123456789abcdef.part"]);
    }
}
