//! Notifications on this machine's desktop (rule NT8): starts `notify-send` or `osascript` with arguments, never through a shell. Each id
//! is shown once, and only so many in a minute.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gsv_protocol::types::{NodeDesktop, NotifyShowEvent};
use tokio::process::Command;

const SHOW_TIME: Duration = Duration::from_secs(10);
const WINDOW: Duration = Duration::from_secs(60);
const MOST_IN_WINDOW: usize = 10;
const REMEMBERED: usize = 64;
const NOTIFY_SEND: &str = "notify-send";
const OSASCRIPT: &str = "osascript";
/// The texts come as arguments of the script, so that nothing in them is a part of it.
const SCRIPT: [&str; 3] = [
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
];
/// What the program needs of the node's environment. The node's token is not in it.
const VARIABLES: [&str; 8] = [
    "PATH",
    "HOME",
    "LANG",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// The program that shows notifications, or why there is none.
pub struct Desktop {
    program: Result<Program, String>,
    shown: Mutex<Shown>,
}

struct Program {
    name: &'static str,
    path: PathBuf,
}

#[derive(Default)]
struct Shown {
    ids: VecDeque<String>,
    at: VecDeque<Instant>,
}

impl Desktop {
    /// Looks in the environment of this process.
    pub fn find() -> Self {
        Self::in_environment(&|name| env::var_os(name), cfg!(target_os = "macos"))
    }

    fn in_environment(variable: &dyn Fn(&str) -> Option<OsString>, is_mac: bool) -> Self {
        let name = if is_mac { OSASCRIPT } else { NOTIFY_SEND };
        let program = match in_path(name, variable("PATH")) {
            None if is_mac => Err("osascript is not installed.".to_owned()),
            None => Err("notify-send is not installed (on Debian and Ubuntu: the package libnotify-bin).".to_owned()),
            Some(_) if !is_mac && !has_session(variable) => {
                Err("The node runs outside of a desktop session: there is no session bus.".to_owned())
            }
            Some(path) => Ok(Program { name, path }),
        };
        Self {
            program,
            shown: Mutex::default(),
        }
    }

    /// What the gateway is told when the node connects.
    pub fn reported(&self) -> NodeDesktop {
        NodeDesktop {
            program: self.program.as_ref().ok().map(|program| program.name.to_owned()),
            missing: self.program.as_ref().err().cloned(),
        }
    }

    /// Whether this id may be shown now. `Ok(false)`: it was shown before.
    fn admit(&self, id: &str, now: Instant) -> Result<bool, String> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.ids.iter().any(|known| known == id) {
            return Ok(false);
        }
        while shown
            .at
            .front()
            .is_some_and(|at| now.saturating_duration_since(*at) >= WINDOW)
        {
            shown.at.pop_front();
        }
        if shown.at.len() >= MOST_IN_WINDOW {
            return Err(format!("{MOST_IN_WINDOW} notifications were shown in the last minute."));
        }
        shown.at.push_back(now);
        shown.ids.push_back(id.to_owned());
        if shown.ids.len() > REMEMBERED {
            shown.ids.pop_front();
        }
        Ok(true)
    }

    /// The program has failed, so that the id may be shown later. It stays counted for its minute.
    fn failed(&self, id: &str) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.ids.retain(|known| known != id);
    }

    /// Shows a notification, once. After a failure it can be shown again; whether a program that did not end in time has shown it is not
    /// known.
    ///
    /// # Errors
    /// Why it was not shown, as a sentence.
    pub async fn show(&self, event: &NotifyShowEvent) -> Result<(), String> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        if !self.admit(&event.show_id, Instant::now())? {
            return Ok(());
        }
        let mut command = Command::new(&program.path);
        command
            .args(arguments(program.name, &event.title, &event.text))
            .env_clear()
            .envs(VARIABLES.iter().filter_map(|name| Some((*name, env::var_os(name)?))))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let Ok(ended) = tokio::time::timeout(SHOW_TIME, command.status()).await else {
            return Err(format!(
                "{} did not end within {} s.",
                program.name,
                SHOW_TIME.as_secs()
            ));
        };
        let problem = match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => format!("{} failed ({status}).", program.name),
            Err(error) => format!("{} can't be started: {error}.", program.name),
        };
        self.failed(&event.show_id);
        Err(problem)
    }
}

