//! The way from the sandbox to the node's proxy: a process of its own inside, which hands connections to a port of the sandbox's loopback
//! on to the node's Unix socket. It decides nothing; the proxy does. It ends with the sandbox.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connections at once. The proxy has its own bound; this one is for the bridge's memory.
const CONNECTIONS: usize = 64;
/// After a failed `accept`, such as one without free file numbers.
const PAUSE: Duration = Duration::from_millis(20);

/// Variables that programs look for.
const NAMES: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Starts the bridge. `socket`: the number of an open file that is the node's socket.
///
/// # Errors
/// A sentence; there is no network then.
#[allow(
    unsafe_code,
    reason = "another way to a second process would start this program once more"
)]
pub(crate) fn start(socket: &str) -> Result<Vec<(&'static str, String)>, String> {
    let failed = |error: io::Error| format!("the way to the node's proxy can't be opened: {error}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    // Before there are two: the command's programs must not look into the bridge. A program that is started can be looked into again.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| failed(error.into()))?;
    // SAFETY: this process has one thread, so no lock is held that the child could wait for.
    match unsafe { libc::fork() } {
        -1 => Err(failed(io::Error::last_os_error())),
        0 => serve(&listener, &format!("/proc/self/fd/{socket}")),
        _ => {
            let address = format!("http://127.0.0.1:{port}");
            Ok(NAMES.map(|name| (name, address.clone())).into())
        }
    }
}

/// Never returns: the process ends with the sandbox.
fn serve(listener: &TcpListener, socket: &str) -> ! {
    leave_the_command();
    let busy = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((inside, _)) = listener.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        if busy.load(Ordering::Relaxed) >= CONNECTIONS {
            continue;
        }
        let Ok(outside) = UnixStream::connect(socket) else {
            continue;
        };
        let slot = Slot::new(&busy);
        // Without a thread the connection is closed.
        let _ = std::thread::Builder::new().spawn(move || {
            let _slot = slot;
            let _ = both_ways(&inside, &outside);
        });
    }
}

struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn new(busy: &Arc<AtomicUsize>) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(busy))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The command's output must end when the command does, and its signals are not meant for the bridge.
fn leave_the_command() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    let _ = rustix::process::setsid();
}

fn both_ways(inside: &TcpStream, outside: &UnixStream) -> io::Result<()> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = copy(inside, outside);
            let _ = outside.shutdown(Shutdown::Write);
        });
        let _ = copy(outside, inside);
        inside.shutdown(Shutdown::Write)
    })
}

fn copy(mut from: impl io::Read, mut to: impl io::Write) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(buffer.get(..count).unwrap_or_default())?;
    }
}
