//! `node.toml`: what the owner of this machine lets the agent's commands do. Local, and the last word: the gateway can't
//! change it. Every key has an effect; a key that does not exist, or has the wrong type, stops the node. Reads no file.
//!
//! ```toml
//! sandbox = "workspace"            # off, workspace, workspace+net or strict; without it: workspace where this machine can enforce it
//! network = ["crates.io"]          # hosts that commands may reach in `workspace+net`, as in "*.npmjs.org" or "localhost:3000"; "none": no hosts at all
//! escalation = true                # whether the agent may ask you for a command outside the sandbox, or with further hosts
//! env = ["MY_SETTING"]             # variables that commands get besides the usual ones
//! caches = ["~/.cargo/registry"]   # package caches that commands may write; this replaces the default list
//! [limits]                         # of all processes of one command together (Linux); a command that goes beyond is ended
//! memory_mib = 8192                # without it: three quarters of the machine's memory
//! processes = 4096                 # with their threads
//! [roots]
//! rw = ["~/data"]                  # further folders that commands may write, but for what is protected in them (rule SB5)
//! ro = ["~/reference"]             # further folders that commands may read in `strict`
//! ```

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use gsv_tools::{CommandLimits, Supervisor, machine_memory_bytes};
use toml_edit::{Document, Item, Table};

use crate::sandbox::{DEFAULT_CACHES, HostRule, Profile, Program, SandboxSettings, Tier, is_reserved};

/// The first argument of the `gsv` process that supervises one command of the agent.
pub const SUPERVISE: &str = "__supervise";
/// The first argument of the process that becomes a confined command.
pub const CONFINE: &str = "__confine";
/// The first argument of the process that tests a sandbox from inside.
pub const CANARY: &str = "__canary";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePolicy {
    /// Absent: `workspace`, where the machine can enforce it.
    pub sandbox: Option<Profile>,
    /// The weakest tier that the owner accepts.
    pub tier: Option<Tier>,
    /// Hosts that commands may reach. Absent: none, and the agent may not ask for any.
    pub hosts: Option<Vec<HostRule>>,
    pub escalation: bool,
    pub writable: Vec<PathBuf>,
    pub readable: Vec<PathBuf>,
    pub caches: Vec<PathBuf>,
    pub env: Vec<String>,
    /// Something is said that only a sandbox can do: a profile but `off`, its folders, or that nothing leaves it.
    pub needs_sandbox: bool,
    /// The memory of one command. Absent: what this machine's memory allows by default.
    pub memory_mib: Option<u64>,
    pub processes: Option<usize>,
}

const FOLDERS: usize = 100;
const HOSTS: usize = 100;
/// Less than any shell needs, and more than any machine has, are mistakes.
const MEMORY_MIB: RangeInclusive<i64> = 64..=16_777_216;
const PROCESSES: RangeInclusive<i64> = 16..=4_194_304;

