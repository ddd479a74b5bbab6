//! [SB4]: no network, and no way to other programs.

use std::process::Command;

use gsv_sandbox::{Profile, Tier};
use tempfile::TempDir;

use crate::scene::{Scene, bubblewrap, has_python};

pub(crate) fn nothing_outside(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let socket = scene.path("other/s");
    // Listed by the kernel, and so masked; the path must fit into a socket's address.
    let _unix = std::os::unix::net::UnixListener::bind(&socket);
    if !has_python() {
        return;
    }
    let memory = SharedMemory::new();
    for code in [
        format!("import socket; socket.create_connection(('127.0.0.1', {port}), 2)"),
        "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)".into(),
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)".into(),
        format!("import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}')", socket.display()),
        format!("import os; os.kill({}, 0)", std::process::id()),
        format!("open('/proc/{}/mem', 'rb')", std::process::id()),
        format!("open('/proc/{}/environ', 'rb').read(1)", std::process::id()),
        "import ctypes, os; l = ctypes.CDLL(None, use_errno=True); r = l.unshare(0x10000000); os._exit(1 if r else 0)".into(),
        "import ctypes, os; l = ctypes.CDLL(None); r = l.syscall(165, b'x', b'/', b'tmpfs', 0, 0); os._exit(1 if r else 0)".into(),
        "import ctypes, os; l = ctypes.CDLL(None); r = l.syscall(425, 8, b'\\0' * 200); os._exit(0 if r >= 0 else 1)".into(),
        "import ctypes, os; l = ctypes.CDLL(None); r = l.syscall(0x40000000 | 41, 2, 1, 0); os._exit(0 if r >= 0 else 1)".into(),
        "import ctypes, os; l = ctypes.CDLL(None); r = l.ptrace(0, 0, 0, 0); os._exit(1 if r else 0)".into(),
        format!("import ctypes, os; l = ctypes.CDLL(None); r = l.shmget({}, 0, 0); os._exit(0 if r >= 0 else 1)", memory.0),
    ] {
        // The numbers are those of x86-64.
        if !std::env::consts::ARCH.ends_with("86_64") && code.contains("syscall(") {
            continue;
        }
        scene.fails(tier, &format!("exec python3 -c \"{code}\""));
    }
    scene.works(tier, "exec python3 -c \"import socket, subprocess, threading; socket.socketpair(); subprocess.run(['true'], check=True); t = threading.Thread(target=print); t.start(); t.join()\"");
    if tier == Tier::Bubblewrap {
        scene.works(tier, "exec python3 -c \"import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())\"");
    }
}

/// Landlock does not see what is sent to a socket, and a pair is made without `socket`.
pub(crate) fn no_datagrams(tier: Tier) {
    if !has_python() {
        return;
    }
    // A socket's address has 107 bytes, so its folder has a short name.
    let dir = TempDir::with_prefix_in("gsv-s-", "/var/tmp").unwrap();
    let mut scene = Scene::new(Profile::Workspace);
    let short = dir.path().canonicalize().unwrap();
    scene.request.writable.push(short.clone());
    let path = short.join("d");
    let other = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    other.set_nonblocking(true).unwrap();
    let python = |code: &str| format!("exec python3 -c \"from socket import *; {code}\"");
    for kind in [
        "SOCK_DGRAM",
        "SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK",
        "SOCK_RAW",
        "SOCK_RAW | SOCK_NONBLOCK",
    ] {
        for send in [
            format!("a.sendto(b'x', '{}')", path.display()),
            format!("a.sendmsg([b'x'], [], 0, '{}')", path.display()),
            format!("a.connect('{}'); a.send(b'x')", path.display()),
        ] {
            let script = python(&format!("a, b = socketpair(AF_UNIX, {kind}); {send}"));
            for output in [scene.sh(tier, &script), scene.reading(tier, &script)] {
                let errors = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(1), "{script}: {errors}");
                let refused = match tier {
                    Tier::Landlock => "PermissionError",
                    _ => "Error: [Errno",
                };
                assert!(errors.contains(refused), "{script}: {errors}");
            }
            let nothing = other.recv(&mut [0; 8]).map_err(|error| error.kind());
            assert_eq!(nothing, Err(std::io::ErrorKind::WouldBlock), "{script}");
        }
    }
    // Pairs of streams and of packets, with which programs talk to their children.
    for kind in [
        "SOCK_STREAM",
        "SOCK_SEQPACKET",
        "SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK",
    ] {
        scene.works(
            tier,
            &python(&format!(
                "a, b = socketpair(AF_UNIX, {kind}); a.send(b'x'); assert b.recv(1) == b'x'"
            )),
        );
    }
}

/// Memory that other programs of the user share, by its key.
struct SharedMemory(u32);

impl SharedMemory {
    fn new() -> Self {
        let memory = Self(std::process::id());
        memory.call("r = l.shmget(key, 4096, 0o1600)");
        memory
    }

