//! What a call of Bash or Process asks of the sandbox: to leave it, or hosts. Checks that against what the owner of the machine allows.

use std::path::PathBuf;

use gsv_sandbox::{HostRule, MayAsk, Profile, Tier};
use serde::Deserialize;

use super::sessions::Sessions;
use crate::error::ToolError;
use crate::limits;
use crate::temporary::Temporary;

/// The argument `sandbox` of Bash and Process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Asked {
    #[serde(rename = "off")]
    Off,
    #[serde(rename = "workspace+net")]
    Hosts,
    /// The command changes nothing. The gateway asks for it, for conditions of a heartbeat; models are not offered it.
    #[serde(rename = "read-only")]
    ReadOnly,
}

impl Sessions {
    /// The profile that commands run in.
    pub(crate) fn profile(&self) -> Profile {
        self.sandbox().map_or(Profile::Off, |sandbox| sandbox.level.profile)
    }

    /// Whether a call may ask for a command outside the sandbox.
    pub(crate) fn may_leave(&self) -> bool {
        self.sandbox().is_some_and(|sandbox| sandbox.may_leave)
    }

    /// Checks what a call asks for about the sandbox. True: it is meant for a command outside it.
    pub(crate) fn leaves(&self, asked: Option<Asked>) -> Result<bool, ToolError> {
        match asked {
            Some(Asked::Off) if self.sandbox().is_some() && !self.may_leave() => Err(ToolError::bad_args(
                "sandbox",
                "the owner of this machine lets no command leave the sandbox (`escalation` in node.toml)",
            )),
            asked => Ok(asked == Some(Asked::Off)),
        }
    }

    /// Whether a call asks for a command that changes nothing. Only a sandbox can keep that.
    pub(crate) fn reads_only(&self, asked: Option<Asked>) -> Result<bool, ToolError> {
        match asked {
            Some(Asked::ReadOnly) if self.sandbox().is_none() => Err(ToolError::bad_args(
                "sandbox",
                "this machine has no sandbox, so that nothing keeps a command from changing files; `gsv node sandbox` tells why",
            )),
            asked => Ok(asked == Some(Asked::ReadOnly)),
        }
    }

    /// The folders for temporary files of a command. `outside`: it is meant to run outside the sandbox.
    pub(crate) fn temporary(&self, outside: bool) -> Vec<Temporary> {
        let sandbox = self.sandbox().filter(|_| !outside);
        let own = match sandbox {
            Some(sandbox) => sandbox.variable("TMPDIR"),
            None => std::env::var_os("TMPDIR"),
        };
        let own = own.map(PathBuf::from);
        let shared = match sandbox {
            // It has no other.
            Some(sandbox) if sandbox.level.tier == Tier::Bubblewrap => {
                own.iter().map(|own| ("/tmp/", own.clone())).collect()
            }
            _ => ["/tmp/", "/var/tmp/", "/private/tmp/", "/private/var/tmp/"]
                .map(|folder| (folder, PathBuf::from(folder)))
                .to_vec(),
        };
        let named = ["$TMPDIR/", "${TMPDIR}/"].into_iter().zip(own.iter().cycle().cloned());
        shared
            .into_iter()
            .chain(named)
            .map(|(written, real)| Temporary { written, real })
            .collect()
    }

