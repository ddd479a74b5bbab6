//! The profile for `sandbox-exec` of macOS. PURE. It was never run yet: `gsv node sandbox` tests it on the machine.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::plan::Plan;
use crate::protect::Protected;

pub(crate) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Later rules win.
pub(crate) fn profile(plan: &Plan, hidden: &[PathBuf], protected: &Protected) -> String {
    let mut text = String::from("(version 1)\n(deny default)\n(import \"system.sb\")\n");
    text.push_str("(allow process-fork process-exec*)\n(allow signal (target same-sandbox))\n(allow sysctl-read)\n");
    text.push_str("(allow file-ioctl (literal \"/dev/tty\"))\n");
    match &plan.readable {
        None => text.push_str("(allow file-read*)\n"),
        Some(readable) => {
            text.push_str("(allow file-read-metadata)\n");
            for path in readable.iter().chain(&plan.program) {
                rule(&mut text, "allow file-read*", path);
            }
        }
    }
    for path in ["/dev/null", "/dev/zero", "/dev/tty"] {
        let _ = writeln!(text, "(allow file-write* (literal {}))", quoted(Path::new(path)));
    }
    let in_folders = if plan.read_only {
        "allow file-read*"
    } else {
        "allow file-read* file-write*"
    };
    for path in &plan.writable {
        rule(&mut text, in_folders, path);
    }
    for path in protected.read_only.iter().chain(&protected.missing) {
        rule(&mut text, "deny file-write*", path);
    }
    for path in &protected.pinned {
        let _ = writeln!(text, "(deny file-write-unlink (literal {}))", quoted(path));
    }
    for path in hidden {
        rule(&mut text, "deny file-read* file-write*", path);
    }
    text.push_str("(deny network*)\n");
    text
}

fn rule(text: &mut String, what: &str, path: &Path) {
    let _ = writeln!(text, "({what} (subpath {}))", quoted(path));
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    #[test]
    fn sb6_hidden_and_protected_paths_come_after_what_is_allowed() {
        let plan = Plan {
            profile: Profile::Workspace,
            workspace: "/ws".into(),
            roots: vec![],
            writable: vec!["/ws".into()],
            readable: None,
            hidden: vec![PathBuf::from("/Users/u/a \"b\"")],
            own: "/own".into(),
            homes: vec![],
            program: None,
            read_only: false,
        };
        let protected = Protected {
            pinned: vec!["/ws/.git".into()],
            read_only: vec!["/ws/.git/hooks".into()],
            missing: vec![],
            ..Protected::default()
        };
        let text = profile(&plan, &plan.hidden, &protected);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
        assert!(text.starts_with("(version 1)\n(deny default)\n"));
        assert!(at("(allow file-read*)") < at("(subpath \"/ws\")"));
        assert!(at("(subpath \"/ws\")") < at("(deny file-write* (subpath \"/ws/.git/hooks\"))"));
        assert!(at("hooks") < at(r#"(deny file-read* file-write* (subpath "/Users/u/a \"b\""))"#));
        assert!(text.ends_with("(deny network*)\n"));
    }
}
