//! [SB3] [SB7] [SB8] [SB10]: what a command reads, writes and has in its environment.

use std::ffi::OsString;
use std::process::Command;

use gsv_sandbox::{Profile, Tier};

use crate::scene::{Scene, program};

pub(crate) fn hidden_files(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    for file in [
        "home/.ssh/id",
        "state/token",
        // The state of this installation is elsewhere.
        "home/.gsv/token",
        "home/.config/gsv/config.toml",
        "home/.cargo/credentials.toml",
        "home/.mylogin.cnf",
    ] {
        scene.fails(tier, &format!("cat \"$ROOT/{file}\" && test -s \"$ROOT/{file}\""));
    }
    scene.fails(tier, "ln \"$ROOT/state/token\" stolen && cat stolen");
    scene.fails(tier, "ln -s \"$ROOT/home/.ssh\" keys && cat keys/id");
    scene.fails(tier, "cp -r \"$HOME/.ssh\" all && cat all/id");
    assert_eq!(
        scene.works(tier, "cat \"$HOME/.bashrc\" /etc/passwd | head -c 6"),
        "SECRET"
    );
}

pub(crate) fn writes(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(
        tier,
        "echo x >new && mkdir -p a/b && mv new a/b/ && rm -r a && echo y >\"$TMPDIR/t\" && echo z >\"$ROOT/data/d\"",
    );
    assert_eq!(std::fs::read_to_string(scene.path("data/d")).unwrap(), "z\n");
    scene.works(tier, "grep y \"$TMPDIR/t\"");
    // Another program takes commands from it: to write into it would be a way out.
    let pipe = scene.path("home/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    scene.works(
        tier,
        "mkfifo own && (cat own >got & echo x >own; wait) && grep x got && rm own got",
    );
    for script in [
        "echo x >\"$HOME/pipe\"",
        "echo x >>\"$HOME/.bashrc\"",
        "echo x >\"$HOME/new\"",
        "echo x >\"$ROOT/other/new\"",
        "truncate -s 0 \"$ROOT/other/file\"",
        "rm -f \"$ROOT/other/file\"",
        "mv \"$ROOT/other/file\" moved",
        "mv \"$ROOT/other\" moved",
        "ln -s \"$ROOT/other/file\" through && echo x >through",
        "echo x >\"$ROOT/own/cache/../../other/file\"",
        "echo x >/etc/gsv-canary",
        "echo x >/proc/sys/kernel/hostname",
        "echo x >\"$HOME/.cargo/bin/cargo\"",
        "mkdir \"$ROOT/state/new\"",
    ] {
        scene.fails(tier, script);
    }
    assert_eq!(std::fs::read_to_string(scene.path("other/file")).unwrap(), "SECRET");
    assert_eq!(std::fs::read_to_string(scene.path("home/.bashrc")).unwrap(), "SECRET");
}

