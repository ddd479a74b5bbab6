//! What is known of the backups that the schedule has made, and when the next one is due (rules BK14 to BK20). The decisions are pure: the
//! current time is an argument.

use serde::{Deserialize, Serialize};

use super::schedule::{HOUR_MS, Schedule, lock, record_file, write};
use crate::embedded::layout::Layout;
use crate::embedded::lock;
use crate::exit::{Failure, Outcome};
use crate::paths::shell;
use crate::private_file;
use crate::units::duration;

const MAX_RECORDED: usize = 400;
/// After a backup whose process was killed, perhaps together with the machine.
const AFTER_KILL_MS: u64 = 15 * 60_000;
/// After the first failures; then after the last of these.
const RETRY_MS: [u64; 5] = [60_000, 5 * 60_000, 15 * 60_000, HOUR_MS, 6 * HOUR_MS];

/// A backup that the schedule has made and not removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    pub name: String,
    pub began_at: u64,
    pub ended_at: u64,
    pub bytes: u64,
}

/// The attempts since the last success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failures {
    pub since: u64,
    /// The last attempt. 0: the next one is due at once.
    pub at: u64,
    pub count: u32,
    pub message: String,
    pub next: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The id of the schedule that the record belongs to.
    pub id: String,
    /// The oldest first.
    #[serde(default)]
    pub kept: Vec<Kept>,
    /// The backup under way, or one that was killed: it has its name if it was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub making: Option<Making>,
    #[serde(rename = "trouble", default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Failures>,
    /// A report that the gateway did not get yet, or did not answer. It survives the process that made it.
    #[serde(rename = "untold", default, skip_serializing_if = "Option::is_none")]
    pub unreported: Option<Unreported>,
    /// Why an older backup could not be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_removed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Making {
    pub name: String,
    pub began_at: u64,
}

/// For the owner's notification, which `since` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unreported {
    pub since: u64,
    /// A backup was made: the notification ends.
    pub over: bool,
}

impl Record {
    /// A record of another schedule, or a damaged one, counts as none: its backups are not removed any more.
    pub fn read(layout: &Layout, schedule: &Schedule) -> Self {
        private_file::read_json(&record_file(layout), "")
            .ok()
            .flatten()
            .filter(|record: &Self| record.id == schedule.id)
            .unwrap_or_else(|| Self {
                id: schedule.id.clone(),
                ..Self::default()
            })
    }

    pub fn write(&self, layout: &Layout) -> Outcome {
        write(&record_file(layout), self)
    }

    pub fn last(&self) -> Option<&Kept> {
        self.kept.last()
    }

    pub fn failed(&mut self, failure: &Failure, now: u64) {
        // A notification whose end was not told goes on, so that it does not stay open beside a new one.
        let open = self.unreported.map_or(now, |unreported| unreported.since);
        let (since, count) = self
            .failures
            .as_ref()
            .map_or((open, 0), |before| (before.since, before.count));
        self.making = None;
        self.unreported = Some(Unreported { since, over: false });
        self.failures = Some(Failures {
            since,
            at: now,
            count: count.saturating_add(1),
            message: failure.message.clone(),
            next: failure.next.clone(),
        });
    }

    /// Whether the process of the last backup was killed: it ends its entry before it gives up the lock. A backup that begins or ends
    /// meanwhile does not count, as then the entry is another one.
    pub fn was_killed(&self, layout: &Layout, schedule: &Schedule) -> bool {
        self.making.is_some() && !lock::is_held(&lock(layout)) && Self::read(layout, schedule).making == self.making
    }

    /// The person has done something about it.
    pub fn retry_now(&mut self) -> bool {
        self.failures
            .as_mut()
            .is_some_and(|failures| std::mem::take(&mut failures.at) > 0)
    }

    pub fn succeeded(&mut self, kept: Kept) {
        self.making = None;
        if let Some(failures) = self.failures.take() {
            self.unreported = Some(Unreported {
                since: failures.since,
                over: true,
            });
        }
        self.kept.push(kept);
        // Where none can be removed, the oldest are no longer this schedule's.
        let over = self.kept.len().saturating_sub(MAX_RECORDED);
        self.kept.drain(..over);
    }

