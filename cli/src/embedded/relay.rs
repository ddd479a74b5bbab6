//! Lets other machines reach workerd: accepts TCP connections, ends TLS, and copies bytes to a socket of workerd. Knows nothing of HTTP.
//! The number of connections and the time for a handshake are bounded, so strangers can't take what programs on this machine need.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::worker::SharedLog;

/// Connections at once.
const CONNECTIONS: usize = 256;
/// Connections of one address: one machine must not take the slots of all others.
const CONNECTIONS_OF_ONE: usize = 64;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Between attempts to listen on an address that this machine does not have now.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);
/// After a failed accept, such as one for want of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// A peer that is gone without a word is found after two minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

#[derive(Clone)]
pub struct Relay {
    pub address: SocketAddr,
    /// `None`: plain bytes, for a proxy that ends TLS.
    pub tls: Option<Arc<ServerConfig>>,
    pub to: Destination,
}

#[derive(Debug, Clone)]
pub enum Destination {
    Port(u16),
    Socket(PathBuf),
}

/// Ends the relay and all its connections when dropped.
pub struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Relay {
    pub fn start(self, log: SharedLog) -> Running {
        Running(tokio::spawn(async move {
            let listener = self.listen(&log).await;
            log.line("relay", &format!("listening on {} for other machines", self.address));
            self.serve(listener).await;
        }))
    }

    async fn listen(&self, log: &SharedLog) -> TcpListener {
        let mut said = None;
        loop {
            match TcpListener::bind(self.address).await {
                Ok(listener) => return listener,
                Err(error) => {
                    let problem = format!("can't listen on {}: {error}; trying again", self.address);
                    if said.as_ref() != Some(&problem) {
                        log.line("relay", &problem);
                    }
                    said = Some(problem);
                    sleep(LISTEN_AGAIN).await;
                }
            }
        }
    }

    async fn serve(self, listener: TcpListener) {
        let slots = Slots::default();
        let mut tasks = Tasks::default();
        loop {
            let Ok((stream, peer)) = listener.accept().await else {
                sleep(ACCEPT_AGAIN).await;
                continue;
            };
            // Without a free slot the connection is closed at once.
            let Some(slot) = slots.take(peer.ip()) else { continue };
            let relay = self.clone();
            let carried = tokio::spawn(async move {
                let _slot = slot;
                let _ = relay.carry(stream).await;
            });
            tasks.add(carried.abort_handle());
        }
    }

    /// One connection, from its handshake to its end.
    async fn carry(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        match &self.tls {
            None => self.copy(stream).await,
            Some(config) => {
                let accept = TlsAcceptor::from(Arc::clone(config)).accept(stream);
                let stream = timeout(HANDSHAKE, accept).await??;
                self.copy(stream).await
            }
        }
    }

    async fn copy(&self, mut from: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        match &self.to {
            Destination::Port(port) => {
                let mut to = TcpStream::connect(("127.0.0.1", *port)).await?;
                to.set_nodelay(true)?;
                copy_bidirectional(&mut from, &mut to).await?;
            }
            Destination::Socket(path) => {
                let mut to = UnixStream::connect(path).await?;
                copy_bidirectional(&mut from, &mut to).await?;
            }
        }
        Ok(())
    }
}

fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    Ok(())
}

/// The connections that are open, so that they end with the relay.
#[derive(Default)]
struct Tasks(Vec<AbortHandle>);

impl Tasks {
    fn add(&mut self, task: AbortHandle) {
        self.0.retain(|task| !task.is_finished());
        self.0.push(task);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

#[derive(Clone, Default)]
struct Slots(Arc<Mutex<HashMap<IpAddr, usize>>>);

struct Slot {
    slots: Slots,
    ip: IpAddr,
}

impl Slots {
    fn take(&self, ip: IpAddr) -> Option<Slot> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let own = taken.get(&ip).copied().unwrap_or(0);
        if all >= CONNECTIONS || own >= CONNECTIONS_OF_ONE {
            return None;
        }
        taken.insert(ip, own + 1);
        Some(Slot {
            slots: self.clone(),
            ip,
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get(&self.ip).copied() {
            Some(count) if count > 1 => {
                taken.insert(self.ip, count - 1);
            }
            _ => {
                taken.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn rm5_connections_are_bounded_for_each_machine_and_for_all() {
        let slots = Slots::default();
        let ip = |last: u8| IpAddr::from([10, 0, 0, last]);
        let mut held: Vec<_> = (0..CONNECTIONS_OF_ONE).map(|_| slots.take(ip(1)).unwrap()).collect();
        assert!(slots.take(ip(1)).is_none(), "one machine has its share");
        for last in 2..=4 {
            held.extend((0..CONNECTIONS_OF_ONE).map(|_| slots.take(ip(last)).unwrap()));
        }
        assert_eq!(held.len(), CONNECTIONS);
        assert!(slots.take(ip(9)).is_none(), "all slots are taken");
        held.pop();
        let last = slots.take(ip(9));
        assert!(last.is_some(), "a slot that was released is free");
        drop((held, last));
        assert!(slots.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn rm5_bytes_go_both_ways_until_one_side_ends_and_all_ends_with_the_relay() {
        let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Relay {
            address: "127.0.0.1:0".parse().unwrap(),
            tls: None,
            to: Destination::Port(target.local_addr().unwrap().port()),
        };
        let listener = TcpListener::bind(relay.address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let running = Running(tokio::spawn(relay.serve(listener)));
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut server, _) = target.accept().await.unwrap();
        client.write_all(b"ask").await.unwrap();
        let mut read = [0; 3];
        server.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"ask");
        server.write_all(b"yes").await.unwrap();
        client.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"yes");
        drop(running);
        assert_eq!(client.read(&mut read).await.unwrap_or(0), 0, "the connection is closed");
        assert_eq!(server.read(&mut read).await.unwrap_or(0), 0, "on both sides");
    }
}