/// Requests that change something through a file or a folder that is open for reading: the file's generation, verity, its flags, and a new
/// subvolume. Prints the number of each error.
const ASKS_OF_A_FILE: &str = "python3 -c '
import fcntl, os
for path, request in ((\"file\", 0x40086604), (\"file\", 0x40806685), (\"file\", 0x40086602), (\".\", 0x5000940e)):
    try:
        fcntl.ioctl(os.open(path, os.O_RDONLY), request, bytearray(4096))
        print(0)
    except OSError as error:
        print(error.errno)
'";

pub(crate) fn changes_nothing(tier: Tier) {
    let reads = |scene: &Scene, script: &str| {
        let output = scene.reading(tier, script);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text, errors)
    };
    for profile in [Profile::Workspace, Profile::Strict] {
        let scene = Scene::new(profile);
        let file = scene.path("home/ws/file");
        std::fs::write(&file, "as it was").unwrap();
        let before = std::fs::metadata(&file).unwrap();
        // Another program reads it: a command that may not write it must not wait for that either.
        let pipe = scene.path("home/pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let (status, text, errors) = reads(&scene, "cat file && cat <.git/config >/dev/null && ls >/dev/null");
        assert_eq!((status, text.as_str()), (Some(0), "as it was"), "{errors}");
        for script in [
            "echo x >>file",
            "echo x >new",
            "mkdir new",
            "rm file",
            "mv file moved",
            "ln -s file new",
            "truncate -s 0 file",
            "chmod 777 file",
            "touch -d 2001-01-01 file",
            "chgrp \"$(id -g)\" file",
            "echo x >\"$HOME/pipe\"",
            "echo x >.git/hooks/pre-commit",
            "echo x >\"$ROOT/data/new\"",
            "echo x >\"$ROOT/own/tmp/new\"",
            "echo x >\"$ROOT/own/cache/new\"",
            "echo x >\"$HOME/.cargo/registry/new\"",
            "echo x >\"$HOME/new\"",
            "cat \"$ROOT/state/token\" && test -s \"$ROOT/state/token\"",
        ] {
            let (status, text, errors) = reads(&scene, script);
            assert_ne!(status, Some(0), "{script}: {text}{errors}");
            assert!(!errors.contains("The command was not run"), "{script}: {errors}");
            assert!(!text.contains("SECRET"), "{script}: {text}");
        }
        let (_, text, errors) = reads(&scene, ASKS_OF_A_FILE);
        let refused = if tier == Tier::Landlock { "1 1 1 1" } else { "" };
        let numbers: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(numbers.len(), 4, "{text}{errors}");
        assert!(
            !numbers.contains(&"0") && numbers.join(" ").contains(refused),
            "{text}{errors}"
        );
        let after = std::fs::metadata(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was");
        assert_eq!(after.modified().unwrap(), before.modified().unwrap());
        assert_eq!(after.permissions(), before.permissions());
        for (folder, count) in [("home/ws", 2), ("data", 0), ("own/tmp", 0), ("home/.cargo/registry", 0)] {
            assert_eq!(scene.path(folder).read_dir().unwrap().count(), count, "{folder}");
        }
        if tier == Tier::Bubblewrap {
            // A program may keep something for itself, which ends with it.
            let (status, _, errors) = reads(&scene, "echo x >\"$TMPDIR/t\" && grep -q x /tmp/t");
            assert_eq!(status, Some(0), "{errors}");
            assert!(!scene.path("own/tmp/t").exists());
            let again =
                "echo x >/dev/stdout && echo x >/dev/stderr && mkdir /tmp/a /tmp/b && mv $(mktemp -p /tmp/a) /tmp/b/";
            let (status, text, errors) = reads(&scene, again);
            assert_eq!((status, text.as_str(), errors.as_str()), (Some(0), "x\n", "x\n"));
        }
    }
}

pub(crate) fn strict_reads(tier: Tier) {
    let mut scene = Scene::new(Profile::Strict);
    for file in ["home/.bashrc", "other/file", "state/token"] {
        scene.fails(tier, &format!("cat \"$ROOT/{file}\""));
    }
    scene.works(
        tier,
        "echo x >new && grep x new && ls /usr/bin >/dev/null && test -r /etc/passwd",
    );
    scene.request.readable = vec![scene.path("other")];
    assert_eq!(scene.works(tier, "cat \"$ROOT/other/file\""), "SECRET");
    scene.fails(tier, "echo x >>\"$ROOT/other/file\"");
}

pub(crate) fn caches(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(
        tier,
        "echo x >\"$CARGO_HOME/registry/crate\" && echo lock >\"$CARGO_HOME/.package-cache\"",
    );
    assert!(scene.path("home/.cargo/registry/crate").exists());
    assert!(!scene.path("home/.cargo/.package-cache").exists());
    scene.works(
        tier,
        "grep lock \"$CARGO_HOME/.package-cache\" && echo x >\"$XDG_CACHE_HOME/x\" && echo x >\"$npm_config_cache/x\"",
    );
    scene.fails(tier, "echo x >\"$HOME/.cargo/bin/x\"");
}

/// A command could put a link in the place of one of its own cache folders, so that the node writes through it.
pub(crate) fn own_links(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(tier, "rm -rf \"$CARGO_HOME\" && ln -s \"$HOME/.ssh\" \"$CARGO_HOME\"");
    scene.works(tier, ":");
    let names: Vec<_> = scene
        .path("home/.ssh")
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["id"], "the node made links in a folder that the command chose");
}

/// What a command left in the place of the sandbox's own folders keeps no later one from its sandbox.
pub(crate) fn own_places(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    for script in [
        "rm -rf \"$CARGO_HOME\" && echo x >\"$CARGO_HOME\"",
        "rm -rf \"$npm_config_cache\" && mkfifo \"$npm_config_cache\"",
        "chmod 0 \"$CARGO_HOME\" \"$XDG_CACHE_HOME\"",
        "chmod 0 \"$(dirname \"$CARGO_HOME\")\" \"$TMPDIR\"",
    ] {
        scene.works(tier, script);
        scene.works(
            tier,
            "echo x >\"$CARGO_HOME/x\" && echo x >\"$npm_config_cache/x\" && echo x >\"$XDG_CACHE_HOME/x\" && echo x >\"$TMPDIR/x\"",
        );
    }
}

pub(crate) fn no_secrets(tier: Tier) {
    let text = Scene::new(Profile::Workspace).works(tier, "env; cat /proc/self/environ | tr '\\0' '\\n'");
    assert!(!text.contains("SECRET") && text.contains("PATH="), "{text}");
}

/// A call that is none of the node runs no command, whatever its first words are.
pub(crate) fn refuses_other_calls(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(tier, ":");
    let plan = scene.path("state/plan.json");
    let plan = plan.to_str().unwrap();
    for text in [
        "",
        "PLAN",
        "PLAN --",
        "PLAN COMMAND",
        "PLAN --read-only COMMAND",
        "PLAN --proxy s COMMAND",
        "PLAN --proxy -- COMMAND",
        "PLAN --gate i o -- COMMAND",
        "PLAN --other -- COMMAND",
        "PLAN --input 3 -- COMMAND",
        "PLAN --read-only --read-only -- COMMAND",
        "PLAN --read-only --proxy s -- COMMAND",
        "PLAN --proxy s --proxy s -- COMMAND",
        "PLAN --gate i o n --gate i o n -- COMMAND",
        "--inside",
        "--inside 3 4 -- COMMAND",
        "--inside 3 4 5 COMMAND",
        "--inside 3 4 5 --read-only -- COMMAND",
        "--inside 3 4 5 --gate i o n -- COMMAND",
        "--inside 3 4 5 --input 6 --input 6 -- COMMAND",
    ] {
        let mut command = Command::new(program().path);
        command.arg("__confine");
        for word in text.split_whitespace() {
            match word {
                "PLAN" => command.arg(plan),
                "COMMAND" => command.args(["/bin/sh", "-c", "echo ran; : >ran"]),
                word => command.arg(word),
            };
        }
        let ran = command.current_dir(&scene.request.workspace).output().unwrap();
        assert_eq!(
            (ran.status.code(), ran.stdout.as_slice()),
            (Some(126), &b""[..]),
            "{text}"
        );
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(errors.contains("was not run"), "{text}: {errors}");
        assert!(!scene.request.workspace.join("ran").exists(), "{text}");
    }
}

/// Not the sandbox has failed, but the program.
pub(crate) fn names_the_program(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(tier, ":");
    let ran = Command::new(program().path)
        .args([OsString::from("__confine"), scene.path("state/plan.json").into()])
        .args(["--", "/nowhere/zsh", "-l", "-c", "echo ran"])
        .current_dir(&scene.request.workspace)
        .output()
        .unwrap();
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(126), &b""[..]));
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(
        errors,
        "[GSV: /nowhere/zsh can't be started in the sandbox: No such file or directory (os error 2). The command was not run. Tell the user to give the node a shell that the sandbox shows.]\n"
    );
}

pub(crate) fn fails_closed(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(tier, ":");
    let file = scene.path("state/plan.json");
    std::fs::write(&file, "{").unwrap();
    let ran = Command::new(program().path)
        .args([
            OsString::from("__confine"),
            file.into(),
            "--".into(),
            "/bin/sh".into(),
            "-c".into(),
            "echo ran".into(),
        ])
        .output()
        .unwrap();
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(126), &b""[..]));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("was not run"));
}
