//! Times, durations and sizes, to and from what people write. Pure: the present time is an argument.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Epoch milliseconds by this machine's clock.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// `90d`, `12h`, `30m`, `45s`, `500ms`, and sums like `1h30m`. A bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const HELP: &str = "write it like 90d, 12h, 30m, 45s or 1h30m";
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(HELP.to_owned());
    }
    if let Ok(seconds) = rest.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut total_ms = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit_ms: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return Err(HELP.to_owned()),
        };
        let number: u64 = number.parse().map_err(|_| HELP.to_owned())?;
        let part = number.checked_mul(unit_ms).and_then(|part| total_ms.checked_add(part));
        total_ms = part.ok_or_else(|| "this is too long".to_owned())?;
        rest = after;
    }
    Ok(Duration::from_millis(total_ms))
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

fn two(big: u64, big_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{big} {big_unit}")
    } else {
        format!("{big} {big_unit} {small} {small_unit}")
    }
}

/// `just now`, `5 min ago`, `3 h ago`, `12 d ago`, `in 5 min`; after 60 days the date.
pub fn ago(then_ms: u64, now_ms: u64) -> String {
    let (apart, past) = if then_ms <= now_ms {
        (now_ms - then_ms, true)
    } else {
        (then_ms - now_ms, false)
    };
    let seconds = apart / 1_000;
    let span = match seconds {
        0..=9 => return "just now".to_owned(),
        10..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=86_399 => format!("{} h", seconds / 3_600),
        86_400..=5_183_999 => format!("{} d", seconds / 86_400),
        _ => return date(then_ms),
    };
    if past {
        format!("{span} ago")
    } else {
        format!("in {span}")
    }
}

/// `2026-11-21`, UTC.
pub fn date(ms: u64) -> String {
    let (year, month, day) = civil(ms / 86_400_000);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-11-21 07:42:04 UTC`.
pub fn time(ms: u64) -> String {
    format!("{} {} UTC", date(ms), clock(ms))
}

/// `2026-11-21T07:42:04.123Z`, for log lines.
pub fn timestamp(ms: u64) -> String {
    format!("{}T{}.{:03}Z", date(ms), clock(ms), ms % 1_000)
}

fn clock(ms: u64) -> String {
    let seconds = ms / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds % 3_600 / 60, seconds % 60)
}

/// Year, month and day of a day since 1970 (the proleptic Gregorian calendar, counted in eras of 400 years from March).
fn civil(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// `512 B`, `1.5 KiB`, `20 MiB`.
pub fn bytes(count: u64) -> String {
    let mut whole = count;
    let mut tenths = 0;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if whole < 1_024 {
            break;
        }
        tenths = whole % 1_024 * 10 / 1_024;
        whole /= 1_024;
        unit = next;
    }
    if unit == "B" || whole >= 10 {
        format!("{whole} {unit}")
    } else {
        format!("{whole}.{tenths} {unit}")
    }
}

/// `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in [
            "",
            "d",
            "5 parsecs",
            "-1s",
            "1.5h",
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
        assert_eq!(timestamp(1_795_246_924_123), "2026-11-21T07:42:04.123Z");
    }

    #[test]
    fn times_are_told_from_now() {
        assert_eq!(ago(1_000, 2_000), "just now");
        assert_eq!(ago(0, 300_000), "5 min ago");
        assert_eq!(ago(7_200_000, 0), "in 2 h");
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
