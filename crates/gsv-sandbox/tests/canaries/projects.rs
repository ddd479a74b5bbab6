//! [SB5] [SB10]: hooks and settings of projects, and the mounts that protect them.

use std::path::Path;

use gsv_sandbox::{Profile, Tier};

use crate::scene::{Scene, bubblewrap};

pub(crate) fn protects(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    for file in [".envrc", ".bashrc", ".vscode/tasks.json", "sub/.git/config"] {
        let path = scene.path("home/ws").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "own").unwrap();
    }
    for script in [
        "echo x >.git/hooks/pre-commit",
        "echo x >>.git/config",
        "mv .git moved",
        "mv .git/hooks moved",
        "rm -rf .git/hooks",
        "rm -f .envrc",
        "mv .envrc moved",
        "echo x >>.bashrc",
        "echo x >.vscode/tasks.json",
        "mv .vscode moved",
        "echo x >sub/.git/config",
        "echo x >sub/.git/hooks/pre-push",
        "cd sub && echo x >.git/hooks/pre-push",
    ] {
        scene.fails(tier, script);
    }
    scene.works(
        tier,
        "cat .envrc .git/config && echo x >.git/index && mkdir -p .git/objects && rm .git/index",
    );
    assert_eq!(std::fs::read_to_string(scene.path("home/ws/.envrc")).unwrap(), "own");
    assert!(
        Path::new(&scene.path("home/ws/sub/.git/hooks"))
            .read_dir()
            .unwrap()
            .next()
            .is_none()
    );
}

pub(crate) fn protects_linked(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let ws = scene.path("home/ws");
    for file in [
        ".git/HEAD",
        ".git/modules/libs/foo/HEAD",
        ".git/modules/libs/foo/config",
        ".git/worktrees/tree/HEAD",
        ".git/worktrees/tree/commondir",
        ".git/worktrees/tree/gitdir",
        "sub/.git/HEAD",
        "deep/er/.git/HEAD",
        ".husky/pre-commit",
    ] {
        std::fs::create_dir_all(ws.join(file).parent().unwrap()).unwrap();
        std::fs::write(ws.join(file), "own").unwrap();
    }
    std::fs::create_dir_all(ws.join("tree")).unwrap();
    std::fs::write(ws.join("tree/.git"), "gitdir: ../.git/worktrees/tree").unwrap();
    for script in [
        "echo 'gitdir: ../evil' >tree/.git",
        "mv tree/.git moved",
        "rm tree/.git",
        "mv tree moved",
        "echo x >>.git/modules/libs/foo/config",
        "echo x >.git/modules/libs/foo/hooks/post-checkout",
        "mv .git/modules/libs/foo moved",
        "echo ../../../evil >.git/worktrees/tree/commondir",
        "echo x >.git/worktrees/tree/gitdir",
        "mv sub moved",
        "mv deep moved",
        "mv deep/er moved",
        "echo x >.husky/pre-commit",
    ] {
        scene.fails(tier, script);
    }
    scene.works(
        tier,
        "echo x >tree/new && echo x >sub/new && echo x >.git/modules/libs/foo/index",
    );
    assert_eq!(
        std::fs::read_to_string(ws.join("tree/.git")).unwrap(),
        "gitdir: ../.git/worktrees/tree"
    );
}