    /// Backups beyond the newest `keep`, the oldest first.
    pub fn expired(&self, keep: u32) -> &[Kept] {
        let keep = usize::try_from(keep).unwrap_or(usize::MAX).max(1);
        &self.kept[..self.kept.len().saturating_sub(keep)]
    }
}

/// How long after a failure the next attempt is made; `count` of them have failed in a row.
pub fn retry_ms(count: u32, every_ms: u64) -> u64 {
    let at = usize::try_from(count.saturating_sub(1))
        .unwrap_or(usize::MAX)
        .min(RETRY_MS.len() - 1);
    RETRY_MS[at].min(every_ms)
}

/// When the next backup begins, by the machine's clock. A time in the past: now.
pub fn due_at(schedule: &Schedule, record: &Record, now: u64) -> u64 {
    let every = schedule.every_ms;
    let least = record
        .making
        .as_ref()
        .map_or(0, |killed| killed.began_at.saturating_add(AFTER_KILL_MS));
    // A clock that was set back must not hold a backup for longer than the interval.
    let bounded = |due: u64| if due > now.saturating_add(every) { now } else { due };
    if let Some(failures) = &record.failures {
        return bounded(failures.at.saturating_add(retry_ms(failures.count, every)).max(least));
    }
    match record.last() {
        None => bounded(now.max(least)),
        Some(made) => {
            let due = made.began_at.saturating_add(every);
            bounded(due.max(made.ended_at.saturating_add(every / 2)).max(least))
        }
    }
}

/// The failure of a backup whose process was killed.
pub fn killed() -> Failure {
    Failure::failed(
        "The last backup ended before it was complete, by a kill or a power loss.",
        "Check the free memory of this machine, and read the log of the gateway: `gsv service logs`.",
    )
}

