//! Restores a backup: builds the state beside its folder, checks all of it, and switches (rules BK8 to BK12).

use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::archive::{Archive, damaged};
use super::manifest::{Entry, Manifest};
use super::place::{self, Place};
use super::scratch::free;
use super::secrets::{self, Installed};
use super::{content, databases, go_on};
use crate::embedded::layout::Layout;
use crate::embedded::listen::Listen;
use crate::embedded::lock::{self, Lock};
use crate::embedded::state::{Found, PATIENCE, State};
use crate::embedded::{home_lock, record, sealing_key, start_stopped};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths::shell;
use crate::units::bytes;

const NEXT: &str = "Check that you may write there, and that the disk is not full.";
/// They are in the backup, or are made again.
const OF_THE_BACKUP: [&str; 2] = ["gateway", "workspace"];
const MAX_DEPTH: usize = 32;

pub struct Request<'a> {
    pub file: &'a Path,
    pub passphrase: &'a str,
    pub target: &'a Path,
    pub replace: bool,
    /// Another folder than that of this machine's gateway: the restored gateway must not act beside it.
    pub is_copy: bool,
}

#[derive(Debug)]
pub struct Restored {
    pub manifest: Manifest,
    pub target: PathBuf,
    /// Where the state is that was there before.
    pub before: Option<PathBuf>,
    pub installed: Installed,
    /// This machine has a key of the stored secrets.
    pub opens_secrets: bool,
    /// Old states of restores that were killed.
    pub healed: Vec<PathBuf>,
    pub starts_stopped: bool,
    /// Where this machine's gateway listens for other machines, which stays.
    pub listen: Option<Listen>,
}

pub fn restore(request: &Request) -> Outcome<Restored> {
    restore_and(request, || {})
}

/// `built`: called when the new state is built and not yet in place.
fn restore_and(request: &Request, built: impl FnOnce()) -> Outcome<Restored> {
    // A link to the folder stays.
    let target = fs::canonicalize(request.target).unwrap_or_else(|_| request.target.to_owned());
    let old = Layout { home: target.clone() };
    refuse_running(&old)?;
    let healed = place::heal(&target)?;
    let has_files = has_files(&target)?;
    if has_files && !request.replace {
        return Err(place::occupied(&target));
    }
    // Neither a node nor `gsv up` starts on the old state meanwhile.
    let nodes = has_files.then(|| home_lock::hold(&target)).transpose()?;
    let mut command_lock = take_command_lock(&old)?;
    refuse_running(&old)?;
    let archive = Archive::open(request.file, request.passphrase)?;
    if archive.manifest.moved.is_some() {
        return Err(Failure::usage(
            format!(
                "{} is an export of a home, and not a backup of a state folder.",
                request.file.display()
            ),
            format!(
                "Import it into a fresh gateway: `gsv deploy import {}`",
                shell(request.file)
            ),
        ));
    }
    let place = Place::make(&target)?;
    let new = place.new_state();
    check_space(&new, archive.manifest.bytes())?;
    let manifest = archive.each(
        |entry| create(&new, entry),
        |entry, file| check(request.file, &new, entry, file),
    )?;
    if has_files {
        carry_over(&target, &new)?;
    }
    go_on()?;
    let installed = secrets::install(&new)?;
    let layout = Layout { home: new };
    layout.ensure()?;
    let listen = if has_files {
        carry_listening(&old, &layout)?
    } else {
        None
    };
    // Before the state gets its name. A copy that was let go stays so when another state takes its place.
    let starts_stopped = if has_files {
        start_stopped::is_set(&old)
    } else {
        request.is_copy
    };
    if starts_stopped {
        start_stopped::set(&layout)?;
    }
    let opens_secrets = sealing_key::opens(&layout)?;
    built();
    // A gateway's folder may have been made meanwhile, and a node of an earlier version does not take the lock of the nodes.
    if command_lock.is_none() {
        command_lock = take_command_lock(&old)?;
    }
    refuse_running(&old)?;
    let supervisor = hold_supervisor(&old)?;
    let before = place.switch(has_files)?;
    drop((supervisor, command_lock, nodes));
    Ok(Restored {
        manifest,
        target,
        before,
        installed,
        opens_secrets,
        healed,
        starts_stopped,
        listen,
    })
}

