//! Recognises in the output of a failed command what the sandbox has stopped. PURE.

use crate::profile::Profile;

/// Begins the sentence about a command that was not run. The sandbox has stopped nothing then, and the command needs no way out of it.
pub(crate) const NOT_SET_UP: &str = "[GSV: the sandbox can't be set up: ";

const NETWORK: &[&str] = &[
    "network is unreachable",
    "could not resolve host",
    "couldn't resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "failed to lookup address",
    "getaddrinfo",
    "eai_again",
    "no route to host",
    "socket: operation not permitted",
    "nodename nor servname",
    "dial tcp",
];
const FILES: &[&str] = &[
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "device or resource busy",
    "erofs",
    "eacces",
    "eperm",
];

/// A sentence for the model, when the end of a failed command's output looks like the sandbox.
/// `may_leave`: a call may ask for a command outside the sandbox.
pub fn explain(profile: Profile, may_leave: bool, refused: &[String], output: &str) -> Option<String> {
    if profile == Profile::Off || output.contains(NOT_SET_UP) {
        return None;
    }
    if !refused.is_empty() {
        return Some(hosts(may_leave, refused));
    }
    let output = output.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| output.contains(word));
    let (limit, setting) = if has(NETWORK) {
        let limit = match profile {
            Profile::WorkspaceNet => {
                "has no network but the hosts that are allowed, through the proxy that HTTP_PROXY names"
            }
            _ => "has no network",
        };
        (limit, "`sandbox`")
    } else if !has(FILES) {
        return None;
    } else if profile == Profile::Strict {
        (
            "lets commands read only the workspace and the system, write only the workspace and $TMPDIR, and use no network",
            "`sandbox` or `roots`",
        )
    } else {
        (
            "lets commands write only the workspace (without git hooks, git configuration, shell and editor files) and $TMPDIR",
            "`sandbox` or `roots`",
        )
    };
    let advice = if may_leave {
        "if it needs that, call Bash again with `sandbox` set to `off`; the user is asked first".to_owned()
    } else {
        format!("ask the user to run it, or to change {setting} in node.toml")
    };
    Some(format!(
        "the sandbox of this node {limit}, which may be why the command failed; {advice}"
    ))
}

/// What the proxy has refused, and how to ask for it.
fn hosts(may_leave: bool, refused: &[String]) -> String {
    let names = refused.join(", ");
    let advice = if may_leave {
        let list: Vec<String> = refused.iter().map(|host| format!("\"{host}\"")).collect();
        format!(
            "if it needs that, call Bash again with `sandbox` set to `workspace+net` and `hosts` set to [{}]; the user is asked first",
            list.join(", ")
        )
    } else {
        "ask the user to add what it needs to `network` in node.toml".to_owned()
    };
    format!("the sandbox of this node did not let the command reach {names}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let found = explain(Profile::Workspace, false, &[], output);
            assert!(
                found
                    .as_ref()
                    .is_some_and(|text| text.contains(word) && text.contains("node.toml")),
                "{output}: {found:?}"
            );
            assert_eq!(explain(Profile::Off, true, &[], output), None);
            let found = explain(Profile::Workspace, true, &[], output);
            assert!(
                found.is_some_and(|text| text.contains(word) && text.contains("set to `off`")),
                "{output}"
            );
        }
        assert_eq!(explain(Profile::Workspace, true, &[], "error: mismatched types"), None);
        let unmade = "[GSV: the sandbox can't be set up: bwrap: Can't mkdir parents for /x: Read-only file system. The command was not run.]";
        assert_eq!(explain(Profile::Workspace, true, &[], unmade), None);
        assert!(
            explain(Profile::Strict, false, &[], "Permission denied")
                .is_some_and(|text| text.contains("read only the workspace"))
        );
        assert!(
            explain(Profile::WorkspaceNet, false, &[], "Permission denied")
                .is_some_and(|text| text.contains("and $TMPDIR, which") && !text.contains("network"))
        );
    }

    #[test]
    fn sb9_refused_hosts_are_named_with_how_to_ask_for_them() {
        let refused = ["example.org".to_owned(), "a.org:8080".to_owned()];
        let text = explain(Profile::Workspace, true, &refused, "response 403").unwrap();
        assert!(text.contains("reach example.org, a.org:8080;"), "{text}");
        assert!(
            text.contains("`hosts` set to [\"example.org\", \"a.org:8080\"]"),
            "{text}"
        );
        let text = explain(Profile::WorkspaceNet, false, &refused, "").unwrap();
        assert!(
            text.contains("`network` in node.toml") && !text.contains("`hosts`"),
            "{text}"
        );
        assert_eq!(explain(Profile::Off, true, &refused, ""), None);
    }
}
