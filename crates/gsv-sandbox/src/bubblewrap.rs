//! The arguments of bubblewrap for a plan. PURE: the paths that exist are an argument.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::grants::KEPT_IN_RUN;
use crate::look::{Kind, Look};
use crate::mounts::{Mounts, Opened};
use crate::plan::Plan;

/// Paths that were found on the disk for one command.
pub(crate) struct Survey {
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) protected: Mounts,
    /// Sockets of other programs.
    pub(crate) sockets: Vec<PathBuf>,
    pub(crate) workdir: PathBuf,
}

/// Folders that are empty in the sandbox.
pub(crate) const EMPTY: [&str; 2] = ["/run", "/var/tmp"];

/// Where commands expect a folder for temporary files.
const TEMP: &str = "/tmp";

/// Kernel settings that hold for all programs. User id 0 may change them even without capabilities.
const KERNEL_SETTINGS: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// The arguments before the command. `seccomp`: the file descriptor of the filter. Later mounts cover earlier ones, so the order
/// is: the system, shared folders, writable paths, protected paths, hidden paths.
pub(crate) fn arguments(plan: &Plan, survey: &Survey, seccomp: i32, look: &dyn Look) -> Mounted {
    let is_visible = |path: &Path| {
        let readable = plan.readable.as_deref();
        readable.is_none_or(|folders| folders.iter().any(|folder| path.starts_with(folder)))
    };
    let mut list = Arguments::default();
    list.words(&[
        "--unshare-all",
        "--new-session",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
    ]);
    match &plan.readable {
        None => list.bind("--ro-bind", Path::new("/")),
        Some(readable) => list.system(readable, look),
    }
    list.words(&["--dev", "/dev", "--proc", "/proc"]);
    for settings in KERNEL_SETTINGS {
        list.bind("--ro-bind-try", Path::new(settings));
    }
    let is_root = |folder: &str| plan.writable.iter().any(|root| root == Path::new(folder));
    for folder in EMPTY {
        let is_there = plan.readable.is_some() || look.kind(Path::new(folder)) == Some(Kind::Dir);
        if is_there && !is_root(folder) {
            list.words(&["--tmpfs", folder]);
        }
    }
    for kept in KEPT_IN_RUN {
        if look.real(Path::new(kept)).is_some() {
            list.bind("--ro-bind", Path::new(kept));
        }
    }
    if plan.read_only {
        if !is_root(TEMP) {
            // What a program keeps there for itself ends with the command.
            list.words(&["--tmpfs", TEMP, "--setenv", "TMPDIR", TEMP]);
        }
        for folder in &plan.writable {
            list.read_only(folder);
        }
    } else {
        if !is_root(TEMP) {
            list.writable(plan.temp(), TEMP.into());
        }
        for folder in &plan.writable {
            list.writable(folder.clone(), folder.clone());
        }
    }
    if let Some(program) = &plan.program {
        list.bind("--ro-bind", program);
        list.covers.push(program.clone());
    }
    for folder in &survey.protected.pinned {
        list.opened("--bind-fd", folder);
    }
    for opened in &survey.protected.read_only {
        list.opened("--ro-bind-fd", opened);
    }
    for folder in &survey.protected.missing {
        list.empty(folder);
    }
    for path in &survey.hidden {
        if look.kind(path) == Some(Kind::Dir) {
            list.empty(path);
        } else if is_visible(path) {
            list.cover(path, plan);
        }
    }
    for path in survey.sockets.iter().filter(|path| is_visible(path)) {
        list.cover(path, plan);
    }
    if plan.readable.is_some() {
        // The folders above the mounts lie in a file system of the sandbox, which is not writable either.
        list.path("--remount-ro", Path::new("/"));
    }
    list.path("--chdir", &survey.workdir);
    list.words(&["--seccomp", &seccomp.to_string(), "--"]);
    Mounted {
        arguments: list.words,
        writable: list.writable,
        read_only: list.read_only,
        covers: list.covers,
    }
}

/// A file without content that covers hidden files.
pub(crate) fn cover(plan: &Plan) -> PathBuf {
    plan.own.join("empty")
}

/// The arguments of bubblewrap, and what must be mounted then, besides what [`Mounts`] has.
pub(crate) struct Mounted {
    pub(crate) arguments: Vec<OsString>,
    /// Each folder with the path at which it is writable.
    pub(crate) writable: Vec<(PathBuf, PathBuf)>,
    /// Folders that are mounted where they are, read-only.
    pub(crate) read_only: Vec<PathBuf>,
    /// Paths that must be read-only mounts.
    pub(crate) covers: Vec<PathBuf>,
}

#[derive(Default)]
struct Arguments {
    words: Vec<OsString>,
    writable: Vec<(PathBuf, PathBuf)>,
    read_only: Vec<PathBuf>,
    covers: Vec<PathBuf>,
}

impl Arguments {
    fn words(&mut self, words: &[&str]) {
        self.words.extend(words.iter().map(OsString::from));
    }

    fn path(&mut self, option: &str, path: &Path) {
        self.words.extend([option.into(), path.into()]);
    }

    fn bind(&mut self, option: &str, path: &Path) {
        self.words.extend([option.into(), path.into(), path.into()]);
    }

    fn writable(&mut self, folder: PathBuf, path: PathBuf) {
        self.words
            .extend(["--bind".into(), folder.clone().into(), path.clone().into()]);
        self.writable.push((folder, path));
    }

    fn read_only(&mut self, folder: &Path) {
        self.bind("--ro-bind", folder);
        self.read_only.push(folder.to_owned());
    }