impl NodePolicy {
    /// # Errors
    /// The line and the reason.
    pub fn parse(text: &str, home: &Path) -> Result<Self, String> {
        let document = Document::parse(text).map_err(|error| {
            let message: Vec<&str> = error.message().lines().collect();
            at(text, error.span(), &message.join("; "))
        })?;
        let caches = DEFAULT_CACHES.map(|cache| expand(cache, home)).into_iter().flatten();
        let mut policy = Self {
            sandbox: None,
            tier: None,
            hosts: Some(Vec::new()),
            escalation: true,
            writable: Vec::new(),
            readable: Vec::new(),
            caches: caches.collect(),
            env: Vec::new(),
            needs_sandbox: false,
            memory_mib: None,
            processes: None,
        };
        for (key, item) in entries(document.as_table()) {
            let problem = |problem: &str| at(text, key.span.clone(), &format!("`{}`: {problem}", key.name));
            policy.needs_sandbox |= matches!(key.name.as_str(), "roots" | "caches");
            match key.name.as_str() {
                "sandbox" => {
                    let name = item.as_str().ok_or_else(|| problem("it must be a string"))?;
                    let profile = Profile::parse(name).map_err(|error| problem(&error))?;
                    policy.needs_sandbox |= profile != Profile::Off;
                    policy.sandbox = Some(profile);
                }
                "tier" => {
                    let name = item.as_str().ok_or_else(|| problem("it must be a string"))?;
                    let tier = Tier::parse(name).map_err(|error| problem(&error))?;
                    if !tier.is_of_this_system() {
                        let others = Tier::ALL.into_iter().filter(|tier| tier.is_of_this_system());
                        let names: Vec<String> = others.map(|tier| format!("`{}`", tier.name())).collect();
                        return Err(problem(&format!(
                            "this system does not have the tier `{name}`; it has {}",
                            names.join(" and ")
                        )));
                    }
                    policy.tier = Some(tier);
                    policy.needs_sandbox = true;
                }
                "network" => policy.hosts = hosts(item).map_err(|error| problem(&error))?,
                "escalation" => {
                    policy.escalation = item.as_bool().ok_or_else(|| problem("it must be true or false"))?;
                    policy.needs_sandbox |= !policy.escalation;
                }
                "env" => {
                    policy.env = strings(item).ok_or_else(|| problem("it must be a list of strings"))?;
                    if let Some(name) = policy.env.iter().find(|name| !is_name(name)) {
                        return Err(problem(&format!(
                            "{name:?} is no name of a variable: that has letters, digits and `_`, and no digit first"
                        )));
                    }
                    if let Some(name) = policy.env.iter().find(|name| is_reserved(name)) {
                        return Err(problem(&format!("{name:?} can't be passed to commands")));
                    }
                }
                "caches" => {
                    policy.caches = folders(item, home).map_err(|error| problem(&error))?;
                    if let Some(cache) = policy.caches.iter().find(|cache| holds_programs(cache, home)) {
                        return Err(problem(&format!(
                            "{} holds programs, settings or credentials; name the folder of the packages in it",
                            cache.display()
                        )));
                    }
                }
                "roots" => {
                    let table = item
                        .as_table()
                        .ok_or_else(|| problem("it must be a section: `[roots]`"))?;
                    for (key, item) in entries(table) {
                        let problem =
                            |problem: &str| at(text, key.span.clone(), &format!("`roots.{}`: {problem}", key.name));
                        let list = match key.name.as_str() {
                            "rw" => &mut policy.writable,
                            "ro" => &mut policy.readable,
                            _ => return Err(problem("there is no such key; `roots` has `rw` and `ro`")),
                        };
                        *list = folders(item, home).map_err(|error| problem(&error))?;
                    }
                }
                "limits" => policy.read_limits(item, text, &problem)?,
                _ => {
                    return Err(problem(
                        "there is no such key; there are `sandbox`, `tier`, `network`, `escalation`, `env`, `caches`, `limits` and `roots`",
                    ));
                }
            }
        }
        policy.check_hosts(&document, text)?;
        if let (Some(Profile::Off), Some(_)) = (policy.sandbox, policy.tier) {
            let span = document.as_table().key("tier").and_then(toml_edit::Key::span);
            return Err(at(
                text,
                span,
                "`tier`: with `sandbox = \"off\"` no tier is used; remove one of the two",
            ));
        }
        Ok(policy)
    }

    fn read_limits(&mut self, item: &Item, text: &str, problem: &dyn Fn(&str) -> String) -> Result<(), String> {
        let table = item
            .as_table()
            .ok_or_else(|| problem("it must be a section: `[limits]`"))?;
        for (key, item) in entries(table) {
            let problem = |problem: &str| at(text, key.span.clone(), &format!("`limits.{}`: {problem}", key.name));
            let within = |range: RangeInclusive<i64>| {
                let number = item.as_integer().filter(|number| range.contains(number));
                number.ok_or_else(|| {
                    problem(&format!(
                        "it must be a whole number from {} to {}",
                        range.start(),
                        range.end()
                    ))
                })
            };
            match key.name.as_str() {
                "memory_mib" => self.memory_mib = u64::try_from(within(MEMORY_MIB)?).ok(),
                "processes" => self.processes = usize::try_from(within(PROCESSES)?).ok(),
                _ => {
                    return Err(problem(
                        "there is no such key; `limits` has `memory_mib` and `processes`",
                    ));
                }
            }
        }
        Ok(())
    }

    /// What one command may use. Absent: this system does not tell what a command uses.
    pub fn limits(&self) -> Option<CommandLimits> {
        let default = CommandLimits::for_machine(machine_memory_bytes()?);
        Some(CommandLimits {
            memory_bytes: self.memory_mib.map_or(default.memory_bytes, |mib| mib << 20),
            processes: self.processes.unwrap_or(default.processes),
        })
    }

    /// What supervises commands. `program`: `gsv`.
    pub fn supervisor(&self, program: &Path) -> Supervisor {
        Supervisor::Program {
            program: program.to_owned(),
            args: vec![SUPERVISE.into()],
            limits: self.limits(),
        }
    }

