//! launchd's agents of the user, in the domain of the login.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::launchd_plist;
use super::manager::{Manager, Phase, State};
use super::spec::Spec;
use super::tool::Tool;
use crate::exit::{Failure, Outcome};
use crate::paths;

/// Longer than the agents' own limit for an end.
const END_WITHIN: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(50);

pub struct Launchd {
    launchctl: Tool,
    folder: PathBuf,
    domain: String,
}

impl Launchd {
    pub fn find() -> Outcome<Self> {
        Ok(Self {
            launchctl: Tool::new("launchctl"),
            folder: paths::home()?.join("Library").join("LaunchAgents"),
            domain: format!("gui/{}", rustix::process::getuid().as_raw()),
        })
    }

    fn target(&self, name: &str) -> String {
        format!("{}/{name}", self.domain)
    }

    fn launchctl(&self, args: &[&str], doing: &str) -> Outcome {
        self.launchctl.must(args, doing, missing).map(drop)
    }

    fn load(&self, name: &str) -> Outcome {
        let file = self.file(name).display().to_string();
        self.launchctl(&["bootstrap", &self.domain, &file], "load the agent")
    }
}

fn missing() -> Failure {
    Failure::failed(
        "This machine has no launchctl, so there is no service manager that GSV can use.",
        "Start GSV by hand with `gsv up`.",
    )
}

