//! The log's format: a line that names the format, then records. A record is the length and the crc32 of its payload (both u32,
//! little endian), then the payload, which is JSON. Reads whole records and finds where damage begins.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub const MAGIC: &[u8; 8] = b"GSVLOG1\n";
pub const HEADER: usize = 8;
/// The largest payload. A record with an inline result is far smaller.
pub const MAX_PAYLOAD: usize = 1024 * 1024;

/// Enough to find a call's process again, and to tell it from any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInfo {
    pub pid: u32,
    pub pgid: u32,
    pub boot_id: String,
    pub start_time: String,
    /// Folder with the output and the exit.
    pub spool: PathBuf,
}

/// One step of a call. `R` is the type of its result: raw JSON when the record is written, ignored when only the index is built.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Record<'a, R> {
    Accepted {
        call: Cow<'a, str>,
        tool: Cow<'a, str>,
        mutating: bool,
        at: u64,
    },
    Started {
        call: Cow<'a, str>,
        at: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<Cow<'a, ProcessInfo>>,
    },
    /// Accepted and started in one, for calls that need no process.
    Begun {
        call: Cow<'a, str>,
        tool: Cow<'a, str>,
        mutating: bool,
        at: u64,
    },
    Finished {
        call: Cow<'a, str>,
        at: u64,
        lost: bool,
        bytes: u64,
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        result: Option<R>,
        /// In a file of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<u64>,
    },
    Released {
        call: Cow<'a, str>,
        at: u64,
    },
    /// The result is no longer kept.
    Dropped {
        call: Cow<'a, str>,
    },
    /// The call is removed; it may come again as a new one.
    Forgotten {
        call: Cow<'a, str>,
    },
    Event {
        id: Cow<'a, str>,
        at: u64,
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        payload: Option<R>,
    },
    EventDone {
        id: Cow<'a, str>,
    },
}

fn none<R>() -> Option<R> {
    None
}

pub type Written<'a> = Record<'a, Cow<'a, RawValue>>;
pub type Indexed = Record<'static, IgnoredAny>;

/// # Errors
/// It is larger than a record may be.
pub fn encode(record: &Written<'_>) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; HEADER];
    serde_json::to_writer(&mut bytes, record).map_err(|error| error.to_string())?;
    let payload = bytes.len() - HEADER;
    let len = u32::try_from(payload)
        .ok()
        .filter(|_| payload <= MAX_PAYLOAD)
        .ok_or_else(|| format!("a record of {payload} bytes"))?;
    let crc = crc32fast::hash(&bytes[HEADER..]);
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes[4..HEADER].copy_from_slice(&crc.to_le_bytes());
    Ok(bytes)
}

/// The content of the log at one offset.
#[derive(Debug, PartialEq, Eq)]
pub enum Slot<'a> {
    /// A whole payload.
    Whole(&'a [u8]),
    /// The log ends here.
    End,
    /// Not a whole record. `reaches_end`: its writing may have been interrupted by a crash.
    Broken { reaches_end: bool },
}

pub fn slot(rest: &[u8]) -> Slot<'_> {
    if rest.is_empty() {
        return Slot::End;
    }
    let Some((head, body)) = rest.split_first_chunk::<HEADER>() else {
        return Slot::Broken { reaches_end: true };
    };
    let [l0, l1, l2, l3, c0, c1, c2, c3] = *head;
    let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let crc = u32::from_le_bytes([c0, c1, c2, c3]);
    if len > MAX_PAYLOAD || len == 0 {
        return Slot::Broken { reaches_end: false };
    }
    match body.get(..len) {
        None => Slot::Broken { reaches_end: true },
        Some(payload) if crc32fast::hash(payload) == crc => Slot::Whole(payload),
        Some(_) => Slot::Broken {
            reaches_end: body.len() == len,
        },
    }
}

/// The next whole record after broken bytes: its offset in `rest`. A payload begins with `{"t":`, which makes wrong guesses rare
/// and the crc makes them practically impossible.
pub fn resync(rest: &[u8]) -> Option<usize> {
    const START: &[u8] = b"{\"t\":";
    let mut from = 0;
    while let Some(found) = rest
        .get(from..)?
        .windows(START.len())
        .position(|window| window == START)
    {
        let payload = from + found;
        if let Some(start) = payload.checked_sub(HEADER)
            && matches!(slot(&rest[start..]), Slot::Whole(_))
        {
            return Some(start);
        }
        from = payload + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p7_an_impossible_length_is_damage_and_not_an_interrupted_write() {
        let too_long = u32::try_from(MAX_PAYLOAD + 1).unwrap().to_le_bytes();
        for head in [[0; HEADER], [too_long, [0; 4]].concat().try_into().unwrap()] {
            assert!(matches!(slot(&head), Slot::Broken { reaches_end: false }), "{head:?}");
        }
    }

    #[test]
    fn p7_only_the_last_record_may_be_an_interrupted_write() {
        let mut bytes = encode(&Record::Forgotten { call: "a".into() }).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(slot(&bytes), Slot::Broken { reaches_end: true });
        bytes.push(0);
        assert_eq!(slot(&bytes), Slot::Broken { reaches_end: false });
    }

    #[test]
    fn a_record_may_fill_its_limit() {
        let around = encode(&Record::Forgotten { call: "".into() }).unwrap().len() - HEADER;
        let of = |bytes: usize| {
            encode(&Record::Forgotten {
                call: "c".repeat(bytes - around).into(),
            })
        };
        let bytes = of(MAX_PAYLOAD).unwrap();
        assert!(matches!(slot(&bytes), Slot::Whole(payload) if payload.len() == MAX_PAYLOAD));
        assert!(of(MAX_PAYLOAD + 1).is_err());
    }
}
