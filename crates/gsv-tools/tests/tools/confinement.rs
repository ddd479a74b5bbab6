//! [S11] [X13] [TH10]: no path of any tool reaches outside of the workspace, by either resolver.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::Lab;
use gsv_tools::beneath::Resolver;
use serde_json::{Value, json};

const SECRET: &str = "THE-SECRET";
const INSIDE: &str = "inside text";

fn furnish(lab: &Lab) {
    let out = lab.dir.path().join("outside");
    std::fs::create_dir_all(out.join("dir")).unwrap();
    std::fs::write(out.join("secret.txt"), SECRET).unwrap();
    std::fs::write(out.join("dir/secret.txt"), SECRET).unwrap();
    for name in [
        "a.txt",
        "dir/b.txt",
        "dir/sub/c.txt",
        "a b.txt",
        "%2e%2e",
        "...",
        "..x",
        "x..",
        "-rf",
        "~",
        "file:x",
        "\u{e9}.txt",
        "e\u{301}.txt",
        "A.TXT",
        "back\\slash",
        "new\nline",
    ] {
        lab.put(name, INSIDE);
    }
    let ws = lab.ws("").canonicalize().unwrap();
    let out = out.canonicalize().unwrap();
    let link = |target: &Path, name: &str| symlink(target, lab.ws(name)).unwrap();
    let rel = |target: &str, name: &str| symlink(target, lab.ws(name)).unwrap();
    rel("a.txt", "to-file");
    rel("dir", "to-dir");
    rel("dir/../a.txt", "to-dots-inside");
    rel("dir/sub/../../to-file", "to-dots-and-link");
    rel("to-file", "chain-1");
    rel("chain-1", "chain-2");
    link(&ws.join("a.txt"), "to-abs-inside");
    link(&ws.join("dir"), "to-abs-dir-inside");
    rel("../outside/secret.txt", "out-file");
    rel("../outside", "out-dir");
    rel("../ws/a.txt", "out-and-back");
    rel("dir/../../outside/secret.txt", "out-dots");
    rel("out-file", "out-chain");
    rel("out-dir/secret.txt", "out-through-dir");
    rel("../outside/new.txt", "out-dangling");
    rel("..", "out-parent");
    link(&out.join("secret.txt"), "out-abs");
    link(&out, "out-abs-dir");
    link(&out.join("newer.txt"), "out-abs-dangling");
    link(&ws.join("../outside/secret.txt"), "out-abs-dots");
    rel("/", "out-root");
    rel("loop-2", "loop-1");
    rel("loop-1", "loop-2");
    rel("loop-self/x", "loop-self");
    rel("nothing", "dangling");
    rel("/dev/zero", "dev-zero");
    rel("/proc/self/root/etc/passwd", "magic-root");
    rel("/proc/self/cwd", "magic-cwd");
    rel("/proc/self/fd/0", "magic-fd");
    std::fs::hard_link(lab.ws("a.txt"), lab.ws("hard")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        lab.ws("fifo"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    drop(std::os::unix::net::UnixListener::bind(lab.ws("socket")).unwrap());
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Is {
    File,
    Dir,
    /// Neither read nor written nor listed, by whatever error.
    Refused,
    Missing,
}

/// The corpus. `{ws}` and `{out}` stand for the absolute paths.
#[allow(clippy::too_many_lines, reason = "a table")]
fn corpus() -> Vec<(&'static str, Is)> {
    use Is::{Dir, File, Missing, Refused};
    let mut all = vec![
        ("a.txt", File),
        ("./a.txt", File),
        (".//a.txt", File),
        ("dir//b.txt", File),
        ("dir/./b.txt", File),
        ("dir/sub/../b.txt", File),
        ("dir/../a.txt", File),
        ("nothing/../a.txt", File),
        ("{ws}/a.txt", File),
        ("{ws}//dir/../a.txt", File),
        ("/..{ws}/a.txt", File),
        ("{ws}/../ws/a.txt", File),
        ("a b.txt", File),
        ("%2e%2e", File),
        ("...", File),
        ("..x", File),
        ("x..", File),
        ("-rf", File),
        ("./~", File),
        ("./file:x", File),
        ("\u{e9}.txt", File),
        ("e\u{301}.txt", File),
        ("A.TXT", File),
        ("back\\slash", File),
        ("new\nline", File),
        ("hard", File),
        ("to-file", File),
        ("to-dir/b.txt", File),
        ("to-dir/sub/c.txt", File),
        ("to-dots-inside", File),
        ("to-dots-and-link", File),
        ("chain-2", File),
        ("to-abs-inside", File),
        ("to-abs-dir-inside/b.txt", File),
        ("{ws}/to-file", File),
        (".", Dir),
        ("./", Dir),
        ("dir", Dir),
        ("dir/", Dir),
        ("dir/sub/..", Dir),
        ("to-dir", Dir),
        ("to-dir/", Dir),
        ("to-abs-dir-inside", Dir),
        ("{ws}", Dir),
        ("{ws}/", Dir),
        ("nothing", Missing),
        ("nothing/deeper", Missing),
        ("%2E%2E/outside/secret.txt", Missing),
        ("%2e%2e/outside/secret.txt", Refused),
        ("..\\outside\\secret.txt", Missing),
        ("dangling", Missing),
        ("a.TXT", Missing),
        ("", Refused),
        ("..", Refused),
        ("../outside/secret.txt", Refused),
        ("dir/../../outside/secret.txt", Refused),
        ("./../outside/secret.txt", Refused),
        ("nothing/../../outside/secret.txt", Refused),
        (".//..//outside//secret.txt", Refused),
        ("{out}/secret.txt", Refused),
        ("{out}", Refused),
        ("{ws}/../outside/secret.txt", Refused),
        ("{ws}x/secret.txt", Refused),
        ("/", Refused),
        ("//", Refused),
        ("/etc/passwd", Refused),
        ("/dev/zero", Refused),
        ("/dev/stdin", Refused),
        ("/proc/self/environ", Refused),
        ("/proc/self/root/etc/passwd", Refused),
        ("~", Refused),
        ("~/x", Refused),
        ("~root/x", Refused),
        ("file:///etc/passwd", Refused),
        ("FILE:a.txt", Refused),
        ("a.txt\0", Refused),
        ("a.txt\0../x", Refused),
        ("a.txt/", Refused),
        ("a.txt/.", Refused),
        ("a.txt/x", Refused),
        ("to-file/", Refused),
        ("out-file", Refused),
        ("out-dir", Refused),
        ("out-dir/", Refused),
        ("out-dir/secret.txt", Refused),
        ("out-dir/dir/secret.txt", Refused),
        ("out-dir/new.txt", Refused),
        ("out-and-back", Refused),
        ("out-dots", Refused),
        ("out-chain", Refused),
        ("out-through-dir", Refused),
        ("out-dangling", Refused),
        ("out-parent", Refused),
        ("out-parent/outside/secret.txt", Refused),
        ("out-abs", Refused),
        ("out-abs-dir/secret.txt", Refused),
        ("out-abs-dangling", Refused),
        ("out-abs-dots", Refused),
        ("out-root/etc/passwd", Refused),
        ("out-root", Refused),
        ("loop-1", Refused),
        ("loop-1/x", Refused),
        ("loop-self", Refused),
        ("dev-zero", Refused),
        ("magic-root", Refused),
        ("magic-cwd", Refused),
        ("magic-cwd/Cargo.toml", Refused),
        ("magic-fd", Refused),
        ("fifo", Refused),
        ("socket", Refused),
        ("fifo/x", Refused),
    ];
    let long: &'static str = Box::leak("x/".repeat(2100).into_boxed_str());
    let name: &'static str = Box::leak("n".repeat(300).into_boxed_str());
    let deep: &'static str = Box::leak(("../".repeat(64) + "etc/passwd").into_boxed_str());
    all.extend([(long, Refused), (name, Refused), (deep, Refused)]);
    all
}

/// Every file and link below a directory, with its content.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.insert(path.clone(), "dir".to_owned());
            all.extend(snapshot(&path));
        } else {
            all.insert(path.clone(), std::fs::read_to_string(&path).unwrap());
        }
    }
    all
}