impl Manager for Launchd {
    fn name(&self) -> &'static str {
        "launchd"
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.plist"))
    }

    fn text(&self, spec: &Spec) -> String {
        launchd_plist::text(spec)
    }

    fn check(&self) -> Outcome {
        let answer = self.launchctl.run(&["print", &self.domain])?.ok_or_else(missing)?;
        if answer.ok {
            return Ok(());
        }
        Err(Failure::failed(
            format!("launchd has no session of this user: {}", answer.problem),
            "Log in at the screen of this Mac, then try again.",
        ))
    }

    fn state(&self, name: &str) -> Outcome<State> {
        let answer = self
            .launchctl
            .run(&["print", &self.target(name)])?
            .ok_or_else(missing)?;
        let value = |key: &str| {
            answer
                .stdout
                .lines()
                .find_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='))
                .map(str::trim)
        };
        let pid = value("pid").and_then(|pid| pid.parse().ok());
        // An exit code without a process: it ended.
        let failed = value("last exit code").is_some_and(|code| !code.starts_with('0') && !code.starts_with('('));
        Ok(State {
            loaded: answer.ok,
            phase: match (answer.ok, pid) {
                (true, Some(_)) => Phase::Running,
                (true, None) if failed => Phase::Failed,
                _ => Phase::Stopped,
            },
            pid: pid.filter(|_| answer.ok),
            enabled: self.file(name).is_file(),
            restarts: None,
        })
    }

    fn enable(&self, name: &str) -> Outcome {
        self.launchctl(&["enable", &self.target(name)], "enable the agent")
    }

    /// Loads a service again that is loaded and has ended: launchd keeps the content that the file had when it was loaded.
    fn start(&self, name: &str) -> Outcome {
        let state = self.state(name)?;
        match (state.loaded, state.pid) {
            (false, _) => self.load(name),
            (true, None) => self.restart(name),
            (true, Some(_)) => Ok(()),
        }
    }

    /// Loads the file again, which may have changed.
    fn restart(&self, name: &str) -> Outcome {
        self.stop(name)?;
        self.load(name)
    }

    /// It stays enabled, so the next login starts it.
    fn stop(&self, name: &str) -> Outcome {
        if !self.state(name)?.loaded {
            return Ok(());
        }
        self.launchctl.run(&["bootout", &self.target(name)])?;
        // It may answer before the program has ended, with an error that says so.
        let deadline = Instant::now() + END_WITHIN;
        while self.state(name)?.loaded {
            if Instant::now() >= deadline {
                return Err(Failure::failed(
                    "The agent does not end.",
                    format!("Look at it with `launchctl print {}`.", self.target(name)),
                ));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn disable(&self, _name: &str) -> Outcome {
        Ok(())
    }

    fn removed(&self, _name: &str) -> Outcome {
        Ok(())
    }

    fn lingers(&self) -> Outcome<Option<bool>> {
        Ok(None)
    }

    fn linger(&self, _on: bool) -> Outcome {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::service::spec::Kind;

    /// Records its calls, and keeps what is loaded in a file. `bootout` answers before the end, as the real one may.
    const LAUNCHCTL: &str = r#"#!/bin/sh
here=${0%/*}
echo "$*" >>"$here/calls"
case $1 in
  print)
    [ "$2" = gui/7 ] && exit 0
    [ -f "$here/ending" ] && { mv "$here/ending" "$here/ended"; exit 0; }
    [ -f "$here/loaded" ] || { echo "Could not find service" >&2; exit 113; }
    [ -f "$here/idle" ] && { printf '%s = {\n\tstate = not running\n\tlast exit code = 0\n}\n' "$2"; exit 0; }
    printf '%s = {\n\tstate = running\n\tpid = 42\n\tlast exit code = (never exited)\n}\n' "$2";;
  bootstrap) [ -f "$here/loaded" ] && { echo "Bootstrap failed: 5" >&2; exit 5; }; rm -f "$here/idle"; cp "$3" "$here/loaded";;
  bootout) mv "$here/loaded" "$here/ending"; exit 36;;
  enable|kickstart) ;;
  *) exit 64;;
esac
"#;

    fn launchd(folder: &std::path::Path) -> Launchd {
        let program = folder.join("launchctl");
        fs::write(&program, LAUNCHCTL).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Launchd {
            launchctl: Tool::new(program.to_str().unwrap()),
            folder: folder.join("agents"),
            domain: "gui/7".into(),
        }
    }

    #[test]
    fn sv1_sv3_an_agent_is_loaded_once_restarted_and_ended() {
        let folder = tempfile::tempdir().unwrap();
        let launchd = launchd(folder.path());
        launchd.check().unwrap();
        let spec = Spec {
            kind: Kind::Gateway,
            name: "gsv-gateway".into(),
            description: String::new(),
            program: "/opt/gsv".into(),
            args: Vec::new(),
            env: Vec::new(),
        };
        let file = launchd.file(&spec.name);
        assert!(file.ends_with("agents/gsv-gateway.plist"));
        fs::create_dir(folder.path().join("agents")).unwrap();
        fs::write(&file, launchd.text(&spec)).unwrap();
        let phase = || launchd.state("gsv-gateway").unwrap().phase;
        assert_eq!(phase(), Phase::Stopped);
        launchd.enable("gsv-gateway").unwrap();
        launchd.start("gsv-gateway").unwrap();
        launchd.start("gsv-gateway").unwrap();
        let state = launchd.state("gsv-gateway").unwrap();
        assert_eq!(
            (state.phase, state.pid, state.enabled),
            (Phase::Running, Some(42), true)
        );
        launchd.restart("gsv-gateway").unwrap();
        assert_eq!(phase(), Phase::Running);
        launchd.stop("gsv-gateway").unwrap();
        launchd.stop("gsv-gateway").unwrap();
        assert_eq!(phase(), Phase::Stopped);
        let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
        let count = |verb: &str| calls.lines().filter(|call| call.starts_with(verb)).count();
        assert_eq!(
            (count("bootstrap gui/7 "), count("bootout gui/7/gsv-gateway")),
            (2, 2),
            "{calls}"
        );
    }

    #[test]
    fn sv2_an_agent_that_has_ended_starts_with_what_its_file_says_now() {
        let folder = tempfile::tempdir().unwrap();
        let launchd = launchd(folder.path());
        let file = launchd.file("gsv-gateway");
        fs::create_dir(folder.path().join("agents")).unwrap();
        fs::write(&file, "before").unwrap();
        launchd.start("gsv-gateway").unwrap();
        fs::write(folder.path().join("idle"), "").unwrap();
        assert_eq!(launchd.state("gsv-gateway").unwrap().phase, Phase::Stopped);
        fs::write(&file, "now").unwrap();
        launchd.start("gsv-gateway").unwrap();
        assert_eq!(launchd.state("gsv-gateway").unwrap().phase, Phase::Running);
        assert_eq!(fs::read_to_string(folder.path().join("loaded")).unwrap(), "now");
    }

    #[test]
    fn sv7_a_machine_without_launchctl_is_told_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let launchd = Launchd {
            launchctl: Tool::new(folder.path().join("none").to_str().unwrap()),
            ..launchd(folder.path())
        };
        assert!(launchd.check().unwrap_err().next.contains("gsv up"));
    }
}
