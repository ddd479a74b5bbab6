//! The profile for `sandbox-exec` of macOS. PURE. It was never run yet: `gsv node sandbox` tests it on the machine.

use std::fmt::Write as _;
use std::path::Path;

use crate::look::Look;
use crate::plan::Plan;
use crate::protect::protected;

pub(crate) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The profile of a command in the folder `workdir`.
///
/// # Errors
/// A sentence: what must be hidden or protected can't all be found.
pub(crate) fn profile(plan: &Plan, workdir: &Path, look: &dyn Look) -> Result<String, String> {
    // A hidden path may be a link, and one that is missing may be made.
    let mut hidden = plan.hidden.clone();
    hidden.extend(plan.hidden_now(look)?);
    let (protected, _) = protected(&plan.searched(), &plan.writable, &plan.homes, workdir, look)?;
    // Later rules win.
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
    for path in &hidden {
        rule(&mut text, "deny file-read* file-write*", path);
    }
    text.push_str("(deny network*)\n");
    Ok(text)
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
    use std::path::PathBuf;

    use super::*;
    use crate::look::fake::Fake;
    use crate::profile::Profile;

    fn plan(hidden: &[&str]) -> Plan {
        Plan {
            profile: Profile::Workspace,
            workspace: "/ws".into(),
            roots: vec![],
            writable: vec!["/ws".into()],
            readable: None,
            hidden: hidden.iter().map(PathBuf::from).collect(),
            own: "/own".into(),
            homes: vec![],
            program: None,
            read_only: false,
        }
    }

    #[test]
    fn sb6_hidden_and_protected_paths_come_after_what_is_allowed() {
        let disk = Fake::of(&["/ws/.git/hooks/pre-commit"]);
        let text = profile(&plan(&["/Users/u/a \"b\""]), Path::new("/ws"), &disk).unwrap();
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
        assert!(text.starts_with("(version 1)\n(deny default)\n"));
        assert!(at("(allow file-read*)") < at("(subpath \"/ws\")"));
        assert!(at("(subpath \"/ws\")") < at("(deny file-write* (subpath \"/ws/.git/hooks\"))"));
        assert!(at("hooks") < at(r#"(deny file-read* file-write* (subpath "/Users/u/a \"b\""))"#));
        assert!(
            text.contains("(deny file-write-unlink (literal \"/ws/.git\"))"),
            "{text}"
        );
        assert!(text.ends_with("(deny network*)\n"));
    }

    #[test]
    fn sb3_a_hidden_link_is_hidden_with_what_it_leads_to_and_a_missing_path_before_it_is_made() {
        let disk = Fake::of(&["/ws/", "/Volumes/keys/ssh/id"]).link("/Users/u/.ssh", "/Volumes/keys/ssh");
        let text = profile(&plan(&["/Users/u/.ssh", "/Users/u/.netrc"]), Path::new("/ws"), &disk).unwrap();
        for path in ["/Users/u/.ssh", "/Volumes/keys/ssh", "/Users/u/.netrc"] {
            let rule = format!("(deny file-read* file-write* (subpath \"{path}\"))");
            assert!(text.contains(&rule), "{path}: {text}");
        }
    }
}