/// Git directories of other names than `.git`, as git itself makes them: bare with a worktree, apart from the files, and bare alone; with
/// a worktree and a submodule of an ordinary repository.
pub(crate) fn protects_any_git(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let ws = scene.path("home/ws");
    let other = scene.path("other/src");
    std::fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q", "-b", "trunk"]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let from = other.to_str().unwrap();
    git(&ws, &["clone", "-q", "--bare", from, "proj.git"]);
    git(
        &ws.join("proj.git"),
        &["worktree", "add", "-q", "-b", "main", "../main"],
    );
    std::fs::create_dir_all(ws.join("far/away")).unwrap();
    git(&ws, &["init", "-q", "--separate-git-dir=far/away/meta", "sep"]);
    git(&ws, &["init", "-q", "--bare", "mirror.git"]);
    git(&ws, &["clone", "-q", from, "plain"]);
    git(&ws.join("plain"), &["submodule", "--quiet", "add", from, "lib"]);
    git(&ws.join("plain"), &["commit", "-q", "-m", "lib"]);
    git(&ws.join("plain"), &["worktree", "add", "-q", "-b", "tree", "../tree"]);
    git(&ws.join("tree"), &["submodule", "--quiet", "update", "--init"]);
    for folder in ["proj.git", "far/away/meta", "mirror.git", "plain/.git"] {
        std::fs::create_dir_all(ws.join(folder).join("info")).unwrap();
        std::fs::write(ws.join(folder).join("info/attributes"), "").unwrap();
        for file in ["config", "info/attributes", "hooks/post-update"] {
            scene.fails(tier, &format!("echo x >>{folder}/{file}"));
            scene.fails(tier, &format!("rm -f {folder}/{file} && echo x >{folder}/{file}"));
        }
        scene.fails(tier, &format!("mv {folder} {folder}-moved"));
    }
    for script in [
        "echo x >>proj.git/worktrees/main/commondir",
        "echo x >>proj.git/worktrees/main/gitdir",
        "mv proj.git/worktrees/main proj.git/worktrees/main-moved",
        "echo 'gitdir: ../evil' >main/.git",
        "echo x >>plain/.git/modules/lib/config",
        "echo x >>plain/.git/worktrees/tree/commondir",
        "echo x >>plain/.git/worktrees/tree/modules/lib/config",
        "echo x >plain/.git/worktrees/tree/modules/lib/hooks/post-checkout",
        "mv far far-moved",
        // What makes a folder a repository for the search can't be taken away for one command.
        "mv mirror.git/objects mirror.git/objects-moved",
        "mv mirror.git/refs mirror.git/refs-moved",
    ] {
        scene.fails(tier, script);
    }
    // `HEAD` is replaced by git itself, so it can be moved. The next command must find the repository nevertheless.
    scene.works(
        tier,
        "mv mirror.git/HEAD head; mv plain/.git/modules/lib/HEAD head2; mv proj.git/worktrees/main/HEAD head3",
    );
    scene.fails(tier, "echo x >>mirror.git/config");
    scene.fails(tier, "echo x >>plain/.git/modules/lib/config");
    scene.fails(tier, "echo x >>proj.git/worktrees/main/commondir");
    scene.works(
        tier,
        "mv head mirror.git/HEAD; mv head2 plain/.git/modules/lib/HEAD; mv head3 proj.git/worktrees/main/HEAD",
    );
    // Git goes on working in them.
    let setup = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.example; set -e; ";
    for script in [
        "cd main && echo x >new && git add new && git commit -qm new && git status && git checkout -qb side && git gc -q",
        "cd sep && echo x >new && git add new && git commit -qm new && git branch other && git log && git pack-refs --all",
        "cd main && git push -q ../mirror.git HEAD:refs/heads/got && git -C ../mirror.git log got && git -C ../mirror.git repack -adq",
        "cd mirror.git && git fetch -q ../proj.git main:fetched && git worktree add -q ../added fetched && cd ../added && git status",
        "cd plain/lib && echo x >new && git add new && git commit -qm new && cd .. && git add lib && git commit -qm newer",
        "cd tree && git status && echo x >new && git add new && git commit -qm new",
    ] {
        scene.works(tier, &format!("{setup}{script}"));
    }
    // A worktree that was added by a command is found by the next one.
    scene.fails(tier, "echo x >>mirror.git/worktrees/added/commondir");
}

