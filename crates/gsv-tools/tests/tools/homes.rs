//! [SB5]: what the file tools know about the homes of the user.

use std::fs;
use std::process::{Command, Output};

/// `HOME` may name another home than the list of the system: programs of the user read either, and the sandbox protects both.
#[test]
fn sb5_file_tools_do_not_change_what_git_runs_for_either_home_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["named", "listed", "ws/hooks", "ws/tools"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let ws = root.join("ws");
    let setting = |home: &str, line: &str| fs::write(root.join(home).join(".gitconfig"), format!("[core]\n {line}\n"));
    setting("named", &format!("fsmonitor = {}/tools/watch", ws.display())).unwrap();
    setting("listed", &format!("hooksPath = {}/hooks", ws.display())).unwrap();
    let users = root.join("users");
    fs::write(&users, format!("me:x:0:0::{}:/bin/sh\n", root.join("listed").display())).unwrap();
    fs::write(ws.join("tools/watch"), "own").unwrap();
    let output = with_list_of_users(&users.to_string_lossy(), |command| {
        command
            .args([env!("CARGO_BIN_EXE_gsv-tools-helper"), "__write"])
            .arg(&ws)
            .args(["tools/watch", "hooks/pre-commit", "tools/other"])
            .env("HOME", root.join("named"));
    });
    let Some(output) = output else {
        println!("skipped: this machine does not allow another list of users for a test");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let [watch, hook, other] = lines.as_slice() else {
        panic!("{output:?}");
    };
    for line in [watch, hook] {
        assert!(line.contains("a setting of git names it"), "{line}");
    }
    assert_eq!(*other, "tools/other: written");
    assert!(!ws.join("hooks/pre-commit").exists());
}

/// Runs a program that sees the file `users` as the system's list, and itself as user 0. `None`: the machine does not allow that.
fn with_list_of_users(users: &str, build: impl Fn(&mut Command)) -> Option<Output> {
    let script = "mount --bind \"$USERS\" /etc/passwd && exec \"$@\"";
    let command = || {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", script, "sh"])
            .env("USERS", users);
        command
    };
    let is_allowed = command()
        .arg("true")
        .output()
        .is_ok_and(|output| output.status.success());
    is_allowed.then(|| {
        let mut command = command();
        build(&mut command);
        command.output().unwrap()
    })
}
