//! Writes and reads the ledger's files: records, result files, and the log as a whole.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use gsv_protocol::limits;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::index::{Entry, Place};
use super::record::{self, HEADER, MAGIC, Record, Slot, Written};
use super::{LOG_BYTES, Ledger, LedgerError, io};

pub const LOG: &str = "ledger.log";
pub const NEW_LOG: &str = "ledger.log.new";
pub const RESULTS: &str = "results";

impl Ledger {
    fn log_path(&self) -> PathBuf {
        self.dir.join(LOG)
    }

    pub(super) fn result_path(&self, number: u64) -> PathBuf {
        self.dir.join(RESULTS).join(format!("{number}.json"))
    }

    pub(super) fn write_record(&mut self, record: &Written<'_>) -> Result<(), LedgerError> {
        let bytes = record::encode(record).map_err(LedgerError::Record)?;
        if self.distrusted || self.log_len > LOG_BYTES.max(self.compacted_len.saturating_mul(2)) {
            self.compact()?;
        }
        if let Err(error) = self.disk.write_at(&self.log, &bytes, self.log_len) {
            // The next start would cut half a record off; do it now.
            if self.disk.set_len(&self.log, self.log_len).is_err() {
                self.distrusted = true;
            }
            return Err(io("write a record")(error));
        }
        let payload = &bytes[HEADER..];
        let indexed = serde_json::from_slice(payload).map_err(|error| LedgerError::Record(error.to_string()))?;
        self.index.apply(&indexed, self.log_len, payload.len() as u64);
        self.log_len += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn read_record<R: DeserializeOwned>(
        &self,
        offset: u64,
        len: u64,
    ) -> Result<Record<'static, R>, LedgerError> {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(record::MAX_PAYLOAD);
        let mut bytes = vec![0; HEADER + len];
        self.log
            .read_exact_at(&mut bytes, offset)
            .map_err(io("read a record"))?;
        match record::slot(&bytes) {
            Slot::Whole(payload) => {
                serde_json::from_slice(payload).map_err(|error| LedgerError::Record(error.to_string()))
            }
            _ => Err(LedgerError::Record("it was changed on the disk".into())),
        }
    }

    /// Writes a large result beside the log; durable when this returns.
    pub(super) fn store_file(&mut self, bytes: &[u8]) -> Result<u64, LedgerError> {
        let number = self.next_file;
        self.next_file += 1;
        let (path, folder) = (self.result_path(number), self.dir.join(RESULTS));
        let temp = path.with_extension("new");
        let write = || {
            let file = self.disk.create(&temp)?;
            self.disk.write_at(&file, bytes, 0)?;
            self.disk.sync(&file)?;
            self.disk.rename(&temp, &path)?;
            self.disk.sync_dir(&folder)
        };
        write().map_err(io("store a large result"))?;
        Ok(number)
    }

