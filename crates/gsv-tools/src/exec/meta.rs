//! The folder of a command: its files, and the content of `meta.json` and `exit`.

use std::io;
use std::os::fd::IntoRawFd as _;
use std::path::{Path, PathBuf};

use gsv_sandbox::{Escalation, Profile};
use serde::{Deserialize, Serialize};

use super::command_limits::CommandLimits;
use super::host;

pub(crate) const OUTPUT: &str = "output";
/// Exists when the gate was closed: the command never runs. The scripts of the supervisor name it, too.
pub(crate) const NEVER: &str = "never";
pub(crate) const STDIN: &str = "stdin";
/// The socket of its proxy, and the hosts that the proxy has refused.
pub(crate) const PROXY: &str = "proxy";
pub(crate) const REFUSED: &str = "refused";
const META: &str = "meta.json";
pub(crate) const EXIT: &str = "exit";
const ENDING: &str = "ending";
const RELEASED: &str = "released";

/// Stored by the ledger before a command may run. Identifies the command's process, also after a restart of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartInfo {
    /// The command's process, which leads its group.
    pub pid: u32,
    pub pgid: u32,
    pub boot_id: String,
    /// The start of the process, in the system's own format; with `boot_id` and `pid` it identifies one process.
    pub start_time: String,
    /// The command's folder, for [`crate::ToolBox::reattach`].
    pub spool: PathBuf,
}

/// `meta.json`, written once before the command runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta {
    pub(crate) session_id: String,
    pub(crate) call_id: String,
    pub(crate) pid: u32,
    pub(crate) pgid: u32,
    pub(crate) start_time: String,
    pub(crate) supervisor_pid: u32,
    pub(crate) supervisor_start_time: String,
    pub(crate) boot_id: String,
    pub(crate) command: String,
    pub(crate) workdir: String,
    pub(crate) background: bool,
    /// Epoch milliseconds, for people.
    pub(crate) started_at: u64,
    /// On the clock of [`host::uptime_ms`], for the timeout.
    pub(crate) started_uptime_ms: u64,
    pub(crate) timeout_ms: u64,
    /// The profile that it runs in. Absent in records of earlier versions, which had no sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<Profile>,
    /// Each part absent in records of versions that did not have it.
    #[serde(flatten)]
    pub(crate) escalation: Escalation,
    /// Absent where nothing watches them, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<CommandLimits>,
}

/// How a command ended, as its supervisor wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
    NeverRan,
}

impl Exit {
    /// Parses the line in the `exit` file. `status` is a shell's exit status: above 128 it stands for a signal.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let exit = match (words.next()?, words.next()) {
            ("never", None) => Self::NeverRan,
            ("code", Some(code)) => Self::Code(code.parse().ok()?),
            ("signal", Some(signal)) => Self::Signal(signal.parse().ok()?),
            ("status", Some(status)) => Self::of_status(status.parse().ok()?),
            _ => return None,
        };
        words.next().is_none().then_some(exit)
    }

    /// A shell's exit status: above 128 it stands for a signal.
    pub(crate) fn of_status(status: i32) -> Self {
        match status {
            129..=192 => Self::Signal(status - 128),
            _ => Self::Code(status),
        }
    }

    pub(crate) fn line(self) -> String {
        match self {
            Self::Code(code) => format!("code {code}\n"),
            Self::Signal(signal) => format!("signal {signal}\n"),
            Self::NeverRan => "never\n".to_owned(),
        }
    }
}

/// Why a command was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Timeout,
    Cancelled,
    Killed,
    Flood,
    Memory,
    Processes,
}

impl Ending {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Timeout, "timeout"),
        (Self::Cancelled, "cancelled"),
        (Self::Killed, "killed"),
        (Self::Flood, "flood"),
        (Self::Memory, "memory"),
        (Self::Processes, "processes"),
    ];
}

