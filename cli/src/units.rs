//! Times, durations and sizes as people write them. Pure except for `now_ms` and the time zone: the current
//! time is an argument. Times are in the zone of the gateway's settings, else in that of this machine.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Epoch milliseconds by this machine's clock.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

/// `90d`, `12h`, `30m`, `45s`, `500ms`, and sums like `1h30m`. A bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).map_err(|_| "write it like 90d, 12h, 30m, 45s or 1h30m".to_owned()),
    }
}

/// `12 ms`, `3.4 s`, `2 min 5 s`, `3 h 20 min`, `4 d 2 h`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..=59 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        60..=3_599 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..=86_399 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// The same in whole seconds.
pub fn in_seconds(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => duration(seconds * 1_000),
    }
}

/// Saturated: no time of people is longer.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn two(big: u64, big_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{big} {big_unit}")
    } else {
        format!("{big} {big_unit} {small} {small_unit}")
    }
}

/// `just now`, `5 min ago`, `3 h ago`, `12 d ago`, `in 5 min`; after 60 days the date.
pub fn ago(then_ms: u64, now_ms: u64) -> String {
    let seconds = then_ms.abs_diff(now_ms) / 1_000;
    let span = match seconds {
        0..=9 => return "just now".to_owned(),
        10..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=86_399 => format!("{} h", seconds / 3_600),
        86_400..=5_183_999 => format!("{} d", seconds / 86_400),
        _ => return date(then_ms),
    };
    if then_ms <= now_ms {
        format!("{span} ago")
    } else {
        format!("in {span}")
    }
}

/// As `ago`, for a time that is planned: `in 5 s`, and `now` when it has come.
pub fn until(then_ms: u64, now_ms: u64) -> String {
    match then_ms.saturating_sub(now_ms).div_ceil(1_000) {
        0 => "now".to_owned(),
        seconds @ 1..=9 => format!("in {seconds} s"),
        _ => ago(then_ms, now_ms),
    }
}

/// `2026-11-21`, in the user's time zone.
pub fn date(ms: u64) -> String {
    written(ms, &zone(), "%Y-%m-%d")
}

/// `2026-11-21 08:42:04 CET`, in the user's time zone.
pub fn time(ms: u64) -> String {
    written(ms, &zone(), "%Y-%m-%d %H:%M:%S %Z")
}

/// `08:42`, in the user's time zone.
pub fn clock(ms: u64) -> String {
    written(ms, &zone(), "%H:%M")
}

/// `Sat 21 Nov`, in the user's time zone.
pub fn short_day(ms: u64) -> String {
    written(ms, &zone(), "%a %-d %b")
}

/// `Saturday 21 November 2026`, of `2026-11-21`. None: it is no date.
pub fn weekday(date: &str) -> Option<String> {
    let date: Date = date.parse().ok()?;
    Some(date.strftime("%A %-d %B %Y").to_string())
}

/// The zone that the gateway's settings name. The first one counts; a process speaks with one gateway.
static USER_ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Shows times in this zone from now on. A name that this machine does not know changes nothing.
pub fn use_zone(name: &str) {
    if let Ok(zone) = TimeZone::get(name) {
        let _ = USER_ZONE.set(zone);
    }
}

fn zone() -> TimeZone {
    match USER_ZONE.get() {
        Some(zone) => zone.clone(),
        None if cfg!(test) => TimeZone::UTC,
        None => TimeZone::system(),
    }
}

fn written(ms: u64, zone: &TimeZone, format: &str) -> String {
    let at = i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let at = at.unwrap_or(Timestamp::MAX).to_zoned(zone.clone());
    at.strftime(format).to_string()
}

/// `2026-11-21T07:42:04.123Z`, for log lines. Later times are shown as the end of the year 9999.
pub fn timestamp(ms: u64) -> String {
    const LAST_MS: u64 = 253_402_300_799_999;
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms.min(LAST_MS))).to_string()
}

/// `512 B`, `1.5 KiB`, `20 MiB`.
pub fn bytes(count: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let (name, bits) = units
        .into_iter()
        .find(|(_, bits)| count >> bits > 0)
        .unwrap_or(("B", 0));
    let tenths = (u128::from(count) * 10) >> bits;
    if bits == 0 || tenths >= 100 {
        format!("{} {name}", tenths / 10)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

/// `1,234,567`.
pub fn grouped(count: u64) -> String {
    in_groups(&count.to_string())
}

/// Tokens of a limit, which are a number with a fraction on the wire.
pub fn whole(tokens: f64) -> String {
    in_groups(&format!("{:.0}", tokens.max(0.0)))
}

fn in_groups(digits: &str) -> String {
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// `1 file`, `1,234 files`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// US dollars, with as many digits as small sums need.
pub fn dollars(usd: f64) -> String {
    if usd >= 1.0 || usd == 0.0 {
        format!("${usd:.2}")
    } else {
        format!("${usd:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        assert_eq!(parse_duration("90d"), Ok(Duration::from_secs(90 * 86_400)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse_duration("45"), Ok(Duration::from_secs(45)));
        assert_eq!(parse_duration("1.5h"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in [
            "",
            "d",
            "5 parsecs",
            "-1s",
            "99999999999999999999d",
            "9999999999999999d",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn durations_are_written() {
        assert_eq!(duration(12), "12 ms");
        assert_eq!(duration(3_450), "3.4 s");
        assert_eq!(duration(125_000), "2 min 5 s");
        assert_eq!(duration(7_200_000), "2 h");
        assert_eq!(duration(90_000_000), "1 d 1 h");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(time(951_782_399_000), "2000-02-28 23:59:59 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29");
        assert_eq!(
            (clock(951_782_399_000), short_day(951_782_399_000)),
            ("23:59".to_owned(), "Mon 28 Feb".to_owned())
        );
        assert_eq!(weekday("2026-11-21").as_deref(), Some("Saturday 21 November 2026"));
        assert_eq!((weekday("2026-02-30"), weekday("soon")), (None, None));
        assert_eq!(timestamp(1_795_246_924_123), "2026-11-21T07:42:04.123Z");
    }

    #[test]
    fn times_are_told_from_now() {
        assert_eq!(ago(1_000, 2_000), "just now");
        assert_eq!(ago(0, 300_000), "5 min ago");
        assert_eq!(ago(7_200_000, 0), "in 2 h");
        assert_eq!(until(5_000, 400), "in 5 s");
        assert_eq!(until(5_000, 5_000), "now");
        assert_eq!(until(5_000, 90_000), "now");
        assert_eq!(until(7_200_000, 0), "in 2 h");
        assert_eq!(ago(0, 86_400_000 * 61), "1970-01-01");
    }

    #[test]
    fn sizes_and_counts_are_readable() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(20 << 20), "20 MiB");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        assert_eq!(dollars(0.00123), "$0.0012");
    }
}