    pub(super) fn read_file<T: DeserializeOwned>(&self, number: u64) -> Result<Option<T>, LedgerError> {
        let path = self.result_path(number);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io("read a large result")(error)),
            // A frame's worth of JSON around the largest result.
            Ok(found) if found.len() > limits::TOOL_RESULT_BYTES + limits::FRAME_BYTES => return Ok(None),
            Ok(_) => {}
        }
        let bytes = fs::read(&path).map_err(io("read a large result"))?;
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| LedgerError::Record(error.to_string()))
    }

    /// Drops the result of a call; the call stays on record.
    pub(super) fn drop_result(&mut self, call: &str) {
        let place = self.index.place(call);
        let Some(Place::Log { .. } | Place::File(_)) = place else {
            return;
        };
        if let Err(error) = self.write_record(&Record::Dropped { call: call.into() }) {
            self.notes.push(error.to_string());
        }
        if let Some(Place::File(number)) = place
            && let Err(error) = self.disk.remove(&self.result_path(number))
        {
            self.notes.push(format!(
                "the result file {number} of the call ledger can't be removed: {error}"
            ));
        }
    }

    /// Removes the call; it may come again as a new one.
    pub(super) fn forget_entirely(&mut self, call: &str) {
        self.drop_result(call);
        if let Err(error) = self.write_record(&Record::Forgotten { call: call.into() }) {
            self.notes.push(error.to_string());
        }
    }

    /// Rewrites the log without obsolete records. The old log stays until the new one is complete and durable.
    pub(super) fn compact(&mut self) -> Result<(), LedgerError> {
        let path = self.dir.join(NEW_LOG);
        let log = self.disk.create(&path).map_err(io("rewrite its log"))?;
        let mut index = super::Index::default();
        let mut len = HEADER as u64;
        self.disk.write_at(&log, MAGIC, 0).map_err(io("rewrite its log"))?;
        let mut put = |record: &Written<'_>| -> Result<(), LedgerError> {
            let bytes = record::encode(record).map_err(LedgerError::Record)?;
            self.disk.write_at(&log, &bytes, len).map_err(io("rewrite its log"))?;
            let indexed =
                serde_json::from_slice(&bytes[HEADER..]).map_err(|error| LedgerError::Record(error.to_string()))?;
            index.apply(&indexed, len, (bytes.len() - HEADER) as u64);
            len += bytes.len() as u64;
            Ok(())
        };
        for (call, entry) in self.index.in_order() {
            // A result that can't be read must not prevent the rest from being saved.
            let result: Option<Value> = match entry.finish.as_ref().map(|finish| finish.place) {
                Some(Place::Log { .. }) => self.result(call).ok().flatten(),
                _ => None,
            };
            for record in records_of(call, entry, result.as_ref())? {
                put(&record)?;
            }
        }
        for event in self.index.events.values() {
            if let Ok(Record::Event {
                payload: Some(payload), ..
            }) = self.read_record::<Value>(event.offset, event.len)
            {
                let payload = raw(&payload)?;
                put(&Record::Event {
                    id: event.id.as_str().into(),
                    at: event.at,
                    payload: Some(Cow::Owned(payload)),
                })?;
            }
        }
        self.disk.sync(&log).map_err(io("rewrite its log"))?;
        self.disk
            .rename(&path, &self.log_path())
            .map_err(io("rewrite its log"))?;
        // The new file is the log from here on. Until the folder is synced, a power cut may bring back the old log, which
        // holds the same; so nothing is added before the sync.
        self.log = Arc::new(log);
        self.log_len = len;
        self.compacted_len = len;
        self.index = index;
        self.distrusted = true;
        self.disk.sync_dir(&self.dir).map_err(io("rewrite its log"))?;
        self.distrusted = false;
        Ok(())
    }
}

fn raw(value: &Value) -> Result<Box<RawValue>, LedgerError> {
    serde_json::value::to_raw_value(value).map_err(|error| LedgerError::Record(error.to_string()))
}

/// The shortest list of records that gives the entry.
fn records_of<'a>(call: &'a str, entry: &'a Entry, result: Option<&Value>) -> Result<Vec<Written<'a>>, LedgerError> {
    let (tool, mutating, at) = (entry.tool.as_str(), entry.mutating, entry.accepted_at);
    let mut records = vec![Record::Accepted {
        call: call.into(),
        tool: tool.into(),
        mutating,
        at,
    }];
    if let Some(at) = entry.started_at {
        records.push(Record::Started {
            call: call.into(),
            at,
            process: entry.process.as_ref().map(Cow::Borrowed),
        });
    }
    if let Some(finish) = &entry.finish {
        let file = if let Place::File(number) = finish.place {
            Some(number)
        } else {
            None
        };
        let result = result.map(raw).transpose()?.map(Cow::Owned);
        records.push(Record::Finished {
            call: call.into(),
            at: finish.at,
            lost: finish.lost,
            bytes: finish.bytes,
            result,
            file,
        });
    }
    if let Some(at) = entry.released_at {
        records.push(Record::Released { call: call.into(), at });
    }
    Ok(records)
}