    /// Mounts an open file descriptor. bubblewrap compares the mount with the descriptor, and ends when they differ. It resolves the
    /// path a second time for that, so `check` compares the mounts once more inside the sandbox.
    fn opened(&mut self, option: &str, opened: &Opened) {
        self.words.extend([
            option.into(),
            opened.number.to_string().into(),
            opened.path.clone().into(),
        ]);
    }

    fn empty(&mut self, folder: &Path) {
        self.path("--tmpfs", folder);
        self.path("--remount-ro", folder);
        self.covers.push(folder.to_owned());
    }

    fn cover(&mut self, path: &Path, plan: &Plan) {
        self.words.extend(["--ro-bind".into(), cover(plan).into(), path.into()]);
        self.covers.push(path.to_owned());
    }

    /// Single folders of the system, and the links through which they are usually named (`/bin` -> `usr/bin`).
    fn system(&mut self, readable: &[PathBuf], look: &dyn Look) {
        for path in readable {
            self.bind("--ro-bind", path);
        }
        for link in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
            if let (Some(Kind::Link), Some(real)) = (look.kind(Path::new(link)), look.real(Path::new(link))) {
                self.words.extend(["--symlink".into(), real.into(), link.into()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expected::Identity;
    use crate::look::fake::Fake;
    use crate::profile::Profile;

    fn plan() -> Plan {
        Plan {
            profile: Profile::Workspace,
            workspace: "/tmp/ws".into(),
            roots: vec![],
            writable: vec!["/tmp/ws".into(), "/own/tmp".into()],
            readable: None,
            hidden: vec![],
            own: "/own".into(),
            homes: vec![],
            program: None,
            read_only: false,
        }
    }

    fn opened(path: &str, number: i32) -> Opened {
        let identity = Identity { device: 1, inode: 2 };
        Opened {
            path: path.into(),
            number,
            identity,
        }
    }

    fn survey() -> Survey {
        Survey {
            hidden: vec!["/home/u/.ssh".into(), "/home/u/.netrc".into()],
            protected: Mounts {
                pinned: vec![opened("/tmp/ws/.git", 8)],
                read_only: vec![opened("/tmp/ws/.git/hooks", 9)],
                ..Mounts::default()
            },
            sockets: vec!["/var/lib/x.sock".into()],
            workdir: "/tmp/ws/src".into(),
        }
    }

    fn text(plan: &Plan) -> String {
        let disk = Fake::of(&["/home/u/.ssh/", "/home/u/.netrc", "/run/", "/usr/bin/"]).link("/bin", "/usr/bin");
        let words = arguments(plan, &survey(), 7, &disk).arguments;
        words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn sb4_the_arguments_isolate_everything_and_mount_in_order() {
        let text = text(&plan());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
        assert!(
            text.starts_with("--unshare-all --new-session --die-with-parent --cap-drop ALL --ro-bind / / --dev /dev")
        );
        assert!(at("--tmpfs /run") < at("--bind /own/tmp /tmp"));
        assert!(at("--bind /own/tmp /tmp") < at("--bind /tmp/ws /tmp/ws"));
        assert!(at("--bind /tmp/ws /tmp/ws") < at("--bind-fd 8 /tmp/ws/.git"));
        assert!(at("--bind-fd 8 /tmp/ws/.git") < at("--ro-bind-fd 9 /tmp/ws/.git/hooks"));
        assert!(at("--ro-bind-fd 9 /tmp/ws/.git/hooks") < at("--tmpfs /home/u/.ssh --remount-ro /home/u/.ssh"));
        assert!(at("--ro-bind /own/empty /home/u/.netrc") < at("--ro-bind /own/empty /var/lib/x.sock"));
        assert!(text.ends_with("--chdir /tmp/ws/src --seccomp 7 --"));
        assert!(!text.contains("/var/tmp"), "there is none");
    }

    #[test]
    fn sb1_the_program_of_the_test_is_mounted_alone_over_folders_for_temporary_files() {
        let mut plan = plan();
        plan.program = Some("/tmp/deep/gsv".into());
        let text = text(&plan);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
        assert!(at("--bind /own/tmp /tmp") < at("--ro-bind /tmp/deep/gsv /tmp/deep/gsv"));
        assert!(
            at("--ro-bind /tmp/deep/gsv") < at("--tmpfs /home/u/.ssh"),
            "hidden paths stay hidden"
        );
    }

    #[test]
    fn sb21_a_command_that_changes_nothing_has_no_writable_folder() {
        let mut plan = plan();
        plan.read_only = true;
        let survey = Survey {
            protected: Mounts::default(),
            ..survey()
        };
        let disk = Fake::of(&["/home/u/.ssh/"]);
        let mounted = arguments(&plan, &survey, 7, &disk);
        let words: Vec<_> = mounted.arguments.iter().map(|word| word.to_string_lossy()).collect();
        let text = words.join(" ");
        assert!(
            text.contains(
                "--tmpfs /tmp --setenv TMPDIR /tmp --ro-bind /tmp/ws /tmp/ws --ro-bind /own/tmp /own/tmp --tmpfs /home/u/.ssh"
            ),
            "{text}"
        );
        assert!(!text.contains("--bind ") && !text.contains("--bind-fd"), "{text}");
        assert_eq!(mounted.writable, vec![]);
        assert_eq!(mounted.read_only, plan.writable);
    }

    #[test]
    fn sb4_strict_mounts_single_folders_and_their_links() {
        let mut plan = plan();
        plan.readable = Some(vec!["/usr".into(), "/etc".into()]);
        let text = text(&plan);
        assert!(!text.contains("--ro-bind / /"));
        assert!(
            text.contains("--ro-bind /usr /usr --ro-bind /etc /etc --symlink /usr/bin /bin"),
            "{text}"
        );
        assert!(text.contains("--remount-ro / --chdir"), "{text}");
        assert!(!text.contains(".netrc"), "what is not there is not covered: {text}");
    }
}