    /// Folders in which deletions are asked about, wherever they lie.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        self.sandbox().map(|sandbox| sandbox.roots.clone()).unwrap_or_default()
    }

    /// Whether a call may ask for hosts.
    pub(crate) fn may_ask_hosts(&self) -> bool {
        self.sandbox()
            .is_some_and(|sandbox| sandbox.may_ask() == MayAsk::OffOrHosts)
    }

    /// Whether the owner of the machine lets no command reach a host.
    pub(crate) fn forbids_hosts(&self) -> bool {
        self.sandbox().is_some_and(|sandbox| sandbox.forbids_hosts)
    }

    /// The hosts that every command may reach.
    pub(crate) fn listed(&self) -> &[HostRule] {
        let network = self.sandbox().and_then(|sandbox| sandbox.network.as_ref());
        network.map_or(&[], |network| &network.listed)
    }

    /// Checks the hosts that a call asks for.
    pub(crate) fn hosts(&self, asked: Option<Asked>, hosts: Option<&[String]>) -> Result<Vec<HostRule>, ToolError> {
        if asked != Some(Asked::Hosts) {
            return match hosts {
                None => Ok(Vec::new()),
                Some(_) => Err(ToolError::bad_args(
                    "hosts",
                    "it needs `sandbox` set to `workspace+net`",
                )),
            };
        }
        if !self.may_ask_hosts() {
            return Err(ToolError::bad_args("sandbox", self.no_hosts()));
        }
        let hosts = hosts.unwrap_or_default();
        if hosts.is_empty() || hosts.len() > limits::HOSTS {
            return Err(ToolError::bad_args(
                "hosts",
                "name 1 to 20 hosts, as in [\"example.org\"]",
            ));
        }
        hosts.iter().map(|host| self.host(host)).collect()
    }

    fn no_hosts(&self) -> &'static str {
        match self.sandbox() {
            None => "this machine has no sandbox, so commands reach every host; leave `sandbox` and `hosts` out",
            Some(sandbox) if !sandbox.may_leave => {
                "the owner of this machine lets no command ask for hosts (`escalation` in node.toml)"
            }
            Some(sandbox) if sandbox.forbids_hosts => {
                "the owner of this machine lets commands reach no hosts; do it without the network, or ask the user to change `network = \"none\"` in node.toml and to start the node again"
            }
            Some(_) => {
                "the sandbox of this machine can't let commands reach single hosts (`gsv node sandbox` tells why); for a command that needs the network, set `sandbox` to `off` and leave `hosts` out, which the user is asked about"
            }
        }
    }

    fn host(&self, text: &str) -> Result<HostRule, ToolError> {
        let rule = HostRule::parse(text).map_err(|problem| ToolError::bad_args("hosts", problem))?;
        if rule.needs_owner() && !rule.is_in(self.listed()) {
            return Err(ToolError::bad_args(
                "hosts",
                "an address, or localhost, can be reached only when the owner of the machine has listed it with the same port (`network` in node.toml); name another host",
            ));
        }
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    use gsv_sandbox::{Level, Tier};

    use super::*;
    use crate::exec::{Network, Sandbox, Supervisor};

    fn rule(text: &str) -> HostRule {
        HostRule::parse(text).unwrap()
    }

    fn sessions(sandbox: Option<Sandbox>) -> (tempfile::TempDir, Sessions) {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::new(dir.path(), Supervisor::Shell, None, sandbox, None).unwrap();
        (dir, sessions)
    }

    fn sandbox(may_leave: bool, has_network: bool) -> Sandbox {
        let network = Network {
            listed: vec![rule("10.0.0.7:80"), rule("127.0.0.1:3000")],
        };
        Sandbox {
            level: Level {
                profile: Profile::Workspace,
                tier: Tier::Bubblewrap,
                gaps: vec![],
            },
            wrapper: vec![],
            roots: vec![],
            own_roots: vec![],
            environment: vec![],
            may_leave,
            network: has_network.then_some(network),
            forbids_hosts: false,
        }
    }

    #[test]
    fn sb8_a_command_leaves_the_sandbox_only_where_the_owner_lets_it() {
        let (_dir, none) = sessions(None);
        assert!(none.leaves(Some(Asked::Off)).unwrap(), "there is nothing to leave");
        assert_eq!((none.profile(), none.may_leave()), (Profile::Off, false));
        let (_dir, open) = sessions(Some(sandbox(true, false)));
        assert!(open.leaves(Some(Asked::Off)).unwrap() && open.may_leave());
        assert!(!open.leaves(None).unwrap() && !open.leaves(Some(Asked::Hosts)).unwrap());
        let (_dir, closed) = sessions(Some(sandbox(false, true)));
        assert!(closed.leaves(Some(Asked::Off)).is_err() && !closed.may_leave());
        assert!(!closed.leaves(None).unwrap());
    }

    #[test]
    fn sb21_a_command_that_changes_nothing_needs_a_sandbox() {
        let (_dir, none) = sessions(None);
        let refused = none.reads_only(Some(Asked::ReadOnly)).unwrap_err().to_string();
        assert!(refused.contains("has no sandbox"), "{refused}");
        assert!(!none.reads_only(None).unwrap());
        let (_dir, closed) = sessions(Some(sandbox(false, false)));
        assert!(closed.reads_only(Some(Asked::ReadOnly)).unwrap() && !closed.leaves(Some(Asked::ReadOnly)).unwrap());
        assert!(!closed.reads_only(Some(Asked::Hosts)).unwrap());
    }

    #[test]
    fn sb17_a_call_names_1_to_20_hosts_where_hosts_can_be_asked_for() {
        let names = |count: usize| (0..count).map(|at| format!("h{at}.org")).collect::<Vec<_>>();
        let (_dir, open) = sessions(Some(sandbox(true, true)));
        let ask = |hosts: &[String]| open.hosts(Some(Asked::Hosts), Some(hosts));
        assert_eq!(ask(&names(20)).unwrap().len(), 20);
        for count in [0, 21] {
            let refused = ask(&names(count)).unwrap_err().to_string();
            assert!(refused.contains("1 to 20 hosts"), "{refused}");
        }
        assert!(open.hosts(Some(Asked::Hosts), None).is_err());
        assert!(open.hosts(None, Some(&names(1))).is_err() && open.hosts(Some(Asked::Off), Some(&names(1))).is_err());
        assert_eq!(open.hosts(None, None).unwrap(), []);
        assert_eq!(ask(&["10.0.0.7:80".into()]).unwrap(), [rule("10.0.0.7:80")]);
        assert_eq!(ask(&["localhost:3000".into()]).unwrap(), [rule("localhost:3000")]);
        for host in [
            "10.0.0.8:80",
            "10.0.0.7",
            "[::1]:80",
            "localhost",
            "LOCALHOST.:3001",
            "a.localhost:80",
        ] {
            let refused = ask(&[host.into()]).unwrap_err().to_string();
            assert!(
                refused.contains("has listed it with the same port"),
                "{host}: {refused}"
            );
        }
        let forbidding = Sandbox {
            forbids_hosts: true,
            ..sandbox(true, false)
        };
        for (other, why) in [
            (None, "this machine has no sandbox"),
            (Some(sandbox(false, true)), "`escalation` in node.toml"),
            (Some(sandbox(true, false)), "can't let commands reach single hosts"),
            (Some(forbidding), "change `network = \"none\"` in node.toml"),
        ] {
            let (_dir, sessions) = sessions(other);
            let refused = sessions
                .hosts(Some(Asked::Hosts), Some(&names(1)))
                .unwrap_err()
                .to_string();
            assert!(refused.contains(why), "{refused}");
            assert!(!why.contains("network") || !refused.contains("`off`"), "{refused}");
        }
    }
}
