//! The `SQLite` files of a copy, with a `SQLite` of our own: a database and its log become one file, and each is checked. Never opens a file
//! of a state folder, which belongs to the gateway.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

const OPENED: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Merges the log of a copied database into it and checks it. The error is the sentence of `SQLite`.
pub fn merge(path: &Path) -> Result<(), String> {
    let database = open(path)?;
    let mode: String = database
        .query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))
        .map_err(|error| words(&error))?;
    if mode != "delete" {
        return Err(format!("its log can't be merged (mode {mode})"));
    }
    check_open(&database)
}

pub fn check(path: &Path) -> Result<(), String> {
    check_open(&open(path)?)
}

fn open(path: &Path) -> Result<Connection, String> {
    Connection::open_with_flags(path, OPENED).map_err(|error| words(&error))
}

fn check_open(database: &Connection) -> Result<(), String> {
    let found: String = database
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(|error| words(&error))?;
    if found == "ok" { Ok(()) } else { Err(found) }
}

fn words(error: &rusqlite::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn bk5_a_copy_with_its_log_becomes_one_sound_file() {
        let dir = tempfile::tempdir().unwrap();
        let (live, copy) = (dir.path().join("live.sqlite"), dir.path().join("copy.sqlite"));
        let writer = Connection::open(&live).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t (x); INSERT INTO t VALUES (42);
                 CREATE VIRTUAL TABLE f USING fts5(text); INSERT INTO f VALUES ('some words');",
            )
            .unwrap();
        for end in ["", "-wal"] {
            let name = |path: &Path| format!("{}{end}", path.display());
            fs::copy(name(&live), name(&copy)).unwrap();
        }
        merge(&copy).unwrap();
        let names: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(
            names.contains(&"copy.sqlite".into()) && !names.contains(&"copy.sqlite-wal".into()),
            "{names:?}"
        );
        let value: i64 = Connection::open(&copy)
            .unwrap()
            .query_row("SELECT x FROM t", [], |row| row.get(0))
            .unwrap();
        assert_eq!(value, 42);
    }

    #[test]
    fn bk5_a_damaged_database_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sqlite");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "CREATE TABLE t (x);
                 WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 2000) INSERT INTO t SELECT x FROM n;",
            )
            .unwrap();
        drop(writer);
        check(&path).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[4_096..4_200].fill(0xff);
        fs::write(&path, bytes).unwrap();
        assert!(check(&path).is_err());
        fs::write(&path, "no database at all, but a text of some length").unwrap();
        assert!(check(&path).is_err());
    }
}