fn take_command_lock(layout: &Layout) -> Outcome<Option<Lock>> {
    layout
        .exists()
        .then(|| Lock::take(&layout.command_lock(), PATIENCE))
        .transpose()
}

/// A supervisor that is started by hand does not wait for the command lock.
fn hold_supervisor(layout: &Layout) -> Outcome<Option<Lock>> {
    if !layout.exists() {
        return Ok(None);
    }
    let lock = Lock::try_take(&layout.supervisor_lock())?;
    lock.map(Some).ok_or_else(|| gateway_runs(layout))
}

fn gateway_runs(layout: &Layout) -> Failure {
    Failure::failed(
        format!(
            "A gateway runs with the state in {}, so nothing was restored.",
            layout.home.display()
        ),
        format!(
            "Stop it with `GSV_HOME={} gsv down`, then run the command again.",
            shell(&layout.home)
        ),
    )
}

fn refuse_running(layout: &Layout) -> Outcome {
    let is_held = lock::is_held(&layout.supervisor_lock());
    let workerd = match State::read(&layout.state()) {
        Found::State(state) => state.workerd(),
        Found::Absent | Found::Damaged => None,
    };
    if is_held || workerd.is_some_and(|process| process.is_alive()) || record::running(layout).is_some() {
        return Err(gateway_runs(layout));
    }
    for node in fs::read_dir(layout.home.join("node")).into_iter().flatten().flatten() {
        if holds_lock(&node.path(), 3) {
            return Err(Failure::failed(
                format!(
                    "The node `{}` runs with its files in {}, so nothing was restored.",
                    node.file_name().display(),
                    layout.home.display()
                ),
                "Stop the node with `gsv node stop`, or with Ctrl-C in its terminal. Then run the command again.",
            ));
        }
    }
    Ok(())
}

/// Whether a process holds a file `lock` in or below a folder.
fn holds_lock(dir: &Path, depth: usize) -> bool {
    lock::is_held(&dir.join("lock"))
        || (depth > 0
            && fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && holds_lock(&entry.path(), depth - 1)))
}

fn has_files(target: &Path) -> Outcome<bool> {
    match fs::read_dir(target) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).or_fail(
            format_args!("read {}", target.display()),
            "Choose a folder with --into DIR.",
        ),
    }
}

fn check_space(dir: &Path, needed: u64) -> Outcome {
    let free = free(dir);
    if needed > free {
        return Err(Failure::failed(
            format!(
                "The disk is too full: the restored state has {}, and {} are free.",
                bytes(needed),
                bytes(free)
            ),
            "Free some space, or restore elsewhere: `gsv restore FILE --into DIR`.",
        ));
    }
    Ok(())
}

/// Never follows a link and never opens a file that is there: the folder is new, and each of its parts is made here.
fn create(new: &Path, entry: &Entry) -> Outcome<File> {
    let path = new.join(&entry.path);
    let made = path
        .parent()
        .map_or(Ok(()), |dir| DirBuilder::new().recursive(true).mode(0o700).create(dir));
    let bits = if entry.executable { 0o700 } else { 0o600 };
    let file = made.and_then(|()| OpenOptions::new().write(true).create_new(true).mode(bits).open(&path));
    file.or_fail(format_args!("make {}", path.display()), NEXT)
}

fn check(archive: &Path, new: &Path, entry: &Entry, mut file: File) -> Outcome {
    let path = new.join(&entry.path);
    if content::is_database(&entry.path) {
        databases::check(&path)
            .map_err(|why| damaged(archive, &format!("the database {} is not sound: {why}", entry.path)))?;
    }
    let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(entry.modified_ns));
    let stamp = FileTimes::new().set_modified(modified.unwrap_or(SystemTime::UNIX_EPOCH));
    let kept = file.flush().and_then(|()| file.set_times(stamp));
    kept.or_fail(format_args!("write {}", path.display()), NEXT)
}

