//! What a call of Bash or Process asks of the sandbox: to leave it, or hosts. Checks that against what the owner of the machine allows.

use gsv_sandbox::{HostRule, Profile};
use serde::Deserialize;

use super::sessions::Sessions;
use crate::error::ToolError;
use crate::limits;

/// The argument `sandbox` of Bash and Process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Asked {
    #[serde(rename = "off")]
    Off,
    #[serde(rename = "workspace+net")]
    Hosts,
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

    /// Whether a call may ask for hosts.
    pub(crate) fn may_ask_hosts(&self) -> bool {
        self.sandbox()
            .is_some_and(|sandbox| sandbox.may_leave && sandbox.network.is_some())
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
            Some(_) => {
                "the sandbox of this machine can't let commands reach single hosts, or its owner forbids it (`gsv node sandbox` tells); for a command that needs the network, set `sandbox` to `off` and leave `hosts` out, which the user is asked about"
            }
        }
    }

    fn host(&self, text: &str) -> Result<HostRule, ToolError> {
        let rule = HostRule::parse(text).map_err(|problem| ToolError::bad_args("hosts", problem))?;
        if rule.is_address() && !self.listed().contains(&rule) {
            return Err(ToolError::bad_args(
                "hosts",
                "an address can be reached only when the owner of the machine has listed it (`network` in node.toml); name a host",
            ));
        }
        Ok(rule)
    }
}
