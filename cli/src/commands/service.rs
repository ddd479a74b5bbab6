//! What the services of the gateway and of the node have in common: their state, their end, their logs.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::node_files::{Running, running};
use crate::args::ServiceLogs;
use crate::clean::clean;
use crate::embedded::log;
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;
use crate::service::{
    self, Found, Installed, Installer, Kind, LogFile, Manager, Phase, Records, Removed, not_installed,
};

/// Longer than a gateway may take to start.
const READY_WITHIN: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(20);
/// The manager is a program of its own, so it is asked less often.
const ASK: Duration = Duration::from_millis(500);
const LOG_LINES: usize = 12;

/// One service of this machine.
pub struct Service {
    pub kind: Kind,
    pub name: String,
    /// For people: "the gateway".
    pub what: String,
    /// The node.
    pub id: Option<String>,
}

/// A program that runs outside of a service.
pub struct ByHand {
    /// For people: how it was started.
    pub state: String,
    pub pid: Option<u32>,
    /// For people: the node's connection.
    pub gateway: Option<String>,
}

fn with_way_to_stop(id: &str, node: Running, failure: Failure) -> Failure {
    let next = match node {
        Running::No => {
            let what = failure.message.trim_end_matches('.');
            let message = format!("{what}. The node `{id}` does not run now: nothing was stopped.");
            return Failure { message, ..failure };
        }
        Running::Somewhere => format!("The node `{id}` runs in a terminal: press Ctrl-C there."),
        Running::Process(pid) => {
            format!("The node `{id}` runs in a terminal (pid {pid}): press Ctrl-C there, or run `kill {pid}`.")
        }
    };
    Failure { next, ..failure }
}

pub fn with_installer<T>(act: impl FnOnce(&Installer) -> Outcome<T>) -> Outcome<T> {
    let manager = service::find()?;
    act(&Installer {
        manager: manager.as_ref(),
        records: Records::find()?,
    })
}

impl Service {
    /// The command of this service with a verb.
    pub fn command(&self, verb: &str) -> String {
        let command = format!("{} {verb}", self.kind.command());
        match &self.id {
            Some(id) => format!("{command} --id {id}"),
            None => command,
        }
    }

    /// How its program runs where there is no service manager.
    fn by_hand(&self) -> String {
        match &self.id {
            None => "Without a service manager, as in a container: `gsv up --foreground`.".to_owned(),
            Some(id) => format!("Without a service manager, as in a container: `gsv node --id {id}`."),
        }
    }

    /// Fails when the service manager can't be reached, with the way to reach it and the way without it.
    pub fn check(&self) -> Outcome {
        with_installer(|installer| installer.manager.check()).map_err(|failure| {
            let next = format!("{} {}", failure.next, self.by_hand()).trim_start().to_owned();
            Failure { next, ..failure }
        })
    }

    /// For commands about a service that is installed: without a service manager, one that is not installed needs none.
    pub fn in_reach<T>(&self, done: Outcome<T>) -> Outcome<T> {
        let Err(failure) = done else { return done };
        let Err(unreachable) = self.check() else {
            return Err(failure);
        };
        if self.is_installed() {
            return Err(unreachable);
        }
        let what = match self.kind {
            Kind::Gateway => "gateway",
            Kind::Node => "node",
        };
        Err(Failure {
            message: format!("This machine's {what} is not a service: {}", unreachable.message),
            next: self.by_hand(),
            ..unreachable
        })
    }

    /// Nothing of it is there, and no service manager either.
    fn is_out_of_reach(&self) -> Outcome<bool> {
        Ok(!self.has_trace()? && !Records::find()?.has_linger() && self.check().is_err())
    }

    pub fn uninstall(&self, out: Output, kept: &str) -> Outcome {
        let removed = if self.is_out_of_reach()? {
            Removed {
                was_installed: false,
                linger_ended: false,
            }
        } else {
            with_installer(|installer| installer.uninstall(&self.name))?
        };
        let words = if removed.was_installed {
            let linger = if removed.linger_ended {
                " Your services no longer run without a login, as before the installation."
            } else {
                ""
            };
            format!("The service of {} is removed.{linger} {kept}", self.what)
        } else {
            format!("The service of {} was not installed.", self.what)
        };
        out.show(json!({ "wasInstalled": removed.was_installed }), |_| out.note(&words));
        Ok(())
    }

    /// It is no service, so its program is stopped by hand where it runs.
    fn stop_by_hand(&self, failure: Failure) -> Outcome<Failure> {
        let Some(id) = &self.id else {
            let next = "To stop the gateway: `gsv down`.".to_owned();
            return Ok(Failure { next, ..failure });
        };
        Ok(with_way_to_stop(id, running(id)?, failure))
    }