/// Keeps the files that belong to this machine and not to the gateway: above all the nodes' ledgers, which know the calls that a
/// restored gateway sends again.
fn carry_over(old: &Path, new: &Path) -> Outcome {
    for entry in fs::read_dir(old).or_fail(format_args!("read {}", old.display()), NEXT)? {
        let entry = entry.or_fail(format_args!("read {}", old.display()), NEXT)?;
        if !OF_THE_BACKUP.iter().any(|name| entry.file_name() == **name) {
            let (from, to) = (entry.path(), new.join(entry.file_name()));
            copy_tree(&from, &to, MAX_DEPTH).or_fail(format_args!("copy {}", from.display()), NEXT)?;
        }
    }
    Ok(())
}

/// The address for other machines belongs to this machine, and so does the certificate that they know (rule BK22). Where it listens for
/// none, a certificate of the backup stays.
fn carry_listening(old: &Layout, new: &Layout) -> Outcome<Option<Listen>> {
    let copy = |from: PathBuf, to: PathBuf| match fs::copy(&from, &to) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).or_fail(format_args!("copy {}", from.display()), NEXT)
        }
        _ => Ok(()),
    };
    copy(old.listen(), new.listen())?;
    if new.listen().exists() || !new.certificate().exists() {
        copy(old.certificate(), new.certificate())?;
    }
    // The next start says what is wrong with one that can't be read.
    Ok(Listen::read(new).unwrap_or(None))
}