    /// The sandbox of commands. `own`: its own folder, outside GSV's private ones; `program`: `gsv`.
    #[must_use]
    pub fn sandbox_settings(self, home: PathBuf, own: PathBuf, program: PathBuf) -> SandboxSettings {
        SandboxSettings {
            profile: self.sandbox.unwrap_or(Profile::Workspace),
            tier: self.tier,
            is_required: self.needs_sandbox,
            may_leave: self.escalation,
            writable: self.writable,
            readable: self.readable,
            caches: self.caches,
            hosts: self.hosts,
            env: self.env,
            home,
            own,
            program: Program {
                path: program,
                confine: CONFINE.into(),
                canary: CANARY.into(),
            },
        }
    }

    /// A list that no command could use is a mistake.
    fn check_hosts(&self, document: &Document<&str>, text: &str) -> Result<(), String> {
        let span = document.as_table().key("network").and_then(toml_edit::Key::span);
        let problem = match (self.sandbox, self.hosts.as_deref()) {
            (Some(Profile::WorkspaceNet), None) => "with `sandbox = \"workspace+net\"` it must be a list of hosts",
            (Some(Profile::Strict), Some([_, ..])) => "commands have no network in `strict`; use `workspace+net`",
            _ => return Ok(()),
        };
        Err(at(text, span, &format!("`network`: {problem}")))
    }
}

struct Key {
    name: String,
    span: Option<Range<usize>>,
}

fn entries(table: &Table) -> impl Iterator<Item = (Key, &Item)> {
    table.iter().map(|(name, item)| {
        let span = table.key(name).and_then(toml_edit::Key::span);
        let key = Key {
            name: name.to_owned(),
            span: span.or_else(|| item.span()),
        };
        (key, item)
    })
}

fn at(text: &str, span: Option<Range<usize>>, problem: &str) -> String {
    let Some(before) = span.and_then(|span| text.get(..span.start)) else {
        return problem.to_owned();
    };
    format!("line {}: {problem}", before.matches('\n').count() + 1)
}

fn strings(item: &Item) -> Option<Vec<String>> {
    let values = item.as_array()?.iter();
    values.map(|value| value.as_str().map(str::to_owned)).collect()
}

