//! Recognises in the output of a failed command what the sandbox has stopped. PURE.

use serde::{Deserialize, Serialize};

use crate::profile::Profile;

/// Begins the sentence about a command that was not run. The sandbox has stopped nothing then, and the command needs no way out of it.
pub(crate) const NOT_SET_UP: &str = "[GSV: the sandbox can't be set up: ";
/// Follows the name of the program in the sentence about a command whose program the sandbox does not start.
pub(crate) const NO_PROGRAM: &str = " can't be started in the sandbox: ";

/// Names of hosts that were not resolved.
const UNRESOLVED: &[&str] = &[
    "could not resolve host",
    "couldn't resolve host",
    "unable to resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "failed to lookup address",
    "getaddrinfo",
    "eai_again",
    "enotfound",
    "nodename nor servname",
    "no such host",
    "dial tcp: lookup ",
];
const NETWORK: &[&str] = &[
    "network is unreachable",
    "no route to host",
    "socket: operation not permitted",
    "dial tcp",
];
/// Connections that were not made. Only with a name of this machine in the same line do they point to the sandbox.
const UNCONNECTED: &[&str] = &[
    "connection refused",
    "econnrefused",
    "failed to connect to",
    "could not connect to",
    "couldn't connect to",
    "can't connect to",
    "cannot connect to",
    "unable to connect to",
];
const THIS_MACHINE: &[&str] = &["localhost", "127.0.0.1", "::1"];
const FILES: &[&str] = &[
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "device or resource busy",
    "erofs",
    "eacces",
    "eperm",
];

/// What calls of a node may ask for. Hosts can be asked for only where a command outside the sandbox can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MayAsk {
    #[default]
    Nothing,
    /// A command outside the sandbox.
    Off,
    /// Also hosts for a command in the sandbox.
    OffOrHosts,
}

/// What the call of a command may ask for, and what it asked for. Stored with the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Escalation {
    pub may_ask: MayAsk,
    /// The call has asked for hosts.
    pub has_hosts: bool,
    /// The owner of the machine lets no command reach a host (`network = "none"`).
    pub forbids_hosts: bool,
}

/// [`Escalation`] in `meta.json` of a command. A node of another version may read it, so the fields stay.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the form of a record that other versions read"
)]
struct Stored {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_leave: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_ask_hosts: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_hosts: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    forbids_hosts: bool,
}

impl From<Stored> for Escalation {
    fn from(stored: Stored) -> Self {
        let may_ask = match (stored.may_leave, stored.may_ask_hosts) {
            (false, _) => MayAsk::Nothing,
            (true, false) => MayAsk::Off,
            (true, true) => MayAsk::OffOrHosts,
        };
        Self {
            may_ask,
            has_hosts: stored.has_hosts,
            forbids_hosts: stored.forbids_hosts,
        }
    }
}

impl From<Escalation> for Stored {
    fn from(escalation: Escalation) -> Self {
        Self {
            may_leave: escalation.may_ask != MayAsk::Nothing,
            may_ask_hosts: escalation.may_ask == MayAsk::OffOrHosts,
            has_hosts: escalation.has_hosts,
            forbids_hosts: escalation.forbids_hosts,
        }
    }
}

/// A sentence for the model, when the end of a failed command's output looks like the sandbox.
pub fn explain(profile: Profile, escalation: Escalation, refused: &[String], output: &str) -> Option<String> {
    if profile == Profile::Off || [NOT_SET_UP, NO_PROGRAM].iter().any(|text| output.contains(text)) {
        return None;
    }
    let Escalation {
        may_ask,
        has_hosts,
        forbids_hosts,
    } = escalation;
    if !refused.is_empty() {
        return Some(refused_text(profile, may_ask, refused));
    }
    let has_network = profile == Profile::WorkspaceNet || has_hosts;
    let output = output.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| output.contains(word));
    let advice = |setting: &str| {
        if may_ask == MayAsk::Nothing {
            format!("ask the user to run it, or to change {setting} in node.toml and to start the node again")
        } else {
            FOR_ANYTHING.to_owned()
        }
    };
    // A command outside the sandbox would reach every host, which is not what this owner wants.
    let network_advice = || {
        if forbids_hosts {
            FOR_FORBIDDEN_HOSTS.to_owned()
        } else {
            advice("`sandbox`")
        }
    };
    let (limit, advice) = if has(UNRESOLVED) && !has_network {
        let advice = if may_ask == MayAsk::OffOrHosts {
            FOR_NAMES.to_owned()
        } else {
            network_advice()
        };
        ("has no network, so names of hosts do not resolve", advice)
    } else if !has(UNRESOLVED) && profile != Profile::WorkspaceNet && output.lines().any(has_no_server) {
        // A call that has hosts could not name this server, or the program does not use the proxy.
        let advice = if may_ask == MayAsk::OffOrHosts && !has_hosts {
            FOR_LOCALHOST.to_owned()
        } else {
            network_advice()
        };
        ("lets no command reach a server of the machine on localhost", advice)
    } else if has(UNRESOLVED) || has(NETWORK) {
        let limit = if has_network {
            "has no network but the hosts that are allowed, through the proxy that HTTP_PROXY names"
        } else {
            "has no network"
        };
        (limit, network_advice())
    } else if !has(FILES) {
        return None;
    } else if profile == Profile::Strict {
        (
            "lets commands read only the workspace and the system, write only the workspace and $TMPDIR, and use no network",
            advice("`sandbox` or `roots`"),
        )
    } else {
        (
            "lets commands write only the workspace (without existing git hooks, git configuration, shell and editor files) and $TMPDIR",
            advice("`sandbox` or `roots`"),
        )
    };
    Some(format!(
        "the sandbox of this node {limit}, which may be why the command failed; {advice}"
    ))
}

