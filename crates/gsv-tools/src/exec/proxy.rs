//! The way of one sandboxed command to the network: a proxy on a Unix socket in the command's folder, which a bridge in the sandbox
//! connects to. It admits the hosts of the command, resolves their names itself, and remembers what it refused. One task per command;
//! when it is dropped, its connections end.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gsv_sandbox::{Destination, Host, Hosts, Reach};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::proxy_head::{HEAD_BYTES, Refusal, Wish, read_head};

/// Connections of one command at once; further ones are closed.
const CONNECTIONS: usize = 64;
/// For the head of a request, and for a connection to be made.
const PATIENCE: Duration = Duration::from_secs(15);
/// A connection without a byte in either direction ends.
const IDLE: Duration = Duration::from_secs(600);
/// Addresses of a name that are tried.
const ADDRESSES: usize = 4;
/// Refused hosts that are remembered.
const REFUSED: usize = 20;

/// Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Proxy(AbortHandle);

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Proxy {
    /// Listens on `socket`. `refused`: the file that gets a line for each host that was not admitted.
    ///
    /// # Errors
    /// The socket can't be made.
    pub(super) fn open(socket: &Path, refused: PathBuf, hosts: Hosts) -> io::Result<Self> {
        let listener = bind(socket)?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let door = Arc::new(Door {
            hosts,
            refused,
            seen: Mutex::default(),
        });
        Ok(Self(tokio::spawn(serve(listener, door)).abort_handle()))
    }
}

/// A socket's address has room for about 100 bytes, and the path of a command's folder may be longer.
fn bind(socket: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    use std::os::fd::AsRawFd as _;
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(folder)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    std::os::unix::net::UnixListener::bind(short)
}

async fn serve(listener: UnixListener, door: Arc<Door>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No file numbers are free: later there may be some.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        while open.try_join_next().is_some() {}
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            continue;
        };
        let door = Arc::clone(&door);
        open.spawn(async move {
            let _slot = slot;
            // The program sees the end of its connection.
            let _ = door.pass(stream).await;
        });
    }
}

struct Door {
    hosts: Hosts,
    refused: PathBuf,
    seen: Mutex<BTreeSet<String>>,
}

impl Door {
    async fn pass(&self, mut inside: UnixStream) -> io::Result<()> {
        let (head, rest) = match timeout(PATIENCE, whole_head(&mut inside)).await {
            Ok(Ok(Some(read))) => read,
            Ok(Ok(None)) => return answer(inside, &too_long()).await,
            Ok(Err(error)) => return Err(error),
            Err(_) => return Ok(()),
        };
        let connected = match read_head(&head) {
            Ok(wish) => self.connect(&wish).await.map(|outside| (wish, outside)),
            Err(refusal) => Err(refusal),
        };
        match connected {
            Ok((Wish::Tunnel(_), outside)) => {
                inside.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                tunnel(inside, outside, &rest).await
            }
            Ok((Wish::Request { head, body, .. }, outside)) => exchange(inside, outside, &head, &rest, body).await,
            Err(refusal) => answer(inside, &refusal).await,
        }
    }

    async fn connect(&self, wish: &Wish) -> Result<TcpStream, Refusal> {
        let (Wish::Tunnel(destination) | Wish::Request { destination, .. }) = wish;
        let Some(reach) = self.hosts.reach(destination) else {
            self.remember(destination);
            return Err(Refusal {
                status: 403,
                reason: format!("The sandbox does not let this command reach {destination}."),
            });
        };
        let failed = |reason: String| Refusal { status: 502, reason };
        let found = timeout(PATIENCE, addresses(destination)).await;
        let found = found
            .map_err(|_| failed(format!("{destination} was not found in time.")))?
            .map_err(|error| failed(format!("{destination} was not found: {error}.")))?;
        let usable = usable(reach, &found);
        if usable.is_empty() {
            return Err(Refusal {
                status: 403,
                reason: format!(
                    "{destination} stands for an address of this machine or its network, which only the owner of the machine can open (`network` in node.toml)."
                ),
            });
        }
        let mut last = String::new();
        // The addresses that were checked: to resolve the name again could give another one.
        for address in usable {
            match timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => "it did not answer in time".clone_into(&mut last),
            }
        }
        Err(failed(format!("{destination} can't be reached: {last}.")))
    }

    /// Each host once, in a file that outlives the node.
    fn remember(&self, destination: &Destination) {
        use std::io::Write as _;
        let host = destination.to_string();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REFUSED || !seen.insert(host.clone()) {
            return;
        }
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.refused);
        // Without the line, the program's own words remain.
        let _ = file.and_then(|mut file| file.write_all(format!("{host}\n").as_bytes()));
    }
}

