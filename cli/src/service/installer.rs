//! Installs, starts, stops and removes a service, whichever manager runs it. Each step may be repeated, so a command that failed goes on
//! where it stopped when it is run again. Prints nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::manager::{Manager, Phase, State};
use super::records::{Record, Records};
use super::spec::{Kind, Spec};
use crate::exit::{Failure, OrFail, Outcome};
use crate::{paths, private_file};

/// In each file that GSV has written.
const WRITTEN: &str = "Written by `gsv ";
const CHECK_FOLDER: &str = "Check that the folder is yours and that the disk is not full.";

/// What a service needs of the program that it runs.
pub trait Part {
    /// Ends, or refuses, a process outside of the service that does the same. `service`: the process of the service.
    fn take_over(&self, service: Option<u32>) -> Outcome;
    /// Waits until the service does its work.
    fn wait(&self, manager: &dyn Manager) -> Outcome;
}

pub struct Installer<'a> {
    pub manager: &'a dyn Manager,
    pub records: Records,
}

/// What an installation did.
#[derive(Debug, PartialEq)]
pub struct Installed {
    /// False: it was installed like this already, and runs.
    pub changed: bool,
    /// Whether services run without a login. None: the manager has no such thing.
    pub lingers: Option<Outcome<()>>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Removed {
    pub was_installed: bool,
    /// Services of this user no longer run without a login, because GSV had asked for that.
    pub linger_ended: bool,
}

/// A service as it stands.
#[derive(Debug, Clone)]
pub struct Found {
    pub file: PathBuf,
    pub installed: bool,
    pub spec: Option<Spec>,
    pub state: State,
    /// Why it is to be installed again.
    pub old: Vec<String>,
    pub lingers: Option<bool>,
}

impl Installer<'_> {
    pub fn install(&self, spec: &Spec, part: &dyn Part) -> Outcome<Installed> {
        self.manager.check()?;
        let state = self.manager.state(&spec.name)?;
        let file = self.manager.file(&spec.name);
        let text = self.manager.text(spec);
        let present = read(&file)?;
        let known = self.records.get(&spec.name);
        check_own(&file, present.as_deref())?;
        let is_same = present.as_ref() == Some(&text);
        let is_applied = is_same && known.is_some_and(|known| known.applied && known.spec == *spec);
        let mut record = Record {
            spec: spec.clone(),
            applied: is_applied,
        };
        self.records.put(&record)?;
        if !is_same {
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)
                    .or_fail(format_args!("make the folder {}", folder.display()), CHECK_FOLDER)?;
            }
            private_file::write(&file, &text)?;
        }
        self.manager.enable(&spec.name)?;
        let lingers = self.linger()?;
        let runs = state.phase == Phase::Running;
        if is_applied && runs {
            return Ok(Installed {
                changed: false,
                lingers,
            });
        }
        part.take_over(state.pid)?;
        if runs {
            self.manager.restart(&spec.name)?;
        } else {
            self.manager.start(&spec.name)?;
        }
        part.wait(self.manager)?;
        record.applied = true;
        self.records.put(&record)?;
        Ok(Installed { changed: true, lingers })
    }

    /// A manager that refuses it is no reason to stop: the service runs while its user is logged in.
    fn linger(&self) -> Outcome<Option<Outcome<()>>> {
        match self.manager.lingers()? {
            None => Ok(None),
            Some(true) => Ok(Some(Ok(()))),
            Some(false) => {
                self.records.set_linger(true)?;
                let done = self.manager.linger(true);
                if done.is_err() {
                    self.records.set_linger(false)?;
                }
                Ok(Some(done))
            }
        }
    }

    pub fn uninstall(&self, name: &str) -> Outcome<Removed> {
        self.manager.check()?;
        let file = self.manager.file(name);
        let state = self.manager.state(name)?;
        let present = read(&file)?;
        let was_installed = self.has_trace(name)?;
        if was_installed {
            check_own(&file, present.as_deref())?;
            // A program whose file was removed by hand runs on.
            if state.loaded || state.phase != Phase::Stopped {
                self.manager.stop(name)?;
            }
            let disabled = self.manager.disable(name);
            if present.is_some() {
                disabled?;
                fs::remove_file(&file).or_fail(format_args!("remove {}", file.display()), CHECK_FOLDER)?;
            }
            self.manager.removed(name)?;
        }
        let linger_ended = self.records.has_linger() && self.is_last(name);
        if linger_ended {
            self.manager.linger(false)?;
            self.records.set_linger(false)?;
        }
        self.records.remove(name);
        Ok(Removed {
            was_installed,
            linger_ended,
        })
    }

    /// Whether there is something to remove: a file that GSV wrote, or what a removal that failed has left.
    pub fn has_trace(&self, name: &str) -> Outcome<bool> {
        let is_known = self.records.names().iter().any(|known| known == name);
        Ok(is_known || read(&self.manager.file(name))?.is_some_and(|text| text.contains(WRITTEN)))
    }

    /// Whether this user has no other service of GSV, of whichever state folder.
    fn is_last(&self, name: &str) -> bool {
        let file = self.manager.file(name);
        let entries = file
            .parent()
            .map(fs::read_dir)
            .into_iter()
            .flatten()
            .flatten()
            .flatten();
        let mut others = entries
            .map(|entry| entry.path())
            .filter(|other| *other != file && other.extension() == file.extension());
        let is_of_gsv = |other: PathBuf| {
            let bytes = fs::read(other).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(WRITTEN)
        };
        self.records.names().iter().all(|other| other == name) && !others.any(is_of_gsv)
    }

    /// Returns whether it was started now.
    pub fn start(&self, kind: Kind, name: &str, part: &dyn Part) -> Outcome<bool> {
        let state = self.present(kind, name)?;
        if state.phase == Phase::Running {
            part.wait(self.manager)?;
            return Ok(false);
        }
        part.take_over(state.pid)?;
        self.manager.start(name)?;
        part.wait(self.manager)?;
        Ok(true)
    }

    /// Returns whether it ran.
    pub fn stop(&self, kind: Kind, name: &str) -> Outcome<bool> {
        let state = self.present(kind, name)?;
        self.manager.stop(name)?;
        Ok(matches!(state.phase, Phase::Running | Phase::Starting))
    }

    fn present(&self, kind: Kind, name: &str) -> Outcome<State> {
        self.manager.check()?;
        if !self.is_installed(name) {
            return Err(not_installed(kind));
        }
        self.manager.state(name)
    }

    pub fn is_installed(&self, name: &str) -> bool {
        self.manager.file(name).is_file()
    }

    /// `program`: the program that an installation would name now.
    pub fn find(&self, name: &str, program: &str) -> Outcome<Found> {
        self.manager.check()?;
        let file = self.manager.file(name);
        let present = read(&file)?;
        let record = self.records.get(name);
        let old = match (&present, &record) {
            (None, _) => Vec::new(),
            (Some(text), record) => self.reasons(text, record.as_ref(), program),
        };
        Ok(Found {
            installed: present.is_some(),
            file,
            state: self.manager.state(name)?,
            spec: record.map(|record| record.spec),
            old,
            lingers: self.manager.lingers()?,
        })
    }

    fn reasons(&self, text: &str, record: Option<&Record>, program: &str) -> Vec<String> {
        let Some(record) = record else {
            return vec!["GSV does not know what it runs".to_owned()];
        };
        let mut reasons = Vec::new();
        let runs = &record.spec.program;
        if !Path::new(runs).is_file() {
            reasons.push(format!("its program {runs} no longer exists"));
        } else if runs != program {
            reasons.push(format!("it runs {runs}, and this program is {program}"));
        }
        if text != self.manager.text(&record.spec) {
            reasons.push("its file is not the one that this version writes".to_owned());
        } else if !record.applied {
            reasons.push("its installation did not end".to_owned());
        }
        reasons
    }
}

pub fn not_installed(kind: Kind) -> Failure {
    let what = match kind {
        Kind::Gateway => "The gateway",
        Kind::Node => "This machine's node",
    };
    Failure::failed(
        format!("{what} is not installed as a service."),
        format!("Install it: `{}`.", kind.install()),
    )
}

/// Refuses a file in the place of the service's that GSV has not written.
fn check_own(file: &Path, present: Option<&str>) -> Outcome {
    if present.is_none_or(|text| text.contains(WRITTEN)) {
        return Ok(());
    }
    Err(Failure::failed(
        format!("{} was not written by GSV.", file.display()),
        "Look at it and move it away, then run the command again.",
    ))
}

fn read(file: &Path) -> Outcome<Option<String>> {
    match fs::read_to_string(file) {
        // A link to nothing is a file of someone else.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(file.is_symlink().then(String::new)),
        read => read
            .or_fail(
                format_args!("read {}", file.display()),
                format!("Look at it with `ls -l {}`.", paths::shell(file)),
            )
            .map(Some),
    }
}
