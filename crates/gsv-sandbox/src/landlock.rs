//! Restricts this process with Landlock and seccomp, which every program that it starts inherits.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use crate::grants::{Access, Grant};
use crate::seccomp::{self, Sockets};

/// The levels that were tested. Below the last one a command could truncate every file of the user.
const LEVELS: [ABI; 4] = [ABI::V6, ABI::V5, ABI::V4, ABI::V3];

/// The level of this kernel.
///
/// # Errors
/// A sentence that says what is missing.
pub(crate) fn level() -> Result<ABI, String> {
    let is_there = |abi: &ABI| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        handled(ruleset, *abi).and_then(Ruleset::create).is_ok()
    };
    LEVELS
        .into_iter()
        .find(is_there)
        .ok_or_else(|| "the kernel has no Landlock, or one older than ABI 3 (Linux 6.2)".into())
}

/// Whether commands can't send signals to processes outside.
pub(crate) fn has_scopes(abi: ABI) -> bool {
    abi >= ABI::V6
}

fn handled(ruleset: Ruleset, abi: ABI) -> Result<Ruleset, landlock::RulesetError> {
    let ruleset = ruleset.handle_access(AccessFs::from_all(abi))?;
    if has_scopes(abi) {
        ruleset.scope(Scope::from_all(abi))
    } else {
        Ok(ruleset)
    }
}

/// The rules for one command, which are made, but hold nothing back yet.
pub(crate) struct Restriction {
    rules: RulesetCreated,
    filter: seccompiler::BpfProgram,
}

impl Restriction {
    /// From here on this process has no capabilities. `read_only`: also no rights, owners, times and attributes of files are changed, which
    /// Landlock does not see.
    ///
    /// # Errors
    /// A sentence; the caller must end.
    pub(crate) fn prepare(grants: &[Grant], read_only: bool) -> Result<Self, String> {
        let abi = level()?;
        drop_capabilities()?;
        let filter = seccomp::filter(Sockets::None, read_only)?;
        let ruleset = handled(Ruleset::default().set_compatibility(CompatLevel::HardRequirement), abi);
        let mut rules = ruleset.and_then(Ruleset::create).map_err(refused)?;
        for grant in grants {
            // A path that is gone or can't be opened is out of a command's reach, too.
            let Ok(path) = PathFd::new(&grant.path) else { continue };
            let is_dir = grant.path.is_dir();
            let all = match grant.access {
                Access::Read => AccessFs::from_read(abi),
                Access::Write | Access::Device => AccessFs::from_all(abi),
            };
            let access = if is_dir { all } else { all & AccessFs::from_file(abi) };
            rules = rules.add_rule(PathBeneath::new(path, access)).map_err(refused)?;
        }
        Ok(Self { rules, filter })
    }

    /// # Errors
    /// A sentence; nothing or only a part is enforced then, and the caller must end.
    pub(crate) fn enforce(self) -> Result<(), String> {
        let status = self.rules.restrict_self().map_err(refused)?;
        if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
            return Err("Landlock enforced only a part of the rules".into());
        }
        seccompiler::apply_filter(&self.filter).map_err(|error| format!("the system-call filter was refused: {error}"))
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn refused(error: landlock::RulesetError) -> String {
    format!("Landlock refused the rules: {error}")
}

/// Inside of bubblewrap: a read-only mount does not keep a command from writing into a named pipe that another program reads. A kernel
/// without Landlock can't keep it from that. `outputs`: the numbers of its open files for what it prints. `writable`: where it may write.
///
/// # Errors
/// A sentence; the caller must end.
pub(crate) fn keep_from_pipes<'path>(
    outputs: [&str; 2],
    writable: impl Iterator<Item = &'path Path>,
) -> Result<(), String> {
    if level().is_err() {
        return Ok(());
    }
    let failed = |error: landlock::RulesetError| format!("Landlock refused the rules against pipes: {error}");
    let in_folders = AccessFs::WriteFile | AccessFs::Refer;
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let mut created = (ruleset.handle_access(in_folders).and_then(Ruleset::create)).map_err(failed)?;
    // They are the sandbox's own.
    let own = ["/dev", "/proc", "/run", "/tmp", "/var/tmp"].map(Path::new);
    for point in own.into_iter().chain(writable) {
        let access = if point.is_dir() {
            in_folders
        } else {
            AccessFs::WriteFile.into()
        };
        if let Ok(path) = PathFd::new(point) {
            created = created.add_rule(PathBeneath::new(path, access)).map_err(failed)?;
        }
    }
    // The output may be a file, which a command opens again as `/dev/stdout`. A file in memory has no name, and needs no rule.
    for number in outputs {
        let output = format!("/proc/self/fd/{number}");
        let is_file = std::fs::metadata(&output).is_ok_and(|found| found.is_file() && found.nlink() > 0);
        if let (true, Ok(path)) = (is_file, PathFd::new(&output)) {
            created = (created.add_rule(PathBeneath::new(path, AccessFs::WriteFile))).map_err(failed)?;
        }
    }
    created.restrict_self().map_err(failed)?;
    Ok(())
}

/// Root's rights to read other processes and to pass every permission are no part of a sandbox. Without new privileges they do
/// not come back when a program is started.
fn drop_capabilities() -> Result<(), String> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|error| format!("the capabilities can't be dropped: {error}"))
}