const FOR_ANYTHING: &str = "if it needs that, call Bash again with `sandbox` set to `off`; the user is asked first";

const FOR_FORBIDDEN_HOSTS: &str = "the owner of this machine lets commands reach no hosts: do it without the network, or ask the user to change `network = \"none\"` in node.toml and to start the node again";

/// On localhost a command reaches only servers that it has started; the owner lists further ones (rule SB14).
const FOR_LOCALHOST: &str = "start the server in the same command. For a server that runs already and speaks HTTP, ask the user to list it in `network` of node.toml (as in \"localhost:3000\") and to start the node again, then call Bash again with `sandbox` set to `workspace+net` and `hosts` set to it. For any other server, call Bash again with `sandbox` set to `off`; the user is asked first";

/// How to ask for the host that a command did not find. It names no host of the output, which anyone may have written.
const FOR_NAMES: &str = "if it needs a host by http or https, call Bash again with `sandbox` set to `workspace+net` and `hosts` set to its name, as in [\"example.org\"]; the program must use the proxy that HTTP_PROXY names. For anything else set `sandbox` to `off`. The user is asked first";

/// A line about a connection to this machine that was not made.
fn has_no_server(line: &str) -> bool {
    UNCONNECTED.iter().any(|words| line.contains(words)) && THIS_MACHINE.iter().any(|name| has_whole_name(line, name))
}

/// Whether a line has the name as a whole: not `localhost.example.org`, `127.0.0.10` or `fe80::1`.
fn has_whole_name(line: &str, name: &str) -> bool {
    let goes_on = |char: char| char.is_alphanumeric() || char == '-';
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let mut after = line[at + name.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let begins = before.is_none_or(|char| !goes_on(char) && char != '.');
        // A full stop may end the sentence.
        let is_longer = next.is_some_and(goes_on) || (next == Some('.') && second.is_some_and(goes_on));
        begins && !is_longer
    })
}

