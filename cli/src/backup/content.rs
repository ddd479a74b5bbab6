//! What a backup holds, by path below the state folder. PURE. What is not named here is not in it: logs, locks, what `gsv up` writes again
//! at each start, and what belongs to a node or to the command line of this machine.

/// Folders, with all that is below them.
pub const FOLDERS: [&str; 3] = ["gateway/do", "gateway/services", "workspace"];
/// Single files. `gateway/channels.json` is without its variables unless secrets are asked for.
pub const FILES: [&str; 3] = ["gateway/channels.json", "gateway/port", "gateway/sealed-by"];
pub const CHANNELS: &str = "gateway/channels.json";
pub const BOOTSTRAP: &str = "gateway/bootstrap.json";
/// The certificate for other machines, with its key.
pub const CERTIFICATE: &str = "gateway/tls.pem";
/// From the configuration folder.
pub const SEALING_KEY: &str = "secrets/secrets.key";
pub const TOKEN: &str = "secrets/token";
/// Only in a backup with secrets.
pub const SECRETS: [&str; 4] = [BOOTSTRAP, CERTIFICATE, SEALING_KEY, TOKEN];

const MAX_PATH_BYTES: usize = 4_096;
const DATABASES: &str = "gateway/do/";
const DATABASE: &str = ".sqlite";
const SHARED_MEMORY: &str = ".sqlite-shm";

/// A database of workerd, in one file once its log is merged.
pub fn is_database(path: &str) -> bool {
    path.starts_with(DATABASES) && path.ends_with(DATABASE)
}

/// An index into a database's log that each process builds on its own.
pub fn is_shared_memory(path: &str) -> bool {
    path.starts_with(DATABASES) && path.ends_with(SHARED_MEMORY)
}

/// What `SQLite` reads together with a database. In a copy it is merged into the database.
pub fn is_log(path: &str) -> bool {
    let logs = [SHARED_MEMORY, ".sqlite-wal", ".sqlite-journal"];
    path.starts_with(DATABASES) && logs.iter().any(|end| path.ends_with(end))
}

/// Whether a path of an archive may be restored. A log would change its database after the check of it.
pub fn is_allowed(path: &str) -> bool {
    is_copied(path) && !is_log(path)
}

/// Whether a path is plain, relative, and one that a backup is made of.
pub fn is_copied(path: &str) -> bool {
    let is_plain = path.len() <= MAX_PATH_BYTES
        && !path.contains('\0')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let is_below = |folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/'));
    is_plain && (FILES.contains(&path) || SECRETS.contains(&path) || FOLDERS.iter().any(is_below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bk9_a_path_of_an_archive_stays_below_the_folders_of_a_backup() {
        for path in [
            "workspace/agents/main/SOUL.md",
            "gateway/do/R2/a.sqlite",
            "gateway/port",
            "secrets/token",
            "gateway/tls.pem",
            "workspace/a.sqlite-wal",
        ] {
            assert!(is_allowed(path), "{path}");
        }
        let long = format!("workspace/{}", "a".repeat(MAX_PATH_BYTES));
        for path in [
            "",
            "/",
            "/etc/passwd",
            "workspace",
            "workspace/",
            "workspace//a",
            "workspace/../gateway/worker.js",
            "workspace/.",
            "../a",
            "gateway/worker.js",
            "gateway/config.capnp",
            "gateway/listen.json",
            "node/laptop/token.json",
            "workspace-2/a",
            "secrets/other",
            "workspace/a\0b",
            "gateway/do/R2/a.sqlite-wal",
            "gateway/do/R2/a.sqlite-shm",
            "gateway/do/R2/a.sqlite-journal",
            &long,
        ] {
            assert!(!is_allowed(path), "{path:?}");
        }
    }

    #[test]
    fn bk5_only_files_of_the_database_folder_are_databases() {
        assert!(is_database("gateway/do/R2/a.sqlite") && !is_database("workspace/a.sqlite"));
        assert!(!is_database("gateway/do/R2/a.sqlite-wal") && is_shared_memory("gateway/do/R2/a.sqlite-shm"));
    }
}
