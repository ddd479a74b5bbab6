//! How this program was installed, and the one step that puts another release in its place. Only a folder that an archive was unpacked into is
//! replaced: npm, cargo and checkouts have commands of their own.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use semver::Version;
use serde::Deserialize;

use super::manifest::platform;
use crate::embedded::lock::Lock;
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths::shell;

const RELEASE: &str = "release.json";
/// All that a release has in its folder. A folder with more is not replaced.
const NAMES: [&str; 7] = [
    "bin",
    "runtime",
    RELEASE,
    "LICENSE",
    "NOTICE",
    "README.md",
    "sbom.cdx.json",
];
const NEXT: &str = "Check that you may write there, and that the disk is not full; then run the command again.";

/// `release.json` of an installed release.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    pub version: Version,
    platform: String,
    installed_by: InstalledBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum InstalledBy {
    Archive,
    Npm,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Installation {
    /// Unpacked from an archive into this folder.
    Archive(Folder),
    Npm,
    Cargo,
    /// Built in this checkout.
    Checkout(PathBuf),
    Unknown(PathBuf),
}

impl Installation {
    pub fn find() -> Outcome<Self> {
        let exe = env::current_exe().and_then(|exe| exe.canonicalize());
        Ok(Self::of(&exe.or_fail("find the gsv program", "Install it again.")?))
    }

    fn of(exe: &Path) -> Self {
        let dir = exe.parent().unwrap_or(Path::new("/"));
        let root = dir.parent().unwrap_or(Path::new("/"));
        match read(root).map(|release| release.installed_by) {
            Some(InstalledBy::Archive) if dir.ends_with("bin") => return Self::Archive(Folder(root.to_owned())),
            Some(InstalledBy::Npm) => return Self::Npm,
            _ => {}
        }
        let checkout = exe.ancestors().nth(3).filter(|checkout| {
            dir.parent().is_some_and(|target| target.ends_with("target")) && checkout.join("Cargo.toml").is_file()
        });
        if let Some(checkout) = checkout {
            return Self::Checkout(checkout.to_owned());
        }
        // cargo notes there what it has installed.
        if dir.ends_with("bin") && root.join(".crates.toml").is_file() {
            return Self::Cargo;
        }
        Self::Unknown(exe.to_owned())
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Archive(_) => "archive",
            Self::Npm => "npm",
            Self::Cargo => "cargo",
            Self::Checkout(_) => "checkout",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The folder that can be replaced. Else the failure says which command updates this program.
    pub fn folder(self) -> Outcome<Folder> {
        let (how, next) = match self {
            Self::Archive(folder) => return Ok(folder),
            Self::Npm => ("was installed by npm", "Install the newer release's packages with npm, as docs/upgrade.md says, then run `gsv down` and `gsv up`.".to_owned()),
            Self::Cargo => (
                "was installed by cargo",
                "Update the checkout, then run `cargo install --locked --path cli` and `npm run build` there; then `gsv down` and `gsv up`.".to_owned(),
            ),
            Self::Checkout(path) => (
                "was built from sources",
                format!("Update the checkout in {} and run `./scripts/start` there.", shell(&path)),
            ),
            Self::Unknown(exe) => (
                "was not installed from an archive of a release",
                format!("It is {}. Replace it the way it came there, or unpack an archive: docs/upgrade.md says how.", shell(&exe)),
            ),
        };
        Err(Failure::failed(
            format!("This program {how}, so `gsv update` does not replace it."),
            next,
        ))
    }
}

fn read(root: &Path) -> Option<Release> {
    serde_json::from_slice(&fs::read(root.join(RELEASE)).ok()?).ok()
}

/// The folder of an installed release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn program(&self) -> PathBuf {
        self.0.join("bin").join("gsv")
    }

    pub fn runtime(&self) -> PathBuf {
        self.0.join("runtime")
    }

    pub fn release(&self) -> Option<Release> {
        read(&self.0)
    }

    fn beside(&self, prefix: &str, suffix: &str) -> PathBuf {
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        self.0.with_file_name(format!("{prefix}{name}{suffix}"))
    }

    /// Where the release before this one is kept.
    pub fn previous(&self) -> PathBuf {
        self.beside("", ".previous")
    }

    /// Held during an update. Also removes what a killed update has left.
    pub fn lock(&self) -> Outcome<Lock> {
        let lock = Lock::try_take(&self.beside(".", ".update-lock"))?.ok_or_else(|| {
            Failure::later(
                "Another `gsv update` is running.",
                "Wait for its end, then run the command again.",
            )
        })?;
        let _ = fs::remove_dir_all(self.work());
        Ok(lock)
    }

    /// Where an update is prepared: on the same disk, so that one rename is enough.
    fn work(&self) -> PathBuf {
        self.beside(".", ".update")
    }

    pub fn make_work(&self) -> Outcome<Work> {
        let dir = self.work();
        let made = DirBuilder::new().mode(0o700).create(&dir);
        made.or_fail(format_args!("make a folder beside {}", self.0.display()), NEXT)?;
        Ok(Work(dir))
    }

    /// Refuses a folder in which something else lies too: it would be moved away with the program.
    pub fn check_alone(&self) -> Outcome {
        let entries = fs::read_dir(&self.0).or_fail(format_args!("read {}", self.0.display()), NEXT)?;
        let mut others: Vec<_> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !NAMES.contains(&name.as_str()))
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        others.sort();
        others.truncate(5);
        Err(Failure::failed(
            format!(
                "{} holds more than GSV ({}), so it can't be replaced as a whole. Nothing was replaced.",
                self.0.display(),
                others.join(", ")
            ),
            "Move what is not GSV's out of that folder, or unpack GSV into a folder of its own.",
        ))
    }

    /// Puts a release that was checked in the place of this one, which becomes the previous one. One exchange of two names: a kill leaves the
    /// old program or the new one, each with its runtime.
    pub fn replace(&self, work: &Work) -> Outcome {
        let previous = self.previous();
        // Everything is on disk before a name says so.
        rustix::fs::sync();
        remove_dir(&previous)
            .and_then(|()| fs::rename(work.new_release(), &previous))
            .or_fail(format_args!("move the new release beside {}", self.0.display()), NEXT)?;
        self.exchange()
    }

    /// Exchanges this release with the previous one.
    pub fn exchange(&self) -> Outcome {
        renameat_with(CWD, self.previous(), CWD, &self.0, RenameFlags::EXCHANGE).map_err(|error| {
            match error.into() {
                error
                    if matches!(
                        io::Error::kind(&error),
                        ErrorKind::InvalidInput | ErrorKind::Unsupported
                    ) =>
                {
                    Failure::failed(
                        "This file system can't exchange two folders in one step. Nothing was replaced.",
                        format!(
                            "Stop GSV with `gsv down`, then exchange {} and {} by hand.",
                            shell(&self.0),
                            shell(&self.previous())
                        ),
                    )
                }
                error => Failure::failed(
                    format!("Could not replace {}: {error}. Nothing was replaced.", self.0.display()),
                    NEXT,
                ),
            }
        })?;
        let _ = self
            .0
            .parent()
            .map(|parent| File::open(parent).and_then(|dir| dir.sync_all()));
        Ok(())
    }

    /// The release that a rollback brings back.
    pub fn earlier(&self, installed: &Version) -> Outcome<Version> {
        let found = read(&self.previous()).filter(|release| release.version < *installed);
        found.map(|release| release.version).ok_or_else(|| {
            Failure::failed(
                "There is no earlier version beside this one, so nothing was replaced.",
                format!("`gsv update` keeps one in {}.", self.previous().display()),
            )
        })
    }
}