/// `"none"`, or a list.
fn hosts(item: &Item) -> Result<Option<Vec<HostRule>>, String> {
    if item.as_str() == Some("none") {
        return Ok(None);
    }
    let names = strings(item).ok_or("it must be a list of hosts, or \"none\"")?;
    if names.len() > HOSTS {
        return Err(format!("it has more than {HOSTS} hosts"));
    }
    names
        .iter()
        .map(|name| HostRule::parse(name))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn folders(item: &Item, home: &Path) -> Result<Vec<PathBuf>, String> {
    let names = strings(item).ok_or("it must be a list of strings")?;
    if names.len() > FOLDERS {
        return Err(format!("it has more than {FOLDERS} folders"));
    }
    names
        .iter()
        .map(|name| expand(name, home).ok_or_else(|| format!("{name:?} must begin with `/` or `~/`")))
        .collect()
}

fn expand(name: &str, home: &Path) -> Option<PathBuf> {
    match name.strip_prefix("~/") {
        Some(rest) => Some(home.join(rest)),
        None => Some(PathBuf::from(name)).filter(|path| path.is_absolute()),
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What no command may write, because the user's own programs run or obey it.
fn holds_programs(cache: &Path, home: &Path) -> bool {
    const NEVER: [&str; 14] = [
        ".cargo/bin",
        ".cargo/config.toml",
        ".cargo/credentials.toml",
        ".rustup",
        ".npmrc",
        ".npm/_npx",
        ".local/bin",
        ".local/share/applications",
        ".config",
        ".gradle/gradle.properties",
        ".gradle/init.d",
        ".m2/settings.xml",
        "go/bin",
        ".profile",
    ];
    let is_bin = cache.components().any(|part| part.as_os_str() == "bin");
    is_bin
        || NEVER
            .iter()
            .map(|name| home.join(name))
            .any(|never| never.starts_with(cache) || cache.starts_with(&never))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEATBELT: &str = "tier = \"seatbelt\"";
    const LANDLOCK: &str = "tier = \"landlock\"";
    const TIER: &str = if cfg!(target_os = "macos") { SEATBELT } else { LANDLOCK };
    const OTHER_TIER: &str = if cfg!(target_os = "macos") { LANDLOCK } else { SEATBELT };

    fn parse(text: &str) -> Result<NodePolicy, String> {
        NodePolicy::parse(text, Path::new("/home/u"))
    }

    #[test]
    fn sb11_an_empty_policy_names_no_profile_and_has_the_default_caches() {
        let policy = parse("").unwrap();
        assert_eq!(
            (policy.sandbox, policy.escalation, policy.hosts.clone()),
            (None, true, Some(vec![]))
        );
        assert!(policy.caches.contains(&PathBuf::from("/home/u/.cargo/registry")));
        assert!(
            !policy
                .caches
                .iter()
                .any(|cache| holds_programs(cache, Path::new("/home/u")))
        );
    }

    #[test]
    fn sb11_every_key_is_read() {
        let text = "sandbox = \"workspace+net\"\nnetwork = [\"crates.io\", \"*.npmjs.org\", \"localhost:3000\"]\nescalation = false\nenv = [\"MINE\"]\ncaches = [\"/srv/cache\"]\n[limits]\nmemory_mib = 512\nprocesses = 100\n[roots]\nrw = [\"~/data\"]\nro = [\"/srv\"]\n";
        let hosts = ["crates.io", "*.npmjs.org", "localhost:3000"];
        let hosts = hosts.map(|host| HostRule::parse(host).unwrap()).to_vec();
        let want = NodePolicy {
            sandbox: Some(Profile::WorkspaceNet),
            tier: None,
            hosts: Some(hosts),
            escalation: false,
            memory_mib: Some(512),
            processes: Some(100),
            writable: vec!["/home/u/data".into()],
            readable: vec!["/srv".into()],
            caches: vec!["/srv/cache".into()],
            env: vec!["MINE".into()],
            needs_sandbox: true,
        };
        assert_eq!(parse(text), Ok(want));
        for text in [
            "sandbox = \"strict\"",
            "[roots]\nro = [\"/srv\"]",
            "caches = []",
            "escalation = false",
            TIER,
        ] {
            assert!(parse(text).unwrap().needs_sandbox, "{text}");
        }
        for text in [
            "",
            "env = [\"A\"]",
            "escalation = true",
            "network = [\"a.org\"]",
            "[limits]\nprocesses = 100",
        ] {
            assert!(!parse(text).unwrap().needs_sandbox, "{text}");
        }
    }

    #[test]
    fn sb11_a_mistake_is_refused_with_its_line() {
        for (text, line, word) in [
            ("\nsandbax = \"off\"", 2, "`sandbox`"),
            ("sandbox = true", 1, "string"),
            ("\ntier = \"best\"", 2, "`landlock`"),
            ("tier = 1", 1, "string"),
            (&format!("sandbox = \"off\"\n{TIER}"), 2, "no tier is used"),
            ("network = [1]", 1, "list"),
            ("network = \"all\"", 1, "\"none\""),
            ("\nnetwork = [\"http://a.org\"]", 2, "`*.example.org`"),
            ("network = [\"*\"]", 1, "no host"),
            ("network = [\"*.org\"]", 1, "too many"),
            ("network = \"none\"\nsandbox = \"workspace+net\"", 1, "list of hosts"),
            ("sandbox = \"strict\"\nnetwork = [\"a.org\"]", 2, "`workspace+net`"),
            ("sandbox = \"on\"", 1, "`strict`"),
            ("escalation = \"no\"", 1, "true or false"),
            ("limits = 5", 1, "section"),
            ("[limits]\nmemory = 512", 2, "`memory_mib`"),
            ("[limits]\nmemory_mib = \"4 GiB\"", 2, "from 64 to"),
            ("[limits]\n\nmemory_mib = 63", 3, "from 64 to"),
            ("[limits]\nprocesses = 15", 2, "from 16 to"),
            ("[limits]\nprocesses = 4194305", 2, "from 16 to"),
            ("env = \"A\"", 1, "list"),
            ("env = [1]", 1, "list"),
            ("env = [\"GSV_TOKEN\"]", 1, "can't be passed"),
            ("\nenv = [\"A\", \"1x\"]", 2, "\"1x\" is no name of a variable"),
            ("env = [\"A=B\"]", 1, "no name of a variable"),
            (OTHER_TIER, 1, "this system does not have the tier"),
            ("caches = [\"~/.cargo\"]", 1, "programs"),
            ("caches = [\"~/go/bin\"]", 1, "programs"),
            ("caches = [\"relative\"]", 1, "`/`"),
            ("roots = []", 1, "section"),
            ("[roots]\nrx = []", 2, "`rw`"),
            ("[roots]\n\nrw = \"/x\"", 3, "list"),
            ("sandbox = \"off\nx = 1", 1, ""),
            ("sandbox = \"off\"\nsandbox = \"off\"", 2, "duplicate"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.starts_with(&format!("line {line}: ")), "{text}: {problem}");
            assert!(problem.contains(word), "{text}: {problem}");
        }
    }
}