fn in_path(name: &str, path: Option<OsString>) -> Option<PathBuf> {
    env::split_paths(&path?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn has_session(variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let is_set = variable("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
    is_set || variable("XDG_RUNTIME_DIR").is_some_and(|folder| Path::new(&folder).join("bus").exists())
}

fn arguments(program: &str, title: &str, text: &str) -> Vec<String> {
    let (title, text) = (plain(title), plain(text));
    if program == OSASCRIPT {
        let lines = SCRIPT.iter().flat_map(|line| ["-e".to_owned(), (*line).to_owned()]);
        return lines.chain(["--".to_owned(), title, text]).collect();
    }
    vec!["--app-name=GSV".to_owned(), "--".to_owned(), title, markup(&text)]
}

/// One line without control characters.
fn plain(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

/// Desktops read the body of a notification as markup.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use std::fs;

    use super::*;

    fn desktop(files: &[&str], variables: &[(&str, &str)], is_mac: bool) -> (tempfile::TempDir, Desktop) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let path = folder.path().as_os_str().to_owned();
        let variable = |name: &str| match name {
            "PATH" => Some(path.clone()),
            name => variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| OsString::from(value)),
        };
        let found = Desktop::in_environment(&variable, is_mac);
        (folder, found)
    }

    #[test]
    fn nt8_a_machine_says_whether_it_can_show_notifications_and_why_not() {
        let bus = [("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x")];
        let (_folder, found) = desktop(&[NOTIFY_SEND], &bus, false);
        assert_eq!(found.reported().program.as_deref(), Some(NOTIFY_SEND));
        let (_folder, without) = desktop(&[NOTIFY_SEND], &[("XDG_RUNTIME_DIR", "/nowhere")], false);
        assert!(without.reported().missing.unwrap().contains("no session bus"));
        let (_folder, none) = desktop(&[], &bus, false);
        assert!(
            none.reported()
                .missing
                .unwrap()
                .contains("notify-send is not installed")
        );
        let (_folder, mac) = desktop(&[OSASCRIPT], &[], true);
        assert_eq!(mac.reported().program.as_deref(), Some(OSASCRIPT));
    }

    #[test]
    fn nt8_the_texts_are_arguments_and_no_part_of_an_option_a_script_or_markup() {
        assert_eq!(
            arguments(NOTIFY_SEND, "--urgency=critical", "-a <b>$(id)</b> & `id`\n\"x\""),
            [
                "--app-name=GSV",
                "--",
                "--urgency=critical",
                "-a &lt;b&gt;$(id)&lt;/b&gt; &amp; `id` \"x\""
            ]
        );
        let mac = arguments(OSASCRIPT, "t\" & (do shell script \"id\")", "x");
        assert_eq!(mac.iter().filter(|argument| *argument == "-e").count(), 3);
        assert_eq!(
            mac.last_chunk::<3>().unwrap(),
            &["--", "t\" & (do shell script \"id\")", "x"]
        );
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nt8_a_notification_that_could_not_be_shown_can_be_shown_later() {
        let (folder, desktop) = desktop(&[NOTIFY_SEND], &[("DBUS_SESSION_BUS_ADDRESS", "x")], false);
        let program = folder.path().join(NOTIFY_SEND);
        let event = NotifyShowEvent {
            show_id: "n1".to_owned(),
            title: "GSV".to_owned(),
            text: "The job is paused.".to_owned(),
        };
        let becomes = |target: &str| {
            fs::remove_file(&program).unwrap();
            let target = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(target));
            let target = target.iter().find(|file| file.exists()).unwrap_or(&target[0]);
            std::os::unix::fs::symlink(target, &program).unwrap();
        };
        becomes("nowhere");
        assert!(desktop.show(&event).await.unwrap_err().contains("can't be started"));
        becomes("false");
        assert!(desktop.show(&event).await.unwrap_err().contains("failed"));
        becomes("true");
        assert_eq!(desktop.show(&event).await, Ok(()));
        becomes("false");
        assert_eq!(
            desktop.show(&event).await,
            Ok(()),
            "it was shown, so it is not shown again"
        );
    }

    #[test]
    fn nt8_an_id_is_shown_once_and_only_so_many_in_a_minute() {
        let (_folder, desktop) = desktop(&[NOTIFY_SEND], &[("DBUS_SESSION_BUS_ADDRESS", "x")], false);
        let start = Instant::now();
        for id in 0..MOST_IN_WINDOW {
            assert_eq!(desktop.admit(&format!("n{id}"), start), Ok(true));
        }
        assert_eq!(desktop.admit("n3", start), Ok(false));
        assert!(
            desktop
                .admit("n99", start + WINDOW.saturating_sub(Duration::from_secs(1)))
                .is_err()
        );
        assert_eq!(desktop.admit("n99", start + WINDOW), Ok(true));
    }
}