/// What the proxy has refused, and how to ask for it. Without a request, commands reach listed hosts only in `workspace+net` (rule SB14).
fn refused_text(profile: Profile, may_ask: MayAsk, refused: &[String]) -> String {
    let names = refused.join(", ");
    let advice = match may_ask {
        MayAsk::OffOrHosts => {
            let list: Vec<String> = refused.iter().map(|host| format!("\"{host}\"")).collect();
            format!(
                "if it needs that, call Bash again with `sandbox` set to `workspace+net` and `hosts` set to [{}]; the user is asked first",
                list.join(", ")
            )
        }
        MayAsk::Off => FOR_ANYTHING.to_owned(),
        MayAsk::Nothing if profile == Profile::WorkspaceNet => {
            "ask the user to add what it needs to `network` in node.toml and to start the node again".to_owned()
        }
        MayAsk::Nothing => "ask the user to set `sandbox = \"workspace+net\"` in node.toml, to list what it needs in `network` of node.toml, and to start the node again".to_owned(),
    };
    format!("the sandbox of this node did not let the command reach {names}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Escalation = Escalation {
        may_ask: MayAsk::Nothing,
        has_hosts: false,
        forbids_hosts: false,
    };
    const LEAVE: Escalation = Escalation {
        may_ask: MayAsk::Off,
        ..NONE
    };
    const HOSTS: Escalation = Escalation {
        may_ask: MayAsk::OffOrHosts,
        ..NONE
    };

    #[test]
    fn sb9_what_a_call_may_ask_for_is_stored_as_in_earlier_versions() {
        /// As in the record of a command.
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Record {
            #[serde(flatten)]
            escalation: Escalation,
        }

        for (text, escalation) in [
            ("{}", NONE),
            (r#"{"mayLeave":true}"#, LEAVE),
            (r#"{"mayLeave":true,"mayAskHosts":true}"#, HOSTS),
            (
                r#"{"mayLeave":true,"mayAskHosts":true,"hasHosts":true}"#,
                Escalation {
                    has_hosts: true,
                    ..HOSTS
                },
            ),
            (
                r#"{"mayLeave":true,"forbidsHosts":true}"#,
                Escalation {
                    forbids_hosts: true,
                    ..LEAVE
                },
            ),
        ] {
            assert_eq!(serde_json::from_str::<Record>(text).unwrap(), Record { escalation });
            assert_eq!(serde_json::to_string(&Record { escalation }).unwrap(), text);
        }
        // No version has written that.
        assert_eq!(
            serde_json::from_str::<Escalation>(r#"{"mayAskHosts":true}"#).unwrap(),
            NONE
        );
    }

    #[test]
    fn sb9_a_name_that_is_not_resolved_is_asked_for_as_a_host_where_calls_may() {
        for output in [
            "curl: (6) Could not resolve host: Example.org\n",
            "fatal: unable to access 'https://a.org/x/': Could not resolve host: a.org",
            "note: resolve host: *.evil.example:8443\ncould not resolve host",
            "Error: getaddrinfo ENOTFOUND registry.npmjs.org",
            "dial tcp: lookup a.org on [::1]:53: read: connection refused",
            "wget: unable to resolve host address 'a.org'",
        ] {
            let found = explain(Profile::Workspace, HOSTS, &[], output).unwrap();
            assert!(
                found.contains("names of hosts do not resolve")
                    && found.contains("`sandbox` set to `workspace+net` and `hosts`")
                    && found.contains("[\"example.org\"]")
                    && !found.contains("evil"),
                "{output}: {found}"
            );
            for profile in [Profile::Workspace, Profile::Strict] {
                let found = explain(profile, LEAVE, &[], output).unwrap();
                assert!(found.contains("set to `off`") && !found.contains("`hosts`"), "{found}");
                let found = explain(profile, NONE, &[], output).unwrap();
                assert!(found.contains("`sandbox` in node.toml"), "{found}");
            }
            // It has hosts, and this program does not use the proxy: to ask for hosts again changes nothing.
            let asked = Escalation {
                has_hosts: true,
                ..HOSTS
            };
            for (profile, escalation) in [(Profile::Workspace, asked), (Profile::WorkspaceNet, HOSTS)] {
                let found = explain(profile, escalation, &[], output).unwrap();
                assert!(
                    found.contains("the proxy that HTTP_PROXY names") && !found.contains("`hosts`"),
                    "{found}"
                );
            }
            assert_eq!(explain(Profile::Off, HOSTS, &[], output), None);
        }
    }

    #[test]
    fn sb9_a_server_on_localhost_that_is_not_reached_has_a_note_and_other_servers_have_none() {
        for output in [
            "curl: (7) Failed to connect to localhost port 3000 after 0 ms: Couldn't connect to server",
            "x\n    Error: connect ECONNREFUSED 127.0.0.1:5432\n    at y",
            "Error: connect ECONNREFUSED ::1:5432",
            "connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused",
            "Could not connect to Redis at 127.0.0.1:6379: Connection refused",
            "bash: line 1: /dev/tcp/127.0.0.1/3999: Connection refused",
            "ERROR 2003 (HY000): Can't connect to MySQL server on 'localhost:3306' (111)",
            "nothing on localhost. Connection refused",
            "dial tcp 127.0.0.1:5432: connect: connection refused",
        ] {
            let found = explain(Profile::Workspace, HOSTS, &[], output).unwrap();
            assert!(
                found.contains("a server of the machine on localhost")
                    && found.contains("in the same command")
                    && found.contains("`network` of node.toml")
                    && found.contains("`workspace+net`"),
                "{output}: {found}"
            );
            for profile in [Profile::Workspace, Profile::Strict] {
                let found = explain(profile, LEAVE, &[], output).unwrap();
                assert!(
                    found.contains("on localhost") && found.contains("set to `off`") && !found.contains("same command"),
                    "{found}"
                );
                let found = explain(profile, NONE, &[], output).unwrap();
                assert!(found.contains("`sandbox` in node.toml"), "{found}");
            }
            let asked = Escalation {
                has_hosts: true,
                ..HOSTS
            };
            let found = explain(Profile::Workspace, asked, &[], output).unwrap();
            assert!(found.contains("on localhost") && !found.contains("`hosts`"), "{found}");
            for profile in [Profile::Off, Profile::WorkspaceNet] {
                let found = explain(profile, HOSTS, &[], output);
                assert!(!found.is_some_and(|found| found.contains("on localhost")), "{output}");
            }
        }
        for output in [
            "Failed to connect to 10.0.0.7 port 80: Connection refused",
            "connect ECONNREFUSED 127.0.0.10:80",
            "connect ECONNREFUSED fe80::1:80",
            "Failed to connect to localhost.example.org port 80",
            "Failed to connect to my-localhost port 80",
            "listening on localhost:3000",
            "connecting to localhost\nto a.org: Connection refused",
        ] {
            assert_eq!(explain(Profile::Workspace, HOSTS, &[], output), None, "{output}");
        }
    }

    #[test]
    fn sb9_where_the_owner_forbids_hosts_the_note_names_that_setting_and_no_way_around_it() {
        for may_ask in [MayAsk::Off, MayAsk::Nothing] {
            let forbidden = Escalation {
                may_ask,
                forbids_hosts: true,
                ..NONE
            };
            for output in [
                "curl: (6) Could not resolve host: example.org",
                "connect: Network is unreachable",
                "connect ECONNREFUSED 127.0.0.1:5432",
            ] {
                let found = explain(Profile::Workspace, forbidden, &[], output).unwrap();
                assert!(
                    found.contains("change `network = \"none\"` in node.toml") && !found.contains("`sandbox`"),
                    "{output}: {found}"
                );
            }
            // Files have nothing to do with the network.
            let found = explain(Profile::Workspace, forbidden, &[], "touch: Read-only file system").unwrap();
            assert!(!found.contains("`network"), "{found}");
        }
    }

    #[test]
    fn sb9_failures_of_the_sandbox_are_recognised_and_others_are_not() {
        for (output, word) in [
            ("curl: (6) Could not resolve host: example.org", "no network"),
            ("npm error code EAI_AGAIN", "no network"),
            ("dial tcp: lookup proxy.golang.org", "no network"),
            ("touch: cannot touch '/etc/x': Read-only file system", "write only"),
            ("bash: /etc/x: Permission denied", "write only"),
            (
                "error: could not write config file .git/config: Device or resource busy",
                "git configuration",
            ),
        ] {
            let found = explain(Profile::Workspace, NONE, &[], output);
            assert!(
                found
                    .as_ref()
                    .is_some_and(|text| text.contains(word) && text.contains("node.toml")),
                "{output}: {found:?}"
            );
            assert_eq!(explain(Profile::Off, LEAVE, &[], output), None);
            let found = explain(Profile::Workspace, LEAVE, &[], output);
            assert!(
                found.is_some_and(|text| text.contains(word) && text.contains("set to `off`")),
                "{output}"
            );
        }
        assert_eq!(explain(Profile::Workspace, LEAVE, &[], "error: mismatched types"), None);
        let unmade = "[GSV: the sandbox can't be set up: bwrap: Can't mkdir parents for /x: Read-only file system. The command was not run.]";
        assert_eq!(explain(Profile::Workspace, LEAVE, &[], unmade), None);
        let unstarted = "[GSV: /opt/zsh can't be started in the sandbox: Permission denied (os error 13). The command was not run.]";
        assert_eq!(explain(Profile::Workspace, LEAVE, &[], unstarted), None);
        assert!(
            explain(Profile::Strict, NONE, &[], "Permission denied")
                .is_some_and(|text| text.contains("read only the workspace"))
        );
        assert!(
            explain(Profile::WorkspaceNet, NONE, &[], "Permission denied")
                .is_some_and(|text| text.contains("and $TMPDIR, which") && !text.contains("network"))
        );
    }

    #[test]
    fn sb9_refused_hosts_are_named_with_how_to_ask_for_them() {
        let refused = ["example.org".to_owned(), "a.org:8080".to_owned()];
        let text = explain(Profile::Workspace, HOSTS, &refused, "response 403").unwrap();
        assert!(text.contains("reach example.org, a.org:8080;"), "{text}");
        assert!(
            text.contains("`hosts` set to [\"example.org\", \"a.org:8080\"]"),
            "{text}"
        );
        let text = explain(Profile::Workspace, LEAVE, &refused, "").unwrap();
        assert!(text.contains("set to `off`") && !text.contains("`hosts`"), "{text}");
        // The owner's list holds without a request only in `workspace+net`.
        let text = explain(Profile::Workspace, NONE, &refused, "").unwrap();
        assert!(
            text.contains("`sandbox = \"workspace+net\"`")
                && text.contains("`network` of node.toml")
                && text.contains("start the node again")
                && !text.contains("`hosts`"),
            "{text}"
        );
        let text = explain(Profile::WorkspaceNet, NONE, &refused, "").unwrap();
        assert!(
            text.contains("`network` in node.toml")
                && text.contains("start the node again")
                && !text.contains("`hosts`")
                && !text.contains("`sandbox"),
            "{text}"
        );
        assert_eq!(explain(Profile::Off, HOSTS, &refused, ""), None);
    }
}