/// Links and special files stay behind, in the old state.
fn copy_tree(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_file() {
        fs::copy(from, to)?;
    } else if kind.is_dir() {
        if depth == 0 {
            return Err(io::Error::other("its folders are nested too deeply"));
        }
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), depth - 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::make;
    use crate::backup::record::{Kept, Record};
    use crate::backup::schedule::{self, Schedule};
    use std::os::unix::fs::PermissionsExt;

    const PASSPHRASE: &str = "five words of a passphrase";

    /// A state folder, and a backup of it.
    fn backed_up(dir: &Path) -> (PathBuf, PathBuf) {
        let (home, file) = (dir.join("home"), dir.join("backup"));
        let layout = Layout { home: home.clone() };
        layout.ensure().unwrap();
        fs::write(layout.workspace().join("a"), "of the backup").unwrap();
        let request = make::Request {
            file: &file,
            passphrase: PASSPHRASE,
            with_secrets: false,
            force: false,
            unattended: None,
        };
        make::make(&layout, &request).unwrap();
        fs::write(layout.workspace().join("a"), "old").unwrap();
        (home, file)
    }

    fn replace(home: &Path, file: &Path, built: impl FnOnce()) -> Outcome<Restored> {
        let request = Request {
            file,
            passphrase: PASSPHRASE,
            target: home,
            replace: true,
            is_copy: false,
        };
        restore_and(&request, built)
    }

    fn text(home: &Path) -> String {
        fs::read_to_string(home.join("workspace/a")).unwrap()
    }

    #[test]
    fn bk12_what_starts_while_the_new_state_is_built_keeps_the_old_state() {
        let dir = tempfile::tempdir().unwrap();
        let (home, file) = backed_up(dir.path());
        let ledger = home.join("node/laptop/ledger");
        fs::create_dir_all(&ledger).unwrap();
        for (lock, what) in [
            (ledger.join("lock"), "The node `laptop` runs"),
            (home.join("gateway/supervisor.lock"), "A gateway runs"),
        ] {
            let mut held = None;
            let failure = replace(&home, &file, || held = Lock::try_take(&lock).unwrap()).unwrap_err();
            assert!(held.is_some() && failure.message.contains(what), "{failure:?}");
            assert_eq!(text(&home), "old");
        }
        replace(&home, &file, || {}).unwrap();
        assert_eq!(text(&home), "of the backup");
    }

    #[test]
    fn bk12_a_node_is_refused_until_the_restore_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (home, file) = backed_up(dir.path());
        let mut refused = false;
        replace(&home, &file, || refused = home_lock::share(&home).is_err()).unwrap();
        assert!(refused);
        home_lock::share(&home).unwrap();
    }

    #[test]
    fn bk22_a_restore_keeps_the_address_for_other_machines_and_the_certificate_that_they_know() {
        let dir = tempfile::tempdir().unwrap();
        let (home, file) = backed_up(dir.path());
        let layout = Layout { home: home.clone() };
        let address = "0.0.0.0:8788";
        fs::write(layout.listen(), format!("{{\"address\":\"{address}\"}}")).unwrap();
        fs::write(layout.certificate(), "of this machine").unwrap();
        for path in [layout.listen(), layout.certificate()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let restored = replace(&home, &file, || {}).unwrap();
        let listen = restored.listen.unwrap();
        assert_eq!(listen.address.to_string(), address);
        assert_eq!(Listen::read(&layout).unwrap(), Some(listen));
        assert_eq!(fs::read_to_string(layout.certificate()).unwrap(), "of this machine");
        let mode = fs::metadata(layout.certificate()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn bk23_a_copy_is_marked_before_it_gets_its_name_and_a_state_that_replaces_another_is_as_that_was() {
        let dir = tempfile::tempdir().unwrap();
        let (home, file) = backed_up(dir.path());
        let copy = Layout {
            home: dir.path().join("copy"),
        };
        let into = |replace, built: &dyn Fn()| {
            let request = Request {
                file: &file,
                passphrase: PASSPHRASE,
                target: &copy.home,
                replace,
                is_copy: true,
            };
            restore_and(&request, built).unwrap().starts_stopped
        };
        let marked = || {
            let aside = fs::read_dir(dir.path()).unwrap().flatten().find_map(|entry| {
                let new = entry.path().join("new");
                new.is_dir().then_some(Layout { home: new })
            });
            assert!(start_stopped::is_set(&aside.unwrap()));
        };
        assert!(into(false, &marked));
        let first = start_stopped::id(&copy).unwrap().unwrap();
        assert!(into(true, &|| {}));
        assert_ne!(start_stopped::id(&copy).unwrap().unwrap(), first);
        // A file without content counts.
        fs::write(copy.start_stopped(), "").unwrap();
        assert!(start_stopped::id(&copy).unwrap().is_some());
        start_stopped::remove(&copy).unwrap();
        assert!(!into(true, &|| {}));
        assert_eq!(start_stopped::id(&copy).unwrap(), None);
        assert!(!replace(&home, &file, || {}).unwrap().starts_stopped);
    }

    #[test]
    fn bk20_a_restore_keeps_the_schedule_of_this_machine_and_what_it_has_made() {
        let dir = tempfile::tempdir().unwrap();
        let (home, file) = backed_up(dir.path());
        let layout = Layout { home: home.clone() };
        let schedule = Schedule {
            id: "k3".into(),
            folder: dir.path().join("disk"),
            every_ms: schedule::SHORTEST_MS,
            keep: 3,
            with_secrets: true,
            since: 7,
            passphrase: "sealed".into(),
        };
        schedule.write(&layout).unwrap();
        let mut record = Record::read(&layout, &schedule);
        record.succeeded(Kept {
            name: "b".into(),
            began_at: 1,
            ended_at: 2,
            bytes: 3,
        });
        record.write(&layout).unwrap();
        replace(&home, &file, || {}).unwrap();
        assert_eq!(text(&home), "of the backup");
        assert_eq!(Schedule::read(&layout).unwrap().as_ref(), Some(&schedule));
        assert_eq!(Record::read(&layout, &schedule), record);
        // Nor does a backup bring it elsewhere.
        let again = dir.path().join("again");
        let request = make::Request {
            file: &again,
            passphrase: PASSPHRASE,
            with_secrets: false,
            force: false,
            unattended: None,
        };
        make::make(&layout, &request).unwrap();
        let other = Layout {
            home: dir.path().join("other"),
        };
        let request = Request {
            file: &again,
            passphrase: PASSPHRASE,
            target: &other.home,
            replace: false,
            is_copy: true,
        };
        restore(&request).unwrap();
        assert_eq!(
            (text(&other.home).as_str(), Schedule::read(&other).unwrap()),
            ("of the backup", None)
        );
    }
}
