//! systemd's manager of the user's services.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::manager::{Manager, Phase, State};
use super::spec::Spec;
use super::systemd_unit;
use super::tool::Tool;
use crate::exit::{Failure, Outcome};
use crate::paths;

const RUNTIME: &str = "XDG_RUNTIME_DIR";

pub struct Systemd {
    systemctl: Tool,
    loginctl: Tool,
    folder: PathBuf,
}

impl Systemd {
    pub fn find() -> Outcome<Self> {
        // As systemd itself looks for units.
        let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = match config.filter(|dir| dir.is_absolute()) {
            Some(config) => config,
            None => paths::home()?.join(".config"),
        };
        let mut systemctl = Tool::new("systemctl");
        // Shells of `su` and `sudo` do not have it.
        let runtime = format!("/run/user/{}", user());
        if env::var_os(RUNTIME).is_none() && Path::new(&runtime).is_dir() {
            systemctl.env.push((RUNTIME.into(), OsString::from(runtime)));
        }
        Ok(Self {
            systemctl,
            loginctl: Tool::new("loginctl"),
            folder: config.join("systemd").join("user"),
        })
    }

    fn systemctl(&self, args: &[&str], doing: &str) -> Outcome<String> {
        let args = [&["--user", "--no-ask-password"], args].concat();
        self.systemctl.must(&args, doing, missing)
    }
}

fn user() -> String {
    rustix::process::getuid().as_raw().to_string()
}

fn unit(name: &str) -> String {
    format!("{name}.service")
}

fn missing() -> Failure {
    Failure::failed(
        "This machine has no systemd, so there is no service manager that GSV can use.",
        "",
    )
}

impl Manager for Systemd {
    fn name(&self) -> &'static str {
        "systemd"
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(unit(name))
    }

    fn text(&self, spec: &Spec) -> String {
        systemd_unit::text(spec)
    }

    fn check(&self) -> Outcome {
        let asked = self
            .systemctl
            .run(&["--user", "--no-ask-password", "show", "--property=Version"])?;
        let answer = asked.ok_or_else(missing)?;
        if answer.ok {
            return Ok(());
        }
        let user = user();
        Err(Failure::failed(
            format!("The service manager of this user can't be reached: {}", answer.problem),
            format!(
                "On a machine that runs systemd: `sudo loginctl enable-linger {user}`, then log in as this user (ssh, not su) and try again."
            ),
        ))
    }

    fn state(&self, name: &str) -> Outcome<State> {
        const PROPERTIES: &str = "--property=LoadState,ActiveState,MainPID,UnitFileState,NRestarts";
        let shown = self.systemctl(&["show", &unit(name), PROPERTIES], "ask for the service")?;
        let value = |key: &str| {
            shown
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
                .unwrap_or_default()
        };
        Ok(State {
            loaded: value("LoadState") == "loaded",
            phase: match value("ActiveState") {
                "active" | "reloading" => Phase::Running,
                "activating" => Phase::Starting,
                "failed" => Phase::Failed,
                _ => Phase::Stopped,
            },
            pid: value("MainPID").parse().ok().filter(|pid| *pid > 0),
            enabled: value("UnitFileState").starts_with("enabled"),
            restarts: value("NRestarts").parse().ok(),
        })
    }

    fn enable(&self, name: &str) -> Outcome {
        self.systemctl(&["daemon-reload"], "load the service")?;
        self.systemctl(&["enable", &unit(name)], "enable the service")?;
        Ok(())
    }

    fn start(&self, name: &str) -> Outcome {
        self.systemctl(&["start", &unit(name)], "start the service").map(drop)
    }

    fn restart(&self, name: &str) -> Outcome {
        self.systemctl(&["restart", &unit(name)], "restart the service")
            .map(drop)
    }

    fn stop(&self, name: &str) -> Outcome {
        self.systemctl(&["stop", &unit(name)], "stop the service").map(drop)
    }

    fn disable(&self, name: &str) -> Outcome {
        self.systemctl(&["disable", &unit(name)], "disable the service")
            .map(drop)
    }

    fn removed(&self, name: &str) -> Outcome {
        self.systemctl(&["daemon-reload"], "unload the service")?;
        // Only a service that failed has something to forget, and systemd refuses others.
        let args = ["--user", "--no-ask-password", "reset-failed", &unit(name)];
        self.systemctl.run(&args).map(drop)
    }

    fn lingers(&self) -> Outcome<Option<bool>> {
        let user = user();
        let asked = self
            .loginctl
            .run(&["show-user", &user, "--property=Linger", "--value"])?;
        // A user who is not logged in is not known, unless services linger.
        Ok(Some(asked.is_some_and(|answer| answer.ok && answer.stdout == "yes")))
    }

    fn linger(&self, on: bool) -> Outcome {
        let verb = if on { "enable-linger" } else { "disable-linger" };
        let args = ["--no-ask-password", verb, &user()];
        self.loginctl
            .must(&args, "change whether services run without a login", missing)
            .map(drop)
    }
}
