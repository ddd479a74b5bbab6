//! One scheduled backup: checks the folder, makes the backup, and removes older ones (rules BK15 to BK18). Runs in a process of its own,
//! which the supervisor starts (`embedded/backups.rs`). Never makes the folder, and never removes a file that the schedule has not made.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use jiff::Zoned;

use super::make;
use super::record::{Kept, Making, Record, killed};
use super::schedule::{self, Schedule};
use super::scratch::free;
use crate::embedded::layout::Layout;
use crate::embedded::lock::Lock;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::paths::{self, shell};
use crate::units::{bytes, now_ms};

const NEXT: &str =
    "Is its disk or network drive not mounted? Or choose another folder: `gsv backup schedule --to FOLDER`.";
const HOST_CHARS: usize = 32;
const SAME_NAMES: u32 = 100;

/// An attempt that has begun, and no other one of this gateway: what is known of those before it is in the record.
pub struct Begun {
    layout: Layout,
    schedule: Schedule,
    pub record: Record,
    making: Lock,
    _lock: Lock,
}

/// How an attempt ended, with what is known afterwards.
pub struct Attempt {
    pub record: Record,
    pub result: Outcome<Kept>,
    /// Files that no backup has, such as links.
    pub left_out: Vec<String>,
}

/// Chooses a folder: marks it. Fails when it is missing, not writable or in the state folder.
pub fn choose(layout: &Layout, schedule: &Schedule) -> Outcome {
    let dir = &schedule.folder;
    if !dir.is_dir() {
        return Err(Failure::usage(
            format!("The folder {} does not exist.", dir.display()),
            format!(
                "Make it: `mkdir -p {}`. Scheduled backups never make it, so that none is written where a disk is missing.",
                shell(dir)
            ),
        ));
    }
    if paths::real(dir).starts_with(paths::real(&layout.home)) {
        return Err(Failure::usage(
            format!(
                "{} is in the state folder, which would be lost together with its backups.",
                dir.display()
            ),
            "Choose a folder on another disk.",
        ));
    }
    let mark = schedule.mark();
    let made = File::create(&mark).and_then(|file| file.sync_all());
    made.or_fail(
        format_args!("write {}", mark.display()),
        "Check that the folder is yours and writable.",
    )
}

/// Begins the backup that is due, and records how the last one ended if its process was killed. `None`: none is scheduled. Fails when
/// another backup is under way, also one by hand: that is no failure of this one, so nothing is recorded.
pub fn begin(layout: &Layout) -> Outcome<Option<Begun>> {
    let Some(schedule) = Schedule::read(layout)? else {
        return Ok(None);
    };
    let other = || Failure::later(make::OTHER_UNDER_WAY, "It is tried again in a minute.");
    let lock = Lock::try_take(&schedule::lock(layout))?.ok_or_else(other)?;
    let making = make::try_lock(layout)?.ok_or_else(other)?;
    let mut record = Record::read(layout, &schedule);
    // In another folder its file can't be looked for.
    if record.making.is_some() && check_folder(&schedule).is_ok() {
        adopt(&schedule, &mut record);
        // On a full disk the attempt fails, and says so.
        let _ = record.write(layout);
    }
    Ok(Some(Begun {
        layout: layout.clone(),
        schedule,
        record,
        making,
        _lock: lock,
    }))
}

impl Begun {
    pub fn make(self) -> Attempt {
        let Self {
            layout,
            schedule,
            mut record,
            making,
            _lock,
        } = self;
        let mut left_out = Vec::new();
        let result = back_up(&layout, &schedule, &making, &mut record, &mut left_out);
        match &result {
            Ok(_) => remove_old(&schedule, &mut record),
            // The person stopped the gateway or changed the schedule: not a failure of the backup.
            Err(failure) if failure.exit == Exit::Interrupted => record.making = None,
            Err(failure) => record.failed(failure, now_ms()),
        }
        // On a full disk the caller still knows.
        let stored = record.write(&layout);
        let result = result.and_then(|kept| stored.map(|()| kept));
        Attempt {
            record,
            result,
            left_out,
        }
    }
}