    fn call(&self, code: &str) {
        let code = format!(
            "import ctypes; l = ctypes.CDLL(None); key = {}; {code}; assert r >= 0",
            self.0
        );
        let status = Command::new("python3").args(["-c", &code]).status().unwrap();
        assert!(status.success(), "{code}");
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        self.call("r = l.shmctl(l.shmget(key, 0, 0), 0, None)");
    }
}

/// A program that started the node may have left files open for all its children.
pub(crate) fn no_descriptors(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let command = scene.command(tier, "cat <&7; ls -l /proc/self/fd/7");
    // A shell opens the file for the program that it becomes.
    let mut outer = Command::new("/bin/sh");
    outer.args(["-c", "exec 7<\"$1\"; shift; exec \"$@\"", "sh"]);
    outer
        .arg(scene.path("state/token"))
        .arg(command.get_program())
        .args(command.get_args());
    outer.env_clear().current_dir(&scene.request.workspace);
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = outer.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && !text.contains("SECRET") && !text.contains("token"),
        "{text}"
    );
    let open = scene.works(tier, "ls /proc/self/fd | sort -n | tr '\\n' ' '");
    assert_eq!(open.trim(), "0 1 2 3", "3 is the folder that `ls` lists");
}

pub(crate) fn masks_sockets(tier: Tier) {
    // A socket's address has 107 bytes, so the workspace has a short name.
    let dir = TempDir::with_prefix_in("gsv-s-", "/var/tmp").unwrap();
    let mut scene = Scene::new(Profile::Workspace);
    let short = dir.path().canonicalize().unwrap();
    scene.request.writable.push(short.clone());
    let path = short.join("s");
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    if !has_python() {
        return;
    }
    let connect = format!(
        "exec python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}')\"",
        path.display()
    );
    scene.fails(tier, &connect);
    // Sockets of the sandbox itself work.
    let own = short.join("own");
    scene.works(
        tier,
        &format!("exec python3 -c \"import socket; a = socket.socket(socket.AF_UNIX); a.bind('{0}'); a.listen(); socket.socket(socket.AF_UNIX).connect('{0}')\"", own.display()),
    );
}

/// The kernel lists a socket under its first path, which is not in the workspace, so that only the search of the workspace meets it.
pub(crate) fn masks_met_sockets(tier: Tier) {
    if !has_python() {
        return;
    }
    // A socket's address has 107 bytes, so the workspace has a short name.
    let dir = TempDir::with_prefix_in("gsv-s-", "/var/tmp").unwrap();
    let short = dir.path().canonicalize().unwrap();
    let mut scene = Scene::new(Profile::Workspace);
    scene.request.workspace = short.join("ws");
    let moved = short.join("ws/a/b/s");
    std::fs::create_dir_all(short.join("ws/a/b")).unwrap();
    let other = std::os::unix::net::UnixListener::bind(short.join("s")).unwrap();
    other.set_nonblocking(true).unwrap();
    std::fs::rename(short.join("s"), &moved).unwrap();
    let connect = format!(
        "exec python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}')\"",
        moved.display()
    );
    for output in [scene.reading(tier, &connect), scene.sh(tier, &connect)] {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("ConnectionRefusedError"), "{errors}");
        let nothing = other.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(nothing, Err(std::io::ErrorKind::WouldBlock));
    }
    // It is there for other programs.
    std::os::unix::net::UnixStream::connect(&moved).unwrap();
}

/// Without the list of sockets, none of them can be masked.
pub(crate) fn needs_the_list_of_sockets(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let empty = scene.path("state/empty");
    std::fs::create_dir(&empty).unwrap();
    let run = |mount: &str| {
        let command = scene.command(tier, "echo ran");
        let mut outer = Command::new("unshare");
        let script = format!("{mount} exec \"$@\"");
        outer.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", &script, "sh"]);
        outer
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(&scene.request.workspace)
            .env_clear()
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .output()
    };
    let is_possible = run("").is_ok_and(|output| output.stdout == b"ran\n");
    if !is_possible {
        println!("skipped: this machine does not allow other mounts for a test");
        return;
    }
    // The folder of this process: `/proc/net` leads to it.
    let output = run(&format!("mount --bind '{}' /proc/$$/net &&", empty.display())).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(126), &b""[..]),
        "{errors}"
    );
    assert!(
        errors.contains("the sockets of other programs can't be listed"),
        "{errors}"
    );
}

/// The kernel does not tell the folder of a socket that was bound by a relative path.
pub(crate) fn masks_relative_sockets(tier: Tier) {
    if !has_python() {
        return;
    }
    let scene = Scene::new(Profile::Workspace);
    let folder = scene.path("other");
    for (name, code) in [
        ("stays", "s.listen()"),
        ("leaves", "s.listen(); os.chdir('/')"),
        ("datagrams", "os.chdir('/')"),
    ] {
        let kind = if name == "datagrams" { "DGRAM" } else { "STREAM" };
        let code = format!(
            "import os, socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_{kind}); s.bind('{name}'); {code}; print('up', flush=True); sys.stdin.read()"
        );
        let mut other = Command::new("python3")
            .args(["-c", &code])
            .current_dir(&folder)
            .env("PWD", &folder)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = [0; 3];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut up).unwrap();
        let connect = format!(
            "exec python3 -c \"import socket; socket.socket(socket.AF_UNIX, socket.SOCK_{kind}).connect('{}')\"",
            folder.join(name).display()
        );
        let output = scene.sh(tier, &connect);
        drop(other.stdin.take());
        other.wait().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
        assert!(errors.contains("ConnectionRefusedError"), "{name}: {errors}");
    }
}

