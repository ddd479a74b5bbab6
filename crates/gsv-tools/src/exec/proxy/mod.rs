//! The way of one sandboxed command to the network: a proxy on a Unix socket in the command's folder, which a bridge in the sandbox
//! connects to. It admits the hosts of the command, resolves their names itself, and remembers what it refused. One task per command;
//! when it is dropped, its connections end. `head` reads requests, `door` decides and connects, `relay` moves bytes.

mod door;
mod head;
mod relay;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gsv_sandbox::Hosts;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use self::door::Door;
use self::head::{Wish, read_head};
use self::relay::{answer, exchange, too_long, tunnel, whole_head};

/// Connections of one command at once; further ones are closed.
const CONNECTIONS: usize = 64;
/// For the head of a request, and for a connection to be made.
const PATIENCE: Duration = Duration::from_secs(15);
/// After a failed `accept`.
const PAUSE: Duration = Duration::from_millis(50);

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
        Self::listen(socket, Door::new(hosts, refused), PATIENCE)
    }

    /// `patience`: for the head of a request.
    fn listen(socket: &Path, door: Door, patience: Duration) -> io::Result<Self> {
        let listener = bind(socket)?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        Ok(Self(
            tokio::spawn(serve(listener, Arc::new(door), patience)).abort_handle(),
        ))
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

async fn serve(listener: UnixListener, door: Arc<Door>, patience: Duration) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No file numbers are free: later there may be some.
            tokio::time::sleep(PAUSE).await;
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
            let _ = pass(&door, stream, patience).await;
        });
    }
}

async fn pass(door: &Door, mut inside: UnixStream, patience: Duration) -> io::Result<()> {
    let (head, rest) = match timeout(patience, whole_head(&mut inside)).await {
        Ok(Ok(Some(read))) => read,
        Ok(Ok(None)) => return answer(inside, &too_long()).await,
        Ok(Err(error)) => return Err(error),
        Err(_) => return Ok(()),
    };
    let connected = match read_head(&head) {
        Ok(wish) => door.connect(&wish).await.map(|outside| (wish, outside)),
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use gsv_sandbox::HostRule;
    use tempfile::TempDir;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::head::HEAD_BYTES;
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
        assert_eq!(asked.refused(), "", "to ask for it again would not help");
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
    async fn sb16_a_head_that_is_too_long_is_refused_and_one_in_pieces_is_read() {
        let lab = Lab::new(&[], &[]);
        let answer = lab.send(&format!("GET http://{}", "a".repeat(HEAD_BYTES))).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        let mut stream = UnixStream::connect(lab.dir.path().join("proxy")).await.unwrap();
        for byte in b"CONNECT a.org:443 HTTP/1.1\r\n\r\n" {
            stream.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }

    #[tokio::test]
    async fn sb16_a_head_that_does_not_come_ends_its_connection() {
        let dir = TempDir::new().unwrap();
        let socket = dir.path().join("proxy");
        let door = Door::new(Hosts::default(), dir.path().join("refused"));
        let _proxy = Proxy::listen(&socket, door, Duration::from_millis(20)).unwrap();
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        stream.write_all(b"GET ").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "");
    }

    #[tokio::test]
    async fn sb16_one_connection_more_than_the_bound_is_closed() {
        let lab = Lab::new(&[], &[]);
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS {
            open.push(UnixStream::connect(lab.dir.path().join("proxy")).await.unwrap());
        }
        let mut more = UnixStream::connect(lab.dir.path().join("proxy")).await.unwrap();
        let mut answer = String::new();
        more.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "");
        drop(open);
    }

    #[tokio::test]
    async fn sb14_the_proxy_ends_with_its_command() {
        let Lab { dir, _proxy: proxy } = Lab::new(&[], &[]);
        let socket = dir.path().join("proxy");
        assert!(UnixStream::connect(&socket).await.is_ok());
        drop(proxy);
        let ends = async {
            while UnixStream::connect(&socket).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), ends).await.expect("it still listens");
    }

    #[tokio::test]
    async fn sb16_a_tunnel_carries_bytes_both_ways() {
        let (port, server) = mirror().await;
        let lab = Lab::new(&[format!("127.0.0.1:{port}")], &[]);
        let answer = lab
            .send(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello END"))
            .await;
        assert!(
            answer.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n")
                && answer.ends_with("got: hello END"),
            "{answer}"
        );
        server.abort();
        assert_eq!(lab.refused(), "");
    }
}