fn back_up(
    layout: &Layout,
    schedule: &Schedule,
    making: &Lock,
    record: &mut Record,
    left_out: &mut Vec<String>,
) -> Outcome<Kept> {
    check_folder(schedule)?;
    sweep(schedule)?;
    check_space(schedule, record)?;
    let passphrase = schedule.open_passphrase()?;
    let began_at = now_ms();
    let name = free_name(&schedule.folder)?;
    record.making = Some(Making {
        name: name.clone(),
        began_at,
    });
    record.write(layout)?;
    let request = make::Request {
        file: &schedule.folder.join(&name),
        passphrase: &passphrase,
        with_secrets: schedule.with_secrets,
        force: false,
        unattended: Some(&schedule.prefix()),
    };
    let made = make::make_holding(layout, &request, making)?;
    *left_out = made.left_out;
    let kept = Kept {
        name,
        began_at,
        ended_at: now_ms(),
        bytes: made.bytes,
    };
    record.succeeded(kept.clone());
    Ok(kept)
}

fn check_folder(schedule: &Schedule) -> Outcome {
    let dir = schedule.folder.display();
    if !schedule.folder.is_dir() {
        return Err(Failure::failed(format!("The folder {dir} does not exist."), NEXT));
    }
    match fs::symlink_metadata(schedule.mark()) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::failed(
            format!("{dir} is not the folder that was chosen: the file that marks it is missing."),
            NEXT,
        )),
        Err(error) => Err(error).or_fail(format_args!("look into {dir}"), NEXT),
    }
}

/// A backup whose process was killed after it got its name is complete; before that, it has failed.
fn adopt(schedule: &Schedule, record: &mut Record) {
    let Some(making) = record.making.take() else { return };
    match fs::symlink_metadata(schedule.folder.join(&making.name)) {
        Ok(meta) if meta.is_file() => record.succeeded(Kept {
            name: making.name,
            began_at: making.began_at,
            ended_at: making.began_at,
            bytes: meta.len(),
        }),
        _ => record.failed(&killed(), now_ms()),
    }
}