/// What is wrong, and what to do: for `gsv status` and `gsv doctor`. `was_killed`: see `Record::was_killed`.
pub fn problems(schedule: &Schedule, record: &Record, now: u64, was_killed: bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let last = record.last().map_or(schedule.since, |last| last.began_at);
    if was_killed {
        let killed = killed();
        found.push((format!("The scheduled backup failed: {}", killed.message), killed.next));
    } else if let Some(failures) = &record.failures {
        found.push((
            format!("The scheduled backup failed: {}", failures.message),
            failures.next.clone(),
        ));
    } else if now.saturating_sub(last) > schedule.every_ms.saturating_mul(2) {
        found.push((
            format!(
                "No scheduled backup was made for {}, although one is due every {}.",
                duration(now.saturating_sub(last)),
                schedule.interval()
            ),
            "Check that the gateway runs: `gsv status`. Then read its log: `gsv service logs`.".to_owned(),
        ));
    }
    if let Some(why) = &record.not_removed {
        found.push((
            format!("The scheduled backup succeeded, but an older backup could not be removed: {why}"),
            format!("Check the permissions of {}.", shell(&schedule.folder)),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::schedule::DAY_MS;
    use crate::backup::schedule::tests::{NOW, schedule};

    fn kept(began_at: u64, took: u64) -> Kept {
        Kept {
            name: format!("b{began_at}"),
            began_at,
            ended_at: began_at + took,
            bytes: 1,
        }
    }

    fn made(began_at: u64, took: u64) -> Record {
        Record {
            kept: vec![kept(began_at, took)],
            ..Record::default()
        }
    }

    #[test]
    fn bk14_the_first_backup_is_due_at_once_and_the_next_one_interval_after_its_beginning() {
        let day = schedule(DAY_MS);
        assert_eq!(due_at(&day, &Record::default(), NOW), NOW);
        assert_eq!(due_at(&day, &made(NOW, 5_000), NOW + 5_000), NOW + DAY_MS);
        // The machine was off for a week: due now, once.
        let back = NOW + 7 * DAY_MS;
        assert!(due_at(&day, &made(NOW, 5_000), back) <= back);
        assert_eq!(due_at(&day, &made(back, 5_000), back + 5_000), back + DAY_MS);
    }

    #[test]
    fn bk14_a_backup_that_takes_longer_than_the_interval_is_not_followed_by_another_at_once() {
        let hour = schedule(HOUR_MS);
        let ended = NOW + 3 * HOUR_MS;
        assert_eq!(due_at(&hour, &made(NOW, 3 * HOUR_MS), ended), ended + HOUR_MS / 2);
    }

    #[test]
    fn bk18_after_a_backup_that_was_killed_the_next_one_waits() {
        let killed = Some(Making {
            name: "b".into(),
            began_at: NOW,
        });
        let mut record = Record {
            making: killed,
            ..made(NOW - 2 * DAY_MS, 1)
        };
        let day = schedule(DAY_MS);
        assert_eq!(due_at(&day, &record, NOW + 1), NOW + 15 * 60_000);
        record.kept.clear();
        assert_eq!(due_at(&day, &record, NOW + 1), NOW + 15 * 60_000);
    }

    #[test]
    fn bk14_a_clock_that_was_set_back_delays_a_backup_by_no_more_than_an_interval() {
        let day = schedule(DAY_MS);
        assert_eq!(due_at(&day, &made(NOW + 3_000 * DAY_MS, 1), NOW), NOW);
        assert_eq!(due_at(&day, &made(NOW + HOUR_MS / 100, 1), NOW), NOW);
        let mut failed = Record::default();
        failed.failed(&Failure::failed("x", ""), NOW + 3_000 * DAY_MS);
        assert_eq!(due_at(&day, &failed, NOW), NOW);
    }

    #[test]
    fn bk18_failures_are_tried_again_less_and_less_often_and_never_later_than_the_interval() {
        let mut record = made(NOW - DAY_MS, 1);
        let day = schedule(DAY_MS);
        let mut at = NOW;
        let mut waits = Vec::new();
        for _ in 0..7 {
            record.failed(&Failure::failed("The disk is full.", "Free some space."), at);
            let due = due_at(&day, &record, at);
            waits.push((due - at) / 60_000);
            at = due;
        }
        assert_eq!(waits, [1, 5, 15, 60, 360, 360, 360]);
        assert_eq!(
            record
                .failures
                .as_ref()
                .map(|failures| (failures.since, failures.count)),
            Some((NOW, 7))
        );
        assert_eq!(retry_ms(7, HOUR_MS), HOUR_MS);
        assert!(record.retry_now() && due_at(&day, &record, at) <= at);
        record.succeeded(kept(at, 1));
        assert_eq!(
            (record.failures.is_none(), due_at(&day, &record, at)),
            (true, at + DAY_MS)
        );
    }

    #[test]
    fn bk17_only_backups_beyond_the_kept_ones_expire_and_the_newest_never_is() {
        let record = Record {
            kept: (1..=5).map(|at| kept(at, 1)).collect(),
            ..Record::default()
        };
        let names = |keep| {
            record
                .expired(keep)
                .iter()
                .map(|kept| kept.name.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(3), ["b1", "b2"]);
        assert_eq!(names(5), Vec::<&str>::new());
        assert_eq!(names(0), ["b1", "b2", "b3", "b4"]);
        assert!(Record::default().expired(1).is_empty());
    }

    #[test]
    fn bk18_a_failure_and_a_backup_that_is_overdue_are_problems() {
        let day = schedule(DAY_MS);
        assert!(problems(&day, &Record::default(), NOW + DAY_MS, false).is_empty());
        let overdue = problems(&day, &made(NOW, 1), NOW + 3 * DAY_MS, false);
        assert!(
            overdue[0].0.contains("for 3 d, although one is due every day"),
            "{overdue:?}"
        );
        let mut failed = made(NOW, 1);
        failed.failed(&Failure::failed("The disk is full.", "Free some space."), NOW);
        failed.not_removed = Some("permission denied.".into());
        let found = problems(&day, &failed, NOW + 3 * DAY_MS, false);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            (
                "The scheduled backup failed: The disk is full.".to_owned(),
                "Free some space.".to_owned()
            )
        );
    }

    #[test]
    fn bk18_what_the_owner_was_not_told_stays_known_and_one_notification_goes_on_until_its_end_is_told() {
        let failure = Failure::failed("The disk is full.", "Free some space.");
        let mut record = Record::default();
        record.failed(&failure, NOW);
        record.failed(&failure, NOW + 1);
        assert_eq!(
            record.unreported,
            Some(Unreported {
                since: NOW,
                over: false
            })
        );
        record.succeeded(kept(NOW + 2, 1));
        let over = Some(Unreported { since: NOW, over: true });
        assert_eq!(record.unreported, over);
        // A further success changes nothing about it, and the next failure is told in the notification that is still open.
        record.succeeded(kept(NOW + 3, 1));
        assert_eq!(record.unreported, over);
        record.failed(&failure, NOW + 4);
        assert_eq!(record.failures.as_ref().map(|failures| failures.since), Some(NOW));
        record.succeeded(kept(NOW + 5, 1));
        record.unreported = None;
        record.succeeded(kept(NOW + 6, 1));
        assert_eq!(record.unreported, None);
        record.failed(&failure, NOW + 7);
        assert_eq!(
            record.unreported,
            Some(Unreported {
                since: NOW + 7,
                over: false
            })
        );
    }

    #[test]
    fn bk18_a_killed_backup_is_a_problem_before_the_next_attempt_and_one_under_way_is_not() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: home.path().to_owned(),
        };
        let day = schedule(DAY_MS);
        day.write(&layout).unwrap();
        let mut record = Record {
            making: Some(Making {
                name: "b".into(),
                began_at: NOW,
            }),
            ..Record::read(&layout, &day)
        };
        record.write(&layout).unwrap();
        let held = lock::Lock::try_take(&lock(&layout)).unwrap().unwrap();
        assert!(!record.was_killed(&layout, &day));
        drop(held);
        assert!(record.was_killed(&layout, &day));
        let found = problems(&day, &record, NOW, true);
        assert!(found[0].0.contains("a kill") && found[0].1.contains("log"), "{found:?}");
        // It has ended since the record was read.
        let before = record.clone();
        record.succeeded(kept(NOW, 1));
        record.write(&layout).unwrap();
        assert!(!before.was_killed(&layout, &day) && !record.was_killed(&layout, &day));
    }

    #[test]
    fn bk17_the_record_of_all_backups_can_be_read_again() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: home.path().to_owned(),
        };
        let day = schedule(DAY_MS);
        day.write(&layout).unwrap();
        let mut record = Record::read(&layout, &day);
        for at in 0..1_000 {
            record.succeeded(Kept {
                name: "n".repeat(70),
                bytes: 1 << 40,
                ..kept(NOW + at, 1)
            });
        }
        record.write(&layout).unwrap();
        assert_eq!(Record::read(&layout, &day), record);
        assert_eq!(record.last().map(|last| last.began_at), Some(NOW + 999));
    }

    #[test]
    fn bk20_a_record_of_another_schedule_counts_as_none() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: home.path().to_owned(),
        };
        let (first, second) = (
            schedule(DAY_MS),
            Schedule {
                id: "other".into(),
                ..schedule(DAY_MS)
            },
        );
        assert_eq!(Schedule::read(&layout).unwrap(), None);
        first.write(&layout).unwrap();
        assert_eq!(Schedule::read(&layout).unwrap().as_ref(), Some(&first));
        let record = Record {
            id: first.id.clone(),
            ..made(NOW, 1)
        };
        record.write(&layout).unwrap();
        assert_eq!(Record::read(&layout, &first), record);
        assert!(Record::read(&layout, &second).kept.is_empty());
        first.remove(&layout).unwrap();
        assert_eq!(Schedule::read(&layout).unwrap(), None);
    }
}
