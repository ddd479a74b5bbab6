//! The line that shows how far `gsv cp` is: bytes, speed and time left. PURE.

use std::time::Duration;

use crate::units::{bytes, duration};

/// Columns of the bar itself.
const BAR: usize = 20;

/// How far something is, and since when it has moved.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub done: u64,
    pub size: u64,
    /// What was there before this command began.
    pub from: u64,
    pub took: Duration,
}

/// `[########            ]  40 %  400 MiB of 1.0 GiB  100 MiB/s  6 s left`, cut to the terminal.
pub fn line(Progress { done, size, from, took }: Progress, columns: usize) -> String {
    let percent = percent(done, size);
    let filled = usize::try_from(percent).unwrap_or(100).min(100) * BAR / 100;
    let bar = format!("[{}{}]", "#".repeat(filled), " ".repeat(BAR - filled));
    let parts = format!("{percent:>3} %  {} of {}", bytes(done), bytes(size));
    let speed = speed(done.saturating_sub(from), took);
    let moving = match speed {
        Some(speed) => {
            let left =
                u64::try_from(u128::from(size.saturating_sub(done)) * 1000 / u128::from(speed)).unwrap_or(u64::MAX);
            format!("  {}/s  {} left", bytes(speed), duration(left))
        }
        None => String::new(),
    };
    let whole = format!("{bar} {parts}{moving}");
    [whole, format!("{parts}{moving}"), parts]
        .into_iter()
        .find(|text| text.chars().count() < columns)
        .unwrap_or_else(|| format!("{percent} %"))
}

fn percent(done: u64, size: u64) -> u128 {
    (u128::from(done) * 100).checked_div(u128::from(size)).unwrap_or(100)
}

/// Bytes a second; none before there is something to go by.
fn speed(moved: u64, took: Duration) -> Option<u64> {
    let ms = took.as_millis();
    if moved == 0 || ms < 200 {
        return None;
    }
    u64::try_from(u128::from(moved) * 1000 / ms)
        .ok()
        .filter(|speed| *speed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn tf13_the_line_has_bytes_speed_and_time_left_and_fits_the_terminal() {
        let half = Progress {
            done: 500 * MIB,
            size: 1000 * MIB,
            from: 100 * MIB,
            took: Duration::from_secs(4),
        };
        assert_eq!(
            line(half, 120),
            "[##########          ]  50 %  500 MiB of 1000 MiB  100 MiB/s  5.0 s left"
        );
        assert_eq!(line(half, 60), " 50 %  500 MiB of 1000 MiB  100 MiB/s  5.0 s left");
        assert_eq!(line(half, 30), " 50 %  500 MiB of 1000 MiB");
        assert_eq!(line(half, 10), "50 %");
        let begun = Progress {
            done: 0,
            size: 0,
            from: 0,
            took: Duration::ZERO,
        };
        assert_eq!(line(begun, 80), "[####################] 100 %  0 B of 0 B");
    }
}