/// Makes a file, and the folders above it.
fn make(file: &std::path::Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// What the configuration of a repository names, as git itself runs it: hooks in another folder, one that is missing, included files, programs.
pub(crate) fn protects_configured(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let ws = scene.path("home/ws");
    for file in [
        "tools/more.cfg",
        "tools/clean.sh",
        ".githooks/pre-commit",
        "tools/watch",
    ] {
        make(&ws.join(file), "");
    }
    git(&ws, &["init", "-q"]);
    git(&ws, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&ws, &["worktree", "add", "-q", "-b", "tree", "tree"]);
    git(&ws, &["init", "-q", "sub"]);
    std::fs::create_dir_all(ws.join("tree/.githooks")).unwrap();
    git(&ws, &["config", "core.hooksPath", ".githooks"]);
    git(&ws, &["config", "include.path", "../tools/more.cfg"]);
    git(&ws, &["config", "filter.x.clean", "sh tools/clean.sh"]);
    git(&ws.join("sub"), &["config", "core.hooksPath", "later"]);
    git(&ws, &["init", "-q", "deep"]);
    git(&ws.join("deep"), &["config", "core.hooksPath", "no/such/hooks"]);
    git(&ws, &["init", "-q", "home"]);
    git(&ws.join("home"), &["config", "core.hooksPath", "~/ws/home/myhooks"]);
    std::fs::create_dir_all(ws.join("home/myhooks")).unwrap();
    std::fs::write(ws.join("tools/more.cfg"), "[alias]\n\tx = !sh tools/watch\n").unwrap();
    for script in [
        "echo x >.githooks/pre-commit",
        "echo x >.githooks/pre-push",
        "mv .githooks moved",
        "echo x >tree/.githooks/pre-push",
        "echo x >>tools/more.cfg",
        "rm -f tools/clean.sh && echo x >tools/clean.sh",
        "echo x >tools/watch",
        "mv tools moved",
        "mkdir -p deep/no/such/hooks && echo x >deep/no/such/hooks/pre-commit",
        "echo x >home/myhooks/pre-commit",
        "mkdir sub/later && echo x >sub/later/pre-commit && test -e sub/later/pre-commit && ! rm sub/later/pre-commit",
    ] {
        scene.fails(tier, script);
    }
    assert!(!ws.join("sub/later/pre-commit").exists());
    // Hooks and settings that are links.
    for (link, to, real) in [
        ("lib/.git/hooks/pre-commit", "../../../scripts/check", "scripts/check"),
        ("sub/.envrc", "../scripts/rc", "scripts/rc"),
    ] {
        std::fs::create_dir_all(ws.join(link).parent().unwrap()).unwrap();
        std::fs::create_dir_all(ws.join("scripts")).unwrap();
        std::fs::write(ws.join(real), "own").unwrap();
        std::os::unix::fs::symlink(to, ws.join(link)).unwrap();
        scene.fails(tier, &format!("echo x >{real}"));
        scene.fails(tier, &format!("echo x >{link}"));
        assert_eq!(std::fs::read_to_string(ws.join(real)).unwrap(), "own");
    }
    scene.fails(tier, "rm lib/.git/hooks/pre-commit");
    scene.fails(tier, "mv scripts moved");
    // However many folders come before a project.
    scene.works(tier, "for n in $(seq 3000); do echo a$n; done | xargs mkdir");
    scene.fails(tier, "echo x >sub/.git/hooks/pre-push || echo x >>sub/.git/config");
    // The rest of the folders is content.
    scene.works(
        tier,
        "echo x >tools/other && echo x >sub/new && git status && echo x >tree/new",
    );
}

/// What the user's own git configuration names in the workspace, files of the home that are links into it, and scripts that an alias locates.
pub(crate) fn protects_homes(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let (home, ws) = (scene.path("home"), scene.path("home/ws"));
    for file in [
        "gh/pre-commit",
        "fm.sh",
        "gitinc",
        "dot/zshrc",
        "dot/nvim/init.lua",
        "dot/a.fish",
        "tools/cdd.sh",
        "tools/top.sh",
    ] {
        make(&ws.join(file), "own");
    }
    git(&ws, &["init", "-q"]);
    git(&ws, &["config", "alias.cdd", "!cd tools && ./cdd.sh"]);
    git(
        &ws,
        &["config", "alias.top", "!$(git rev-parse --show-toplevel)/tools/top.sh"],
    );
    let text = format!(
        "[core]\n hooksPath = {0}/gh\n fsmonitor = ~/ws/fm.sh\n[include]\n path = {0}/gitinc\n",
        ws.display()
    );
    std::fs::write(home.join(".gitconfig"), text).unwrap();
    std::fs::create_dir_all(home.join(".config/fish/conf.d")).unwrap();
    for (link, to) in [
        (".zshrc", "ws/dot/zshrc"),
        (".config/nvim", "../ws/dot/nvim"),
        (".config/fish/conf.d/a.fish", "../../../ws/dot/a.fish"),
    ] {
        std::os::unix::fs::symlink(to, home.join(link)).unwrap();
    }
    for script in [
        "echo x >gh/pre-commit",
        "echo x >gh/pre-push",
        "mv gh moved",
        "echo x >fm.sh",
        "rm -f gitinc && echo x >gitinc",
        "echo x >>dot/zshrc",
        "mv dot moved",
        "echo x >dot/nvim/new.lua",
        "echo x >dot/a.fish",
        "echo x >tools/cdd.sh",
        "echo x >tools/top.sh",
    ] {
        scene.fails(tier, script);
    }
    scene.works(
        tier,
        "cat dot/zshrc gh/pre-commit && echo x >dot/new && echo x >tools/new",
    );
}

/// Git with no settings of the user.
fn git(folder: &Path, args: &[&str]) {
    let mut command = std::process::Command::new("git");
    command
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b.example"]);
    command.args(["-c", "protocol.file.allow=always"]).args(args);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A background command exchanges `.git` and a link to a folder outside the workspace, thousands of times a second, while other commands
/// start. bubblewrap must mount what the survey found, or the command must not run.
pub(crate) fn races(tier: Tier, starts: u32) {
    let scene = Scene::new(Profile::Workspace);
    let ws = scene.path("home/ws");
    std::fs::create_dir_all(ws.join("sub/.git")).unwrap();
    std::os::unix::fs::symlink("../../../other", ws.join("sub/link")).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = renameat_with(
                    CWD,
                    ws.join("sub/.git"),
                    CWD,
                    ws.join("sub/link"),
                    RenameFlags::EXCHANGE,
                );
            }
        });
        for _ in 0..starts {
            let output = scene.sh(
                tier,
                "echo x >>\"$ROOT/other/file\"; echo x >>sub/.git/file; echo x >>sub/link/file; true",
            );
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            // Refused is safe.
            assert!(
                output.status.success() || text.contains("bwrap") || text.contains("can't be set up"),
                "{text}"
            );
            if std::fs::read_to_string(scene.path("other/file")).unwrap() != "SECRET" {
                break;
            }
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(
        std::fs::read_to_string(scene.path("other/file")).unwrap(),
        "SECRET",
        "a command wrote outside"
    );
}