/// Removes the unfinished files of killed backups. The caller holds the lock.
fn sweep(schedule: &Schedule) -> Outcome {
    let (dir, prefix) = (&schedule.folder, schedule.prefix());
    for entry in fs::read_dir(dir)
        .or_fail(format_args!("read {}", dir.display()), NEXT)?
        .flatten()
    {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// A full disk is left as it is: it may be the one of the gateway.
fn check_space(schedule: &Schedule, record: &Record) -> Outcome {
    let needed = record.last().map_or(0, |last| last.bytes);
    let free = free(&schedule.folder);
    if free >= needed {
        return Ok(());
    }
    Err(Failure::failed(
        format!(
            "The disk of {} is too full: the last backup has {}, and {} are free.",
            schedule.folder.display(),
            bytes(needed),
            bytes(free)
        ),
        "Free some space. Older backups are removed only after a new one is complete; to keep fewer: `gsv backup schedule --keep N`.",
    ))
}

/// A new name: the machine and the time, so that the names sort by age.
fn free_name(dir: &Path) -> Outcome<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let host: String = host
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(HOST_CHARS)
        .collect();
    let date = Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    for number in 1..SAME_NAMES {
        let end = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
        let name = format!("gsv-{host}-{date}{end}.backup");
        if fs::symlink_metadata(dir.join(&name)).is_err() {
            return Ok(name);
        }
    }
    Err(Failure::later(
        format!("There are {SAME_NAMES} backups of this second in {}.", dir.display()),
        "It is tried again in a minute.",
    ))
}

/// Removes backups that have expired, the oldest first, and no file that is not of the schedule.
fn remove_old(schedule: &Schedule, record: &mut Record) {
    record.not_removed = None;
    let old: Vec<Kept> = record.expired(schedule.keep).to_vec();
    for kept in old {
        if let Err(error) = remove(&schedule.folder.join(&kept.name)) {
            record.not_removed = Some(format!("{}: {error}.", kept.name));
            return;
        }
        record.kept.retain(|other| other.name != kept.name);
    }
}

/// Removes a backup, unless a person has moved it away or put something else there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(meta) if !meta.is_file() => Ok(()),
        _ => fs::remove_file(path),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A state folder, a folder for backups, and a schedule that has not sealed its passphrase.
    fn scheduled(root: &Path, keep: u32) -> (Layout, Schedule) {
        let layout = Layout {
            home: root.join("home"),
        };
        layout.ensure().unwrap();
        let folder = root.join("backups");
        fs::create_dir(&folder).unwrap();
        let schedule = Schedule {
            id: "k3".into(),
            folder,
            every_ms: schedule::SHORTEST_MS,
            keep,
            with_secrets: false,
            since: 1,
            passphrase: String::new(),
        };
        schedule.write(&layout).unwrap();
        (layout, schedule)
    }

    fn kept(name: &str, bytes: u64) -> Kept {
        Kept {
            name: name.into(),
            began_at: 1,
            ended_at: 2,
            bytes,
        }
    }

    fn run(layout: &Layout) -> Outcome<Option<Attempt>> {
        Ok(begin(layout)?.map(Begun::make))
    }

    fn record_exists(layout: &Layout) -> bool {
        schedule::folder(layout).join("record.json").exists()
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn bk16_a_folder_that_is_missing_or_another_one_gets_no_backup_and_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, schedule) = scheduled(dir.path(), 3);
        // The folder below the place where a disk was mounted.
        let attempt = run(&layout).unwrap().unwrap();
        let failure = attempt.result.unwrap_err();
        assert!(
            failure.message.contains("is not the folder that was chosen"),
            "{failure:?}"
        );
        assert!(failure.next.contains("not mounted"));
        assert!(names(&schedule.folder).is_empty());
        fs::remove_dir(&schedule.folder).unwrap();
        let failure = run(&layout).unwrap().unwrap().result.unwrap_err();
        assert!(failure.message.contains("does not exist"), "{failure:?}");
        assert!(!schedule.folder.exists());
        let failures = Record::read(&layout, &schedule).failures.unwrap();
        assert_eq!((failures.count, failures.message), (2, failure.message));
    }

    #[test]
    fn bk16_a_folder_is_chosen_only_where_it_exists_and_outside_the_state_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, schedule) = scheduled(dir.path(), 3);
        let at = |folder: PathBuf| Schedule {
            folder,
            ..schedule.clone()
        };
        assert!(
            choose(&layout, &at(dir.path().join("missing")))
                .unwrap_err()
                .next
                .contains("mkdir")
        );
        let inside = choose(&layout, &at(layout.workspace())).unwrap_err();
        assert!(inside.message.contains("in the state folder"), "{inside:?}");
        choose(&layout, &schedule).unwrap();
        assert_eq!(names(&schedule.folder), [".gsv-schedule-k3"]);
        check_folder(&schedule).unwrap();
    }

    #[test]
    fn bk16_a_disk_without_space_for_another_backup_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, schedule) = scheduled(dir.path(), 3);
        choose(&layout, &schedule).unwrap();
        let mut record = Record::read(&layout, &schedule);
        record.kept.push(kept("huge", 1 << 60));
        record.write(&layout).unwrap();
        let failure = run(&layout).unwrap().unwrap().result.unwrap_err();
        assert!(
            failure.message.contains("too full") && failure.next.contains("--keep"),
            "{failure:?}"
        );
        assert_eq!(names(&schedule.folder), [".gsv-schedule-k3"]);
    }

    #[test]
    fn bk15_a_passphrase_that_no_key_opens_is_a_failure_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, schedule) = scheduled(dir.path(), 3);
        choose(&layout, &schedule).unwrap();
        let failure = run(&layout).unwrap().unwrap().result.unwrap_err();
        assert!(failure.next.contains("--new-passphrase"), "{failure:?}");
    }

    #[test]
    fn bk17_only_the_oldest_backups_of_the_schedule_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, schedule) = scheduled(dir.path(), 2);
        let mut record = Record::read(&layout, &schedule);
        for name in ["a", "b", "c", "d"] {
            fs::write(schedule.folder.join(name), name).unwrap();
            record.kept.push(kept(name, 1));
        }
        for other in ["another.backup", "gsv-host-2020-01-01-000000.backup"] {
            fs::write(schedule.folder.join(other), "by hand").unwrap();
        }
        // Moved away by hand.
        fs::remove_file(schedule.folder.join("a")).unwrap();
        remove_old(&schedule, &mut record);
        assert_eq!(
            names(&schedule.folder),
            ["another.backup", "c", "d", "gsv-host-2020-01-01-000000.backup"]
        );
        assert_eq!(
            record.kept.iter().map(|kept| kept.name.as_str()).collect::<Vec<_>>(),
            ["c", "d"]
        );
        assert_eq!(record.not_removed, None);
    }

    #[test]
    fn bk17_a_killed_backup_counts_when_it_got_its_name_and_its_unfinished_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, schedule) = scheduled(dir.path(), 2);
        let mut record = Record::read(&layout, &schedule);
        let making = |name: &str| {
            Some(Making {
                name: name.into(),
                began_at: 7,
            })
        };
        record.making = making("unborn");
        adopt(&schedule, &mut record);
        assert!(record.kept.is_empty() && record.making.is_none());
        assert!(
            record
                .failures
                .take()
                .is_some_and(|failures| failures.message.contains("a kill"))
        );
        fs::write(schedule.folder.join("born"), "12345").unwrap();
        record.making = making("born");
        adopt(&schedule, &mut record);
        assert_eq!(
            record.last().map(|last| (last.name.as_str(), last.bytes)),
            Some(("born", 5))
        );
        for name in [".gsv-unfinished-k3-x", ".gsv-unfinished-other-x"] {
            fs::write(schedule.folder.join(name), "").unwrap();
        }
        sweep(&schedule).unwrap();
        assert_eq!(names(&schedule.folder), [".gsv-unfinished-other-x", "born"]);
    }

    #[test]
    fn bk14_two_scheduled_backups_are_not_made_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, _) = scheduled(dir.path(), 2);
        let _held = Lock::try_take(&schedule::lock(&layout)).unwrap().unwrap();
        assert_eq!(run(&layout).err().unwrap().exit, Exit::TryLater);
        assert!(!record_exists(&layout));
    }

    #[test]
    fn bk18_a_backup_by_hand_that_is_under_way_is_no_failure_of_the_scheduled_one() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, schedule) = scheduled(dir.path(), 2);
        choose(&layout, &schedule).unwrap();
        let held = make::try_lock(&layout).unwrap().unwrap();
        assert_eq!(run(&layout).err().unwrap().exit, Exit::TryLater);
        assert!(!record_exists(&layout));
        // It is made when the other one has ended: here it fails later, without a key.
        drop(held);
        assert!(run(&layout).unwrap().unwrap().result.is_err());
        assert!(record_exists(&layout));
    }

    #[test]
    fn bk18_a_kill_is_recorded_before_the_next_attempt_so_that_the_owner_is_told_even_if_that_one_is_killed_too() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, schedule) = scheduled(dir.path(), 2);
        choose(&layout, &schedule).unwrap();
        let mut record = Record::read(&layout, &schedule);
        record.making = Some(Making {
            name: "unborn".into(),
            began_at: 7,
        });
        record.write(&layout).unwrap();
        let begun = begin(&layout).unwrap().unwrap();
        assert!(begun.record.unreported.is_some_and(|unreported| !unreported.over));
        // This attempt is killed, too.
        drop(begun);
        let stored = Record::read(&layout, &schedule);
        assert!(stored.making.is_none() && stored.unreported.is_some());
        assert!(
            stored
                .failures
                .is_some_and(|failures| failures.message.contains("a kill"))
        );
    }
}