async fn addresses(destination: &Destination) -> io::Result<Vec<SocketAddr>> {
    match &destination.host {
        Host::Address(address) => Ok(vec![SocketAddr::new(*address, destination.port)]),
        Host::Name(name) => Ok(tokio::net::lookup_host((name.as_str(), destination.port))
            .await?
            .collect()),
    }
}

/// The addresses of a host that may be connected to.
fn usable(reach: Reach, found: &[SocketAddr]) -> Vec<SocketAddr> {
    let usable = found.iter().filter(|address| reach.admits(address.ip()));
    usable.copied().take(ADDRESSES).collect()
}

fn too_long() -> Refusal {
    Refusal {
        status: 431,
        reason: "The head of the request is too long.".into(),
    }
}

/// The head, and what follows it. `None`: it is too long.
async fn whole_head(stream: &mut UnixStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut head = Vec::with_capacity(1024);
    loop {
        if let Some(at) = head.windows(4).position(|part| part == b"\r\n\r\n") {
            let rest = head.split_off(at + 4);
            return Ok(Some((head, rest)));
        }
        if head.len() >= HEAD_BYTES {
            return Ok(None);
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn answer(mut inside: UnixStream, refusal: &Refusal) -> io::Result<()> {
    let Refusal { status, reason } = refusal;
    let text = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\nX-GSV-Reason: {reason}\r\n\r\nGSV: {reason}\n",
        if *status == 403 { "Forbidden" } else { "Not passed on" },
        reason.len() + 6,
    );
    timeout(PATIENCE, inside.write_all(text.as_bytes())).await??;
    inside.shutdown().await?;
    // A connection with unread bytes would be reset, and the answer lost.
    let mut rest = tokio::io::sink();
    let _ = timeout(
        Duration::from_secs(2),
        tokio::io::copy(&mut inside.take(1 << 20), &mut rest),
    )
    .await;
    Ok(())
}

async fn tunnel(inside: UnixStream, mut outside: TcpStream, rest: &[u8]) -> io::Result<()> {
    let idle = Idle::new();
    idle.bounded(outside.write_all(rest)).await?;
    let (from_inside, to_inside) = inside.into_split();
    let (from_outside, to_outside) = outside.into_split();
    tokio::try_join!(idle.copy(from_inside, to_outside), idle.copy(from_outside, to_inside))?;
    Ok(())
}

/// Sends exactly one request. What follows its body is not read.
async fn exchange(inside: UnixStream, mut outside: TcpStream, head: &[u8], rest: &[u8], body: u64) -> io::Result<()> {
    let idle = Idle::new();
    idle.bounded(outside.write_all(head)).await?;
    let first = usize::try_from(body).unwrap_or(usize::MAX).min(rest.len());
    let first = rest.get(..first).unwrap_or_default();
    idle.bounded(outside.write_all(first)).await?;
    let left = body.saturating_sub(u64::try_from(first.len()).unwrap_or(u64::MAX));
    let (from_inside, to_inside) = inside.into_split();
    let (from_outside, to_outside) = outside.into_split();
    let (mut body, mut to_outside) = (from_inside.take(left), to_outside);
    let send = async {
        // Its server may have answered already; the half that sends stays open until the answer has ended.
        let _ = idle.copy_only(&mut body, &mut to_outside).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answered = idle.copy(from_outside, to_inside) => answered,
        () = send => Ok(()),
    }
}

/// The time of the last byte of a connection.
struct Idle(Mutex<Instant>);

impl Idle {
    fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails when neither this work nor another one of the connection has moved a byte for too long.
    async fn bounded<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::pin!(work);
        loop {
            let until = *self.last() + IDLE;
            tokio::select! {
                done = &mut work => {
                    *self.last() = Instant::now();
                    return done;
                }
                () = sleep_until(until) => {
                    if *self.last() + IDLE <= Instant::now() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
            }
        }
    }

    async fn copy_only(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let count = self.bounded(from.read(&mut buffer)).await?;
            if count == 0 {
                return Ok(());
            }
            self.bounded(to.write_all(buffer.get(..count).unwrap_or_default()))
                .await?;
        }
    }

    /// With the end.
    async fn copy(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        self.copy_only(&mut from, &mut to).await?;
        to.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use gsv_sandbox::HostRule;
    use tempfile::TempDir;
    use tokio::net::TcpListener;

    use super::*;

    struct Lab {
        dir: TempDir,
        _proxy: Proxy,
    }

    impl Lab {
        fn new(listed: &[String], asked: &[String]) -> Self {
            let dir = TempDir::new().unwrap();
            let rules = |texts: &[String]| texts.iter().map(|text| HostRule::parse(text).unwrap()).collect();
            let hosts = Hosts {
                listed: rules(listed),
                asked: rules(asked),
            };
            let proxy = Proxy::open(&dir.path().join("proxy"), dir.path().join("refused"), hosts).unwrap();
            Self { dir, _proxy: proxy }
        }

        async fn send(&self, text: &str) -> String {
            let mut stream = UnixStream::connect(self.dir.path().join("proxy")).await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }

        fn refused(&self) -> String {
            std::fs::read_to_string(self.dir.path().join("refused")).unwrap_or_default()
        }
    }

    /// Answers each connection with what it has got up to the empty line, and ends it.
    async fn mirror() -> (u16, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut got = Vec::new();
                    while !got.ends_with(b"END") && stream.read_buf(&mut got).await.unwrap() > 0 {}
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\ngot: ").await.unwrap();
                    stream.write_all(&got).await.unwrap();
                });
            }
        });
        (port, task)
    }

    #[tokio::test]
    async fn sb14_a_host_that_is_not_listed_is_refused_by_name_and_remembered_once() {
        let lab = Lab::new(&[], &["other.org".into()]);
        for _ in 0..2 {
            let answer = lab
                .send("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n")
                .await;
            assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
            assert!(answer.ends_with("reach example.org.\n"), "{answer}");
        }
        let answer = lab.send("CONNECT example.org:22 HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        let answer = lab.send("GET / HTTP/1.1\r\nHost: other.org\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert_eq!(lab.refused(), "example.org\nexample.org:22\n");
    }

    #[tokio::test]
    async fn sb15_a_name_of_this_machine_is_reached_only_when_its_owner_has_listed_it() {
        let (port, server) = mirror().await;
        let name = format!("localhost:{port}");
        let request = format!(
            "GET http://{name}/x?END HTTP/1.1\r\nHost: {name}\r\nContent-Length: 3\r\n\r\nEND and GET http://b.org/"
        );
        let asked = Lab::new(&[], std::slice::from_ref(&name));
        let answer = asked.send(&request).await;
        assert!(
            answer.starts_with("HTTP/1.1 403") && answer.contains("node.toml"),
            "{answer}"
        );
        let listed = Lab::new(std::slice::from_ref(&name), &[]);
        let answer = listed.send(&request).await;
        assert!(answer.contains("got: GET /x?END HTTP/1.1\r\n"), "{answer}");
        assert!(
            answer.ends_with("\r\n\r\nEND"),
            "one request on one connection: {answer}"
        );
        server.abort();
    }

    #[tokio::test]
    async fn sb16_a_tunnel_carries_bytes_both_ways() {
        let (port, server) = mirror().await;
        let lab = Lab::new(&[format!("127.0.0.1:{port}")], &[]);
        let answer = lab
            .send(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello END"))
            .await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("got: hello END"),
            "{answer}"
        );
        server.abort();
        assert_eq!(lab.refused(), "");
    }

    #[test]
    fn sb15_only_the_public_addresses_of_a_name_are_used() {
        let found = ["127.0.0.1:80", "8.8.8.8:80", "[::1]:80", "169.254.169.254:80"];
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let [own, public, ..] = found.as_slice() else { panic!() };
        assert_eq!(usable(Reach::Public, &found), [*public]);
        assert_eq!(usable(Reach::Any, &found), found);
        assert!(usable(Reach::Public, &[*own]).is_empty());
    }
}