/// Removed when dropped.
pub struct Work(PathBuf);

impl Work {
    pub fn archive(&self) -> PathBuf {
        self.0.join("archive.tar.gz")
    }

    pub fn new_release(&self) -> PathBuf {
        self.0.join("new")
    }

    /// Whether the unpacked release is what the manifest says, whole, and runs on this machine.
    pub fn check(&self, version: &Version) -> Outcome {
        let dir = self.new_release();
        let wrong = |why: &str| {
            Failure::failed(
                format!("The release {version} can't be used here: {why}. Nothing was replaced."),
                "Tell those who publish the releases.",
            )
        };
        let release = read(&dir).ok_or_else(|| wrong("it does not say what it is"))?;
        if release.version != *version || release.installed_by != InstalledBy::Archive {
            return Err(wrong("it is another release"));
        }
        if release.platform != platform() {
            return Err(wrong(&format!("it is for {}", release.platform)));
        }
        crate::embedded::runtime::Runtime::open(&dir.join("runtime"))?;
        let ran = Command::new(Folder(dir).program())
            .arg("version")
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| wrong(&format!("its program does not start ({error})")))?;
        if ran.status.success() && String::from_utf8_lossy(&ran.stdout).trim() == format!("gsv {version}") {
            Ok(())
        } else {
            Err(wrong("its program does not run on this machine"))
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