fn args(tool: &str, path: &str) -> Value {
    match tool {
        "Read" | "Delete" => json!({"path": path}),
        "Write" => json!({"path": path, "content": "written"}),
        "Edit" => json!({"path": path, "oldString": "E", "newString": "X", "replaceAll": true}),
        "Glob" => json!({"pattern": "**/*", "path": path}),
        "Grep" => json!({"pattern": "THE|passwd|root", "path": path}),
        "Bash" => json!({"command": "cat secret.txt; echo moved >>secret.txt; touch here", "workdir": path}),
        other => panic!("{other}"),
    }
}

/// Whether the tool succeeds on such a path.
fn works(tool: &str, is: Is) -> bool {
    match tool {
        "Read" | "Delete" => is == Is::File,
        "Write" => is == Is::File || is == Is::Missing,
        "Glob" | "Bash" => is == Is::Dir,
        "Grep" => is == Is::File || is == Is::Dir,
        other => panic!("{other}"),
    }
}

async fn run(resolver: Resolver, tool: &str) {
    let mut cases = 0;
    let mut lab = Lab::resolved_by(resolver);
    furnish(&lab);
    for (path, is) in corpus() {
        let changes = ["Write", "Delete", "Bash"].contains(&tool);
        if changes {
            lab = Lab::resolved_by(resolver);
            furnish(&lab);
        }
        let ws = lab.ws("").canonicalize().unwrap();
        let out = lab.dir.path().join("outside").canonicalize().unwrap();
        let before = snapshot(&out);
        let ws = ws.to_str().unwrap().trim_end_matches('/').to_owned();
        let raw = path.replace("{ws}", &ws).replace("{out}", out.to_str().unwrap());
        let is_link = !path.is_empty() && !path.contains(['/', '\0']) && lab.ws(path).is_symlink();
        let result = lab.call(tool, args(tool, &raw)).await;
        assert_eq!(snapshot(&out), before, "{tool} {path:?} changed the outside");
        cases += 1;
        if let Err(error) = &result {
            let known = [
                "path.outside_workspace",
                "path.not_found",
                "path.not_a_file",
                "path.invalid",
                "edit.no_match",
                "tool.io",
            ];
            assert!(
                known.contains(&error.reason()),
                "{tool} {path:?}: {} {error}",
                error.reason()
            );
            assert_ne!(error.reason(), "tool.io", "{tool} {path:?}: {error}");
            assert!(!error.to_string().contains(SECRET) && error.to_string().len() < 1200);
        } else {
            assert!(
                !result.as_ref().unwrap().to_string().contains(SECRET),
                "{tool} {path:?} read the outside"
            );
        }
        if tool == "Edit" {
            let reason = result.as_ref().expect_err("nothing inside matches").reason();
            assert_eq!(reason == "edit.no_match", is == Is::File, "{path:?}: {reason}");
        } else {
            // A link that leads out lies inside itself, so it can be removed.
            let was_link = tool == "Delete" && is_link;
            assert_eq!(
                result.is_ok(),
                works(tool, is) || was_link,
                "{tool} {path:?} {is:?}: {result:?}"
            );
        }
        if tool == "Read" && is == Is::File {
            assert!(result.unwrap()["content"].as_str().unwrap().contains(INSIDE));
        }
    }
    assert!(cases > 100);
}