    pub fn stop(&self, out: Output) -> Outcome {
        let stopped = self.in_reach(with_installer(|installer| installer.stop(self.kind, &self.name)));
        let ran = match stopped {
            Err(failure) if !self.is_installed() => {
                return Err(self.stop_by_hand(failure)?);
            }
            stopped => stopped?,
        };
        let words = if ran { "is stopped" } else { "was not running" };
        out.show(json!({ "wasRunning": ran }), |_| {
            out.note(&format!(
                "The service of {} {words}. It starts again with the machine; `{}` removes it.",
                self.what,
                self.command("uninstall")
            ));
        });
        Ok(())
    }

    pub fn find(&self) -> Outcome<Found> {
        let program = this_program()?;
        with_installer(|installer| installer.find(&self.name, &program))
    }

    /// `by_hand`: how its program runs outside of a service, if it does.
    pub fn status(&self, out: Output, by_hand: impl FnOnce() -> Outcome<Option<ByHand>>) -> Outcome {
        if !self.is_installed()
            && let Some(runs) = by_hand()?
        {
            self.show_by_hand(out, &runs);
            return Ok(());
        }
        let found = self.in_reach(self.find())?;
        let manager = service::find()?.name();
        if out.json {
            out.json_document(&self.json(&found, manager));
        }
        if !found.installed {
            return Err(not_installed(self.kind));
        }
        if !out.json {
            out.fields([
                ("service", Some(format!("{} ({manager})", self.name))),
                ("state", Some(words(&found))),
                ("process", found.state.pid.map(|pid| pid.to_string())),
                (
                    "restarts",
                    found
                        .state
                        .restarts
                        .filter(|count| *count > 0)
                        .map(|count| count.to_string()),
                ),
                ("starts", Some(starts(&found).to_owned())),
                ("program", found.spec.as_ref().map(|spec| spec.program.clone())),
                ("file", Some(found.file.display().to_string())),
            ]);
            for reason in &found.old {
                out.warn(&format!("{reason}. Install it again: `{}`", self.command("install")));
            }
            if found.lingers == Some(false) {
                out.warn(&linger_words());
            }
        }
        match found.state.phase {
            Phase::Running | Phase::Starting => Ok(()),
            Phase::Failed => Err(Failure::failed(
                format!("The service of {} has failed.", self.what),
                format!("See why: `{}`. Then `{}`.", self.command("logs"), self.command("start")),
            )),
            Phase::Stopped => Err(Failure::later(
                format!("The service of {} is stopped.", self.what),
                format!("Start it with `{}`.", self.command("start")),
            )),
        }
    }

    /// It has no service, and needs none.
    fn show_by_hand(&self, out: Output, runs: &ByHand) {
        if out.json {
            out.json_document(&json!({
                "name": self.name,
                "manager": null,
                "file": null,
                "installed": false,
                "state": "running",
                "pid": runs.pid,
                "enabled": false,
                "restarts": null,
                "lingers": null,
                "program": null,
                "old": [],
            }));
            return;
        }
        out.fields([
            ("service", Some("not installed".to_owned())),
            ("state", Some(runs.state.clone())),
            ("process", runs.pid.map(|pid| pid.to_string())),
            ("gateway", runs.gateway.clone()),
        ]);
        if self.check().is_ok() {
            out.aside(&format!(
                "To start it with this machine, make it a service: `{}`.",
                self.command("install")
            ));
        }
    }

    fn json(&self, found: &Found, manager: &str) -> Value {
        json!({
            "name": self.name,
            "manager": manager,
            "file": found.file,
            "installed": found.installed,
            "state": found.state.phase,
            "pid": found.state.pid,
            "enabled": found.state.enabled,
            "restarts": found.state.restarts,
            "lingers": found.lingers,
            "program": found.spec.as_ref().map(|spec| &spec.program),
            "old": found.old,
        })
    }

    pub fn is_installed(&self) -> bool {
        with_installer(|installer| Ok(installer.is_installed(&self.name))).is_ok_and(|is| is)
    }

    /// Whether there is something to remove. A system without services has nothing.
    pub fn has_trace(&self) -> Outcome<bool> {
        match service::find() {
            Ok(_) => with_installer(|installer| installer.has_trace(&self.name)),
            Err(_) => Ok(false),
        }
    }

    /// None: it is not installed, and the manager is not asked.
    pub fn glance(&self) -> Option<Outcome<Found>> {
        self.is_installed().then(|| self.find())
    }

