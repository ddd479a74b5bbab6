//! How commands are confined: the words before the shell, the environment, and the hosts. Knows nothing about how that is enforced.

use std::ffi::OsString;
use std::path::PathBuf;

use gsv_sandbox::{HostRule, Hosts, Level, MayAsk, Profile};

/// Applies to the commands of a node.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The level that was tested on this machine.
    pub level: Level,
    /// A program with its arguments, which the words of [`gsv_sandbox::ConfineOptions`] and the command follow.
    pub wrapper: Vec<OsString>,
    /// The folders that its commands write, besides those for temporary files.
    pub roots: Vec<PathBuf>,
    /// Those of the roots that the owner named: neither the workspace nor caches.
    pub own_roots: Vec<PathBuf>,
    /// The whole environment of a command, except GSV's marks.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether a call may ask for a command outside the sandbox, or for hosts. The gateway asks its owner about each.
    pub may_leave: bool,
    /// Absent: the sandbox has no way to the network.
    pub network: Option<Network>,
    /// It has none because the owner of the machine wants none (`network = "none"`).
    pub forbids_hosts: bool,
}

/// The way of commands to single hosts.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// Listed by the owner of the machine. Each command of the profile `workspace+net` may reach them.
    pub listed: Vec<HostRule>,
}

impl Sandbox {
    /// What a call may ask for.
    pub(crate) fn may_ask(&self) -> MayAsk {
        match &self.network {
            _ if !self.may_leave => MayAsk::Nothing,
            None => MayAsk::Off,
            Some(_) => MayAsk::OffOrHosts,
        }
    }

    /// A variable of its commands.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let (_, value) = self.environment.iter().find(|(each, _)| each == name)?;
        Some(value.clone())
    }

    /// The hosts of one command, whose call asked for `asked`. `None`: there is no way to the network.
    pub(crate) fn hosts(&self, asked: &[HostRule]) -> Option<Hosts> {
        let listed = &self.network.as_ref()?.listed;
        let is_listed = |rule: &&HostRule| listed.contains(rule);
        let mut hosts = Hosts {
            listed: asked.iter().filter(is_listed).cloned().collect(),
            asked: asked.iter().filter(|rule| !is_listed(rule)).cloned().collect(),
        };
        if self.level.profile == Profile::WorkspaceNet {
            hosts.listed.clone_from(listed);
        }
        Some(hosts)
    }
}

#[cfg(test)]
mod tests {
    use gsv_sandbox::{Level, Profile, Tier};

    use super::*;

    #[test]
    fn sb13_sb17_what_a_call_may_ask_for() {
        let may_ask = |may_leave: bool, has_network: bool| {
            let sandbox = Sandbox {
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
                network: has_network.then(Network::default),
                forbids_hosts: false,
            };
            sandbox.may_ask()
        };
        assert_eq!(may_ask(true, true), MayAsk::OffOrHosts);
        assert_eq!(may_ask(true, false), MayAsk::Off);
        assert_eq!(
            (may_ask(false, true), may_ask(false, false)),
            (MayAsk::Nothing, MayAsk::Nothing)
        );
    }

    #[test]
    fn sb14_listed_hosts_are_for_commands_that_ask_for_them_and_for_all_in_workspace_with_net() {
        let rule = |text: &str| HostRule::parse(text).unwrap();
        let sandbox = |profile: Profile, network: Option<Network>| Sandbox {
            level: Level {
                profile,
                tier: Tier::Bubblewrap,
                gaps: vec![],
            },
            wrapper: vec![],
            roots: vec![],
            own_roots: vec![],
            environment: vec![],
            may_leave: true,
            network,
            forbids_hosts: false,
        };
        let network = || {
            Some(Network {
                listed: vec![rule("a.org"), rule("b.org")],
            })
        };
        let asked = [rule("b.org"), rule("c.org")];
        let hosts = sandbox(Profile::Workspace, network()).hosts(&asked).unwrap();
        assert_eq!((hosts.listed, hosts.asked), (vec![rule("b.org")], vec![rule("c.org")]));
        let hosts = sandbox(Profile::WorkspaceNet, network()).hosts(&asked).unwrap();
        assert_eq!(
            (hosts.listed, hosts.asked),
            (vec![rule("a.org"), rule("b.org")], vec![rule("c.org")])
        );
        assert!(sandbox(Profile::WorkspaceNet, None).hosts(&asked).is_none());
    }
}