macro_rules! confined {
    ($($name:ident $tool:literal;)*) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn s11_x13_by_openat2() {
                run(Resolver::Auto, $tool).await;
            }

            #[tokio::test]
            async fn s11_x13_by_walk() {
                run(Resolver::Walk, $tool).await;
            }
        }
    )*};
}

confined! {
    read "Read";
    write "Write";
    edit "Edit";
    delete "Delete";
    glob "Glob";
    grep "Grep";
    bash "Bash";
}

#[tokio::test]
async fn s11_write_follows_an_inner_link_and_delete_removes_the_link_itself() {
    for resolver in [Resolver::Auto, Resolver::Walk] {
        let lab = Lab::resolved_by(resolver);
        furnish(&lab);
        lab.ok("Write", json!({"path": "chain-2", "content": "through"})).await;
        assert_eq!(lab.get("a.txt"), "through");
        assert!(lab.ws("chain-2").is_symlink());
        lab.ok("Delete", json!({"path": "to-file"})).await;
        assert!(!lab.ws("to-file").is_symlink() && lab.get("a.txt") == "through");
        // A link that leads out is itself inside: removing it touches nothing else.
        lab.ok("Write", json!({"path": "dangling", "content": "made"})).await;
        assert_eq!(lab.get("nothing"), "made");
    }
}

