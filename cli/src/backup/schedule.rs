//! The schedule of backups (rules BK14 to BK20): the setting, and the files that belong to it.
//!
//! The setting and the record ([`super::record`]) are in the folder `backups` of the state folder, which no backup contains and which a restore carries over.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::embedded::layout::Layout;
use crate::embedded::sealing_key::{self, SealingKeys};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths;
use crate::private_file;
use crate::units::{duration, millis};

/// The purpose of the sealing key that the passphrase is sealed with.
const PURPOSE: &str = "passphrase of scheduled backups";
pub const HOUR_MS: u64 = 3_600_000;
pub const DAY_MS: u64 = 24 * HOUR_MS;
pub const SHORTEST_MS: u64 = HOUR_MS;
const LONGEST_MS: u64 = 366 * DAY_MS;
/// A record of them fits the limit of a private file.
pub const MOST_KEPT: u32 = 366;
const REPAIR: &str = "Set the schedule again: `gsv backup schedule --to FOLDER`.";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// The schedule's id, a part of the names of its mark and of unfinished files in the folder.
    pub id: String,
    pub folder: PathBuf,
    pub every_ms: u64,
    /// Backups that are kept.
    pub keep: u32,
    pub with_secrets: bool,
    pub since: u64,
    /// Sealed.
    pub passphrase: String,
}

pub fn folder(layout: &Layout) -> PathBuf {
    layout.home.join("backups")
}

fn setting(layout: &Layout) -> PathBuf {
    folder(layout).join("schedule.json")
}

pub fn record_file(layout: &Layout) -> PathBuf {
    folder(layout).join("record.json")
}

/// Held by a scheduled backup.
pub fn lock(layout: &Layout) -> PathBuf {
    folder(layout).join("lock")
}

pub fn write(path: &Path, value: &impl Serialize) -> Outcome {
    private_file::write(path, serde_json::to_string(value).unwrap_or_default())
}

impl Schedule {
    /// `None`: no backups are scheduled.
    pub fn read(layout: &Layout) -> Outcome<Option<Self>> {
        private_file::read_json(&setting(layout), REPAIR)
    }

    pub fn write(&self, layout: &Layout) -> Outcome {
        paths::ensure_private_dir(&folder(layout))?;
        write(&setting(layout), self)
    }

    /// Ends the schedule. The backups stay. The order: without the setting nothing uses the rest.
    pub fn remove(&self, layout: &Layout) -> Outcome {
        let path = setting(layout);
        fs::remove_file(&path).or_fail(format_args!("remove {}", path.display()), "Check its permissions.")?;
        let _ = fs::remove_file(record_file(layout));
        let _ = fs::remove_file(self.mark());
        Ok(())
    }

    /// The file that tells the chosen folder from another one at its place.
    pub fn mark(&self) -> PathBuf {
        self.folder.join(format!(".gsv-schedule-{}", self.id))
    }

    /// How the names of unfinished files in the folder begin.
    pub fn prefix(&self) -> String {
        format!(".gsv-unfinished-{}-", self.id)
    }

    pub fn seal(passphrase: &str) -> Outcome<String> {
        SealingKeys::ensure_file()?.seal(PURPOSE, passphrase)
    }

    pub fn open_passphrase(&self) -> Outcome<String> {
        let keys = SealingKeys::read()?;
        keys.and_then(|keys| keys.open(PURPOSE, &self.passphrase))
            .ok_or_else(|| {
                let key = sealing_key::path()
                    .map(|path| path.display().to_string())
                    .unwrap_or_default();
                Failure::failed(
                    format!("The passphrase of the scheduled backups was sealed with a key that is not in {key}."),
                    "Put the earlier file back, or store the passphrase again: `gsv backup schedule --new-passphrase`.",
                )
            })
    }

    /// `day`, `week`, `12 h`, as it is told after "every".
    pub fn interval(&self) -> String {
        match self.every_ms {
            HOUR_MS => "hour".to_owned(),
            DAY_MS => "day".to_owned(),
            ms if ms == 7 * DAY_MS => "week".to_owned(),
            ms => duration(ms),
        }
    }
}

/// `hour`, `day`, `week`, or a time such as `12h`.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let ms = match text {
        "hour" => HOUR_MS,
        "day" => DAY_MS,
        "week" => 7 * DAY_MS,
        _ => crate::units::parse_duration(text)
            .map(millis)
            .map_err(|_| "write it as hour, day, week, or a time such as 12h or 3d".to_owned())?,
    };
    if (SHORTEST_MS..=LONGEST_MS).contains(&ms) {
        Ok(Duration::from_millis(ms))
    } else {
        Err("it is from 1h to 366d".to_owned())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const NOW: u64 = 1_000 * DAY_MS;

    pub fn schedule(every_ms: u64) -> Schedule {
        Schedule {
            id: "k3".into(),
            folder: "/backups".into(),
            every_ms,
            keep: 3,
            with_secrets: false,
            since: NOW,
            passphrase: String::new(),
        }
    }

    #[test]
    fn bk14_intervals_are_words_or_times_from_an_hour_to_a_year() {
        for (text, ms) in [
            ("hour", HOUR_MS),
            ("day", DAY_MS),
            ("week", 7 * DAY_MS),
            ("12h", 12 * HOUR_MS),
        ] {
            assert_eq!(parse_interval(text).map(millis), Ok(ms), "{text}");
        }
        for wrong in ["", "month", "30m", "400d", "x"] {
            assert!(parse_interval(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            [HOUR_MS, DAY_MS, 7 * DAY_MS, 2 * DAY_MS].map(|ms| schedule(ms).interval()),
            ["hour", "day", "week", "2 d"]
        );
    }
}
