//! All limits of the tools. Units are in the names.

use std::time::Duration;

pub const PATH_BYTES: usize = 4096;
pub const SYMLINKS: usize = 40;
/// Entries of private folders that are compared with a file that has several names.
pub const PRIVATE_ENTRIES: usize = 100_000;

pub const READ_LINES: usize = 2000;
pub const READ_BYTES: usize = 256 * 1024;
pub const READ_LINE_CHARS: usize = 2000;
/// Beyond this many bytes of a file the lines are no longer counted.
pub const READ_COUNT_BYTES: u64 = 64 * 1024 * 1024;
pub const READ_TIME: Duration = Duration::from_secs(10);
pub const IMAGE_BYTES: u64 = 10 * 1024 * 1024;

pub const WRITE_BYTES: usize = 10 * 1024 * 1024;
pub const EDIT_FILE_BYTES: u64 = 10 * 1024 * 1024;

pub const GLOB_TIME: Duration = Duration::from_secs(5);
pub const GLOB_ENTRIES: usize = 100_000;
pub const GLOB_MATCHES: usize = 1000;

pub const GREP_TIME: Duration = Duration::from_secs(10);
pub const GREP_FILE_BYTES: u64 = 5 * 1024 * 1024;
pub const GREP_PATTERN_BYTES: usize = 1024;
pub const GREP_MATCHES: usize = 100;
pub const GREP_LINE_CHARS: usize = 500;
pub const GREP_CONTEXT_LINES: usize = 5;
/// An ignore file larger than this, or one that is not a regular file, is not read; its directory is skipped.
pub const IGNORE_FILE_BYTES: u64 = 1024 * 1024;
/// How long a search may overrun its own time limit before its caller is answered without it.
pub const SEARCH_SLACK: Duration = Duration::from_secs(2);

/// Hosts that one call asks for.
pub const HOSTS: usize = 20;
pub const COMMAND_BYTES: usize = 100_000;
pub const BASH_TIMEOUT_MS: u64 = 300_000;
pub const BASH_TIMEOUT_MAX_MS: u64 = 24 * 60 * 60 * 1000;
pub const BASH_OUTPUT_CHARS: usize = 200_000;
pub const TAIL_CHARS: usize = 2000;
/// Output kept on disk for one command; the space of older output is freed.
pub const SPOOL_BYTES: u64 = 8 * 1024 * 1024;
/// Where the space of old output can't be freed, a command that prints more than this is ended.
pub const SPOOL_HARD_BYTES: u64 = 1024 * 1024 * 1024;
pub const START_TIME: Duration = Duration::from_secs(10);
pub const KILL_GRACE: Duration = Duration::from_millis(250);
/// A process group that is still there this long after KILL can't be killed.
pub const KILL_TIME: Duration = Duration::from_millis(4500);
pub const SPOOL_POLL: Duration = Duration::from_millis(50);
/// Live output: at most this much at each poll; more is skipped, because the result has it.
pub const PROGRESS_BYTES: usize = 64 * 1024;

pub const SESSIONS: usize = 64;
pub const SESSION_RETENTION_MS: u64 = 30 * 60 * 1000;
/// How long an ended command is kept when its result was not released.
pub const SESSION_UNRELEASED_MS: u64 = 7 * 24 * 60 * 60 * 1000;
pub const SESSION_EVICT_MS: u64 = 60 * 1000;
pub const STDIN_BYTES: usize = 64 * 1024;
pub const STDIN_TIME: Duration = Duration::from_secs(2);
pub const LOG_BYTES: usize = 50_000;
pub const LOG_MAX_BYTES: usize = 200_000;

/// Copies that undo keeps: all of them together, one of them, their age and their number (UN2).
pub const UNDO_BYTES: u64 = 1024 * 1024 * 1024;
pub const UNDO_FILE_BYTES: u64 = 256 * 1024 * 1024;
pub const UNDO_MS: u64 = 7 * 24 * 60 * 60 * 1000;
pub const UNDO_CHANGES: usize = 100_000;
/// Files that one request of an undo changes.
pub const UNDO_FILES: usize = 200;
/// Bytes of JSON that one request of an undo answers, well below the size of a frame; of them for the problem of one file.
pub const UNDO_REPORT_BYTES: usize = 800 * 1024;
pub const UNDO_PROBLEM_BYTES: usize = 3000;
/// Files whose earlier states are recorded together; each holds its copy open.
pub const UNDO_BATCH: usize = 50;
/// Files of a batch that are worked on at the same time: most of the time is waiting for the disk.
pub const UNDO_THREADS: usize = 16;