/// A command's folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The folder that is there now, until this process ends: one that is made again in its place is another one.
    pub(crate) fn hold(&self) -> io::Result<Self> {
        let folder = std::fs::File::open(&self.0)?;
        if !cfg!(target_os = "linux") {
            // Only Linux names an open folder.
            return Ok(self.clone());
        }
        Ok(Self(format!("/proc/self/fd/{}", folder.into_raw_fd()).into()))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write_meta(&self, meta: &Meta) -> io::Result<()> {
        put(&self.file(META), &serde_json::to_vec(meta)?)
    }

    pub(crate) fn meta(&self) -> Option<Meta> {
        serde_json::from_slice(&std::fs::read(self.file(META)).ok()?).ok()
    }

    pub(crate) fn write_exit(&self, exit: Exit) -> io::Result<()> {
        put(&self.file(EXIT), exit.line().as_bytes())
    }

    /// How the command ended, and when (epoch milliseconds).
    pub(crate) fn exit(&self) -> Option<(Exit, u64)> {
        let path = self.file(EXIT);
        let exit = Exit::parse(&std::fs::read_to_string(&path).ok()?)?;
        let ended_at = path
            .metadata()
            .and_then(|found| found.modified())
            .map_or_else(|_| host::now_ms(), host::to_ms);
        Some((exit, ended_at))
    }

    pub(crate) fn write_ending(&self, ending: Ending) {
        let word = Ending::ALL
            .iter()
            .find(|(one, _)| *one == ending)
            .map_or("", |(_, word)| word);
        // Only a later node reads it; the command is ended in any case.
        let _ = put(&self.file(ENDING), word.as_bytes());
    }

    pub(crate) fn ending(&self) -> Option<Ending> {
        let word = std::fs::read_to_string(self.file(ENDING)).ok()?;
        Ending::ALL
            .iter()
            .find(|(_, name)| *name == word)
            .map(|(ending, _)| *ending)
    }

    pub(crate) fn release(&self) -> io::Result<()> {
        put(&self.file(RELEASED), b"")
    }

    pub(crate) fn is_released(&self) -> bool {
        self.file(RELEASED).exists()
    }

    pub(crate) fn has_stdin(&self) -> bool {
        self.file(STDIN).exists()
    }

    pub(crate) fn remove(&self) {
        // The next start of the node tries again.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temp = path.with_extension("tmp");
    std::fs::write(&temp, bytes)?;
    std::fs::rename(&temp, path)
}

/// The folder name of a call: readable, the same for the same id, different for different ids.
pub(crate) fn session_id(call_id: &str) -> String {
    let mut name = String::with_capacity(call_id.len());
    for byte in call_id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
            b'/' if !name.is_empty() => name.push('.'),
            other => name.extend(["_".to_owned(), format!("{other:02x}")]),
        }
    }
    if name.len() <= 96 {
        return name;
    }
    // FNV-1a, 128 bits: ids come from the gateway, so the hash must be distinct, not resist an attacker.
    let hash = call_id
        .bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
    format!("{}_{hash:032x}", &name[..56])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn p6_a_session_id_is_a_plain_name_and_injective(one in "[a-z/:._A-Z-]{1,120}", other in "[a-z/:._A-Z-]{1,120}") {
            let name = session_id(&one);
            prop_assert!(name.len() <= 96 && !name.starts_with('.') && !name.contains('/'));
            prop_assert_eq!(session_id(&one) == session_id(&other), one == other);
        }

        #[test]
        fn k17_exit_lines_read_back(code in any::<i32>(), signal in 1i32..64) {
            for exit in [Exit::Code(code), Exit::Signal(signal), Exit::NeverRan] {
                prop_assert_eq!(Exit::parse(&exit.line()), Some(exit));
            }
        }

        #[test]
        fn k17_a_torn_exit_file_is_no_exit(line in "(code|signal|status|never|)( [a-z-]{0,3})?") {
            prop_assert!(matches!(Exit::parse(&line), None | Some(Exit::NeverRan)));
        }
    }

    #[test]
    fn p6_an_id_of_96_characters_is_its_own_name() {
        let id = "a".repeat(96);
        assert_eq!(session_id(&id), id);
        let longer = session_id(&"a".repeat(97));
        assert!(longer.len() <= 96 && longer.contains('_'), "{longer}");
    }

    #[test]
    fn shells_report_signals_as_high_statuses() {
        assert_eq!(Exit::parse("status 137"), Some(Exit::Signal(9)));
        assert_eq!(Exit::parse("status 255"), Some(Exit::Code(255)));
        assert_eq!(Exit::parse("status 3 4"), None);
    }
}