#[tokio::test]
async fn allow_outside_reaches_files_but_no_devices() {
    for resolver in [Resolver::Auto, Resolver::Walk] {
        let lab = Lab::with(|config| {
            config.resolver = resolver;
            config.scope = gsv_tools::beneath::Scope::Anywhere;
        });
        furnish(&lab);
        let out = lab.dir.path().join("outside").canonicalize().unwrap();
        let secret = out.join("secret.txt");
        for path in [secret.to_str().unwrap(), "../outside/secret.txt"] {
            let read = lab.ok("Read", json!({"path": path})).await;
            assert!(read["content"].as_str().unwrap().contains(SECRET), "{path}");
        }
        // The path must say that it leaves the workspace: the gateway knows the origin of what is read by it (TA4).
        for path in ["out-file", "out-abs", "out-dir/secret.txt"] {
            assert_eq!(
                lab.reason("Read", json!({"path": path})).await,
                "path.invalid",
                "{path}"
            );
        }
        for (tool, path) in [("Grep", "out-file"), ("Grep", "out-dir"), ("Glob", "out-dir")] {
            let args = json!({"pattern": "S", "path": path});
            assert_eq!(lab.reason(tool, args).await, "path.invalid", "{tool} {path}");
        }
        assert_eq!(lab.ok("Read", json!({"path": "a.txt"})).await["path"], "a.txt");
        lab.ok("Write", json!({"path": out.join("deep/new.txt"), "content": "n"}))
            .await;
        assert_eq!(std::fs::read_to_string(out.join("deep/new.txt")).unwrap(), "n");
        let found = lab.ok("Glob", json!({"pattern": "*.txt", "path": out})).await;
        assert_eq!(found["count"], 3, "{found}");
        assert!(found["matches"][0].as_str().unwrap().starts_with('/'));
        for path in ["/dev/zero", "/dev/null", "/dev/tty", "dev-zero", "fifo", "socket", "/"] {
            assert_eq!(
                lab.reason("Read", json!({"path": path})).await,
                "path.not_a_file",
                "{path}"
            );
            assert_eq!(
                lab.reason("Write", json!({"path": path, "content": ""})).await,
                "path.not_a_file",
                "{path}"
            );
        }
        for path in ["/proc/self/root/etc/passwd", "magic-root", "/proc/self/cwd/Cargo.toml"] {
            assert_eq!(
                lab.reason("Read", json!({"path": path})).await,
                "path.invalid",
                "{path} by {resolver:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_workspace_named_through_a_link_has_both_names() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("real")).unwrap();
    std::fs::write(dir.path().join("real/f"), "text").unwrap();
    symlink("real", dir.path().join("alias")).unwrap();
    for resolver in [Resolver::Auto, Resolver::Walk] {
        let files = gsv_tools::beneath::Beneath::new(
            &dir.path().join("alias"),
            gsv_tools::beneath::Scope::Workspace,
            resolver,
        )
        .unwrap();
        for base in ["alias", "real"] {
            let path = dir.path().canonicalize().unwrap().join(base).join("f");
            let named = files.parse(path.to_str().unwrap());
            let plain = dir.path().join(base).join("f");
            let named = named.or_else(|_| files.parse(plain.to_str().unwrap())).unwrap();
            assert!(files.open_file(&named).is_ok());
        }
    }
}