/// The kernel lists a socket under its first path, also after an earlier command has moved a folder above it.
pub(crate) fn masks_moved_sockets(tier: Tier) {
    let dir = TempDir::with_prefix_in("gsv-s-", "/var/tmp").unwrap();
    let mut scene = Scene::new(Profile::Workspace);
    let short = dir.path().canonicalize().unwrap();
    scene.request.writable.push(short.clone());
    std::fs::create_dir(short.join("run")).unwrap();
    let _other = std::os::unix::net::UnixListener::bind(short.join("run/s")).unwrap();
    if !has_python() {
        return;
    }
    let connect = |path: &str| {
        let path = short.join(path);
        format!(
            "exec python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}')\"",
            path.display()
        )
    };
    let root = short.display();
    scene.works(tier, &format!("mv {root}/run {root}/moved"));
    scene.fails(tier, &connect("moved/s"));
    // A file, and a socket of the command's own, in the place of the first one.
    scene.works(tier, &format!("mkdir {root}/run && echo > {root}/run/s"));
    scene.fails(tier, &connect("moved/s"));
    scene.works(
        tier,
        &format!(
            "rm {root}/run/s && exec python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('{root}/run/s')\""
        ),
    );
    scene.fails(tier, &connect("moved/s"));
}

/// A bubblewrap that first takes a folder with a socket away, which the plan covers.
fn stale(scene: &Scene, once: bool) -> std::path::PathBuf {
    let fake = scene.path("state/bwrap");
    let text = format!(
        "#!/bin/sh\necho start >>'{0}'\nfor each in '{1}'/gone*; do rm -rf \"$each\"; {2}; done\nexec '{3}' \"$@\"\n",
        scene.path("state/starts").display(),
        scene.path("other").display(),
        if once { ":" } else { "break" },
        bubblewrap().unwrap().display(),
    );
    std::fs::write(&fake, text).unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    fake
}

/// The plan of the mounts is out of date when a socket goes away with its folder.
pub(crate) fn stale_plans(tier: Tier) {
    for (once, starts, ran) in [(true, 2, 1), (false, 4, 0)] {
        let scene = Scene::new(Profile::Workspace);
        let sockets = (0..6).map(|number| {
            let folder = scene.path(&format!("other/gone{number}"));
            std::fs::create_dir(&folder).unwrap();
            std::os::unix::net::UnixListener::bind(folder.join("s"))
        });
        let Ok(_sockets) = sockets.collect::<Result<Vec<_>, _>>() else {
            println!("skipped: the path is too long for a socket");
            return;
        };
        let script = "echo ran >>\"$ROOT/data/ran\"; echo out; echo err >&2; exit 7";
        let output = scene
            .command_by(Some(stale(&scene, once)), tier, script)
            .output()
            .unwrap();
        let (text, errors) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let lines = |file: &str| {
            std::fs::read_to_string(scene.path(file))
                .unwrap_or_default()
                .lines()
                .count()
        };
        assert_eq!(
            (lines("state/starts"), lines("data/ran")),
            (starts, ran),
            "{text} {errors}"
        );
        if once {
            assert_eq!((output.status.code(), &*text, &*errors), (Some(7), "out\n", "err\n"));
        } else {
            assert_eq!((output.status.code(), &*text), (Some(126), ""), "{errors}");
            let is_sentence = errors.starts_with("[GSV: the sandbox can't be set up: bwrap: ");
            assert!(
                is_sentence
                    && errors.contains(". The command was not run. ")
                    && errors.ends_with("tests the sandbox.]\n"),
                "{errors}"
            );
            assert_eq!(errors.lines().count(), 1, "{errors}");
        }
    }
}

/// A command that has begun is never started again, however it and bubblewrap end.
pub(crate) fn starts_once(tier: Tier) {
    for (script, status) in [
        ("exit 126", 126),
        ("exit 1", 1),
        ("kill -KILL $$", 137),
        ("exec /none", 127),
    ] {
        let scene = Scene::new(Profile::Workspace);
        let script = format!("echo ran >>\"$ROOT/data/ran\"; {script}");
        let output = scene
            .command_by(Some(stale(&scene, true)), tier, &script)
            .output()
            .unwrap();
        let ran = std::fs::read_to_string(scene.path("data/ran")).unwrap();
        // Another program's socket may go away meanwhile, and the command be started again before it has begun.
        assert_eq!((output.status.code(), &*ran), (Some(status), "ran\n"), "{script}");
    }
}