/// A fake bubblewrap that mounts something else than it was told, as when another command exchanges a folder with a link meanwhile.
pub(crate) fn other_mounts(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let real = bubblewrap().unwrap();
    std::fs::create_dir_all(scene.path("home/ws/sub/.git")).unwrap();
    let fake = scene.path("state/bwrap");
    for (what, change, is_run) in [
        ("nothing", "set -- \"$@\" \"$1\"", true),
        (
            "a folder outside is writable",
            "[ \"$1\" != --chdir ] || set -- \"$@\" --bind \"$OTHER\" \"$OTHER\"; set -- \"$@\" \"$1\"",
            false,
        ),
        (
            "a folder outside is writable in the workspace",
            "[ \"$1\" != --chdir ] || set -- \"$@\" --bind \"$OTHER\" \"$WS/sub\"; set -- \"$@\" \"$1\"",
            false,
        ),
        (
            "a folder outside is in the place of a project's",
            "[ \"$1\" != --chdir ] || set -- \"$@\" --bind \"$OTHER\" \"$WS/sub/.git\"; set -- \"$@\" \"$1\"",
            false,
        ),
        (
            "hooks are writable",
            "case \"$1\" in --ro-bind-fd) set -- \"$@\" --bind-fd;; *) set -- \"$@\" \"$1\";; esac",
            false,
        ),
        (
            "hooks are not mounted",
            "if [ \"$1\" = --ro-bind-fd ]; then shift 2; else set -- \"$@\" \"$1\"; fi",
            false,
        ),
        (
            "what is hidden is seen",
            "if [ \"$1 $2\" = \"--tmpfs $STATE\" ]; then shift 3; else set -- \"$@\" \"$1\"; fi",
            false,
        ),
        (
            "what is hidden is a writable folder",
            "if [ \"$1 $2\" = \"--remount-ro $STATE\" ]; then shift 1; else set -- \"$@\" \"$1\"; fi",
            false,
        ),
    ] {
        // Each argument is moved from the start to the end of the list, as it is or changed.
        let text = format!(
            "#!/bin/sh\nOTHER='{}' WS='{}' STATE='{}'\nset -- \"$@\" END\nwhile [ \"$1\" != END ]; do\n{change}\nshift\ndone\nshift\nexec '{}' \"$@\"\n",
            scene.path("other").display(),
            scene.path("home/ws").display(),
            scene.path("state").display(),
            real.display(),
        );
        std::fs::write(&fake, text).unwrap();
        std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let output = scene.command_by(Some(fake.clone()), tier, "echo ran").output().unwrap();
        let (text, errors) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert_eq!(text == "ran\n", is_run, "{what}: {text} {errors}");
        if !is_run {
            assert_eq!(output.status.code(), Some(126), "{what}: {errors}");
            assert!(
                errors.contains("can't be set up") && errors.contains("was not run"),
                "{what}: {errors}"
            );
        }
    }
}