    pub fn report_install(&self, out: Output, installed: &Installed) {
        let words = if installed.changed {
            format!("The service of {} is installed and running.", self.what)
        } else {
            format!(
                "The service of {} is already installed this way and is running.",
                self.what
            )
        };
        let lingers = installed.lingers.as_ref().map(Result::is_ok);
        out.show(
            json!({ "name": self.name, "changed": installed.changed, "lingers": lingers }),
            |_| out.note(&words),
        );
        match &installed.lingers {
            Some(Ok(())) => out.aside("It starts with this machine, also before you log in."),
            None => out.aside("It starts when you log in."),
            Some(Err(failure)) => {
                out.warn(&format!("{} {}", linger_words(), failure.message));
            }
        }
    }
}

/// The program that an installation would name.
pub fn this_program() -> Outcome<String> {
    let program = std::env::current_exe().or_fail("find the gsv program", "Install it again.")?;
    Ok(program.to_string_lossy().into_owned())
}

fn linger_words() -> String {
    let user = rustix::process::getuid().as_raw();
    format!(
        "your services run only while you are logged in, and not after a restart of the machine until you log in. To change that: `sudo loginctl enable-linger {user}`."
    )
}

/// The state for people.
pub fn words(found: &Found) -> String {
    let state = match found.state.phase {
        Phase::Running => "running",
        Phase::Starting => "starting",
        Phase::Stopped => "stopped",
        Phase::Failed => "failed",
    };
    match found.old.as_slice() {
        [] => state.to_owned(),
        _ => format!("{state}, to be installed again"),
    }
}

/// For `gsv status`.
pub fn in_one_line(found: &Outcome<Found>) -> String {
    match found {
        Ok(found) => format!("{}; `gsv service status` shows more", words(found)),
        Err(failure) => failure.message.clone(),
    }
}

pub fn in_json(found: &Found) -> Value {
    json!({ "state": found.state.phase, "pid": found.state.pid, "old": found.old })
}

fn starts(found: &Found) -> &'static str {
    match (found.state.enabled, found.lingers) {
        (false, _) => "only by hand",
        (true, Some(true)) => "with this machine",
        (true, _) => "when you log in",
    }
}

/// Waits until `is_ready` says so for the process of the service. Fails when the service ends or is restarted meanwhile.
pub fn wait_ready(
    manager: &dyn Manager,
    service: &Service,
    log_file: &Path,
    mark: u64,
    mut is_ready: impl FnMut(Option<u32>) -> bool,
) -> Outcome {
    let failed = |what: &str| {
        let message = format!("The service of {} {what}.", service.what);
        let next = format!("The whole log: `{}`.", service.command("logs"));
        Failure::failed(message, next).with_lines(log::tail_since(log_file, mark, LOG_LINES))
    };
    let before = manager.state(&service.name)?;
    let mut state = before.clone();
    let (deadline, mut asked) = (Instant::now() + READY_WITHIN, Instant::now());
    loop {
        if is_ready(state.pid) {
            return Ok(());
        }
        if state.restarts > before.restarts {
            return Err(failed("does not start; it is tried again and again"));
        }
        match state.phase {
            Phase::Failed | Phase::Stopped => return Err(failed("did not start")),
            Phase::Running | Phase::Starting => {}
        }
        if Instant::now() >= deadline {
            return Err(failed("is not ready in time"));
        }
        std::thread::sleep(LOOK);
        if asked.elapsed() >= ASK {
            state = manager.state(&service.name)?;
            asked = Instant::now();
        }
    }
}

/// The end of a log, and with `--follow` what is added. `shown`: a line for people.
pub fn logs(out: Output, file: &Path, args: &ServiceLogs, shown: impl Fn(&str) -> String) -> Outcome {
    let next = format!("Look at it with `ls -l {}`.", crate::paths::shell(file));
    let show = |line: &str| {
        if out.json {
            let value = serde_json::from_str::<Value>(line).ok().filter(Value::is_object);
            out.json_line(&value.unwrap_or_else(|| json!({ "line": line })));
        } else {
            out.line(&clean(&shown(line)));
        }
    };
    let mut log = LogFile::new(file.to_owned());
    let doing = format!("read {}", file.display());
    let lines = log.tail(args.lines).or_fail(&doing, &next)?;
    if lines.is_empty() && !file.exists() {
        out.aside(&format!("There is no log yet: {}", file.display()));
    }
    for line in &lines {
        show(line);
    }
    if args.follow {
        log.follow(|line| show(line)).or_fail(&doing, &next)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p10_a_node_that_is_no_service_is_stopped_where_it_runs() {
        let told = |node| with_way_to_stop("desk", node, not_installed(Kind::Node));
        assert!(told(Running::Process(7)).next.contains("`kill 7`"));
        assert!(told(Running::Somewhere).next.contains("Ctrl-C"));
        // With nothing to stop, the next step is that of the service.
        let nothing = told(Running::No);
        assert!(
            nothing.message.ends_with("does not run now: nothing was stopped."),
            "{nothing:?}"
        );
        assert_eq!(nothing.next, not_installed(Kind::Node).next);
    }
}
