//! `gsv up --listen` with the real workerd and a tiny Worker.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::common::mode;
use crate::common::runtime::{Embedded, free_port};

fn listened(gateway: &Embedded) -> serde_json::Value {
    serde_json::from_str(&gateway.gsv(&["up", "--json"]).ok().stdout).unwrap()
}

/// Sends plain HTTP and reads all that comes.
fn plain(address: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn rm1_an_address_for_other_machines_is_encrypted_remembered_and_removed() {
    let gateway = Embedded::new();
    let port = gateway.port.to_string();
    let address = format!("127.0.0.2:{}", free_port());
    let run = gateway.gsv(&["up", "--port", &port, "--listen", &address]).ok();
    assert_eq!(
        run.stdout,
        format!("ws://127.0.0.1:{port}/ws\n"),
        "this machine's address stays"
    );
    let first = listened(&gateway);
    let fingerprint = first["listening"]["fingerprint"].as_str().unwrap();
    assert_eq!(first["listening"]["address"], address);
    assert!(
        run.stderr.contains(&address) && run.stderr.contains(fingerprint),
        "{}",
        run.stderr
    );
    assert_eq!(gateway.get("/health").unwrap()["ok"], true);
    assert!(
        !plain(&address, "127.0.0.2").contains("HTTP/1.1 200"),
        "without TLS there is no answer"
    );
    let files = gateway.home.state().join("gateway");
    for file in ["tls.pem", "listen.json"] {
        assert_eq!(mode(&files.join(file)), 0o600, "{file}");
    }
    let key = fs::read_to_string(files.join("tls.pem")).unwrap();
    let config = fs::read_to_string(files.join("config.capnp")).unwrap();
    assert!(key.contains("PRIVATE KEY") && !config.contains("PRIVATE KEY"));

    let other = gateway.gsv(&["up", "--listen", "127.0.0.3:1234"]).failed(1);
    assert!(other.stderr.contains("gsv down"), "{}", other.stderr);
    gateway.gsv(&["down"]).ok();
    assert!(TcpStream::connect(&address).is_err());
    gateway.gsv(&["up"]).ok();
    assert_eq!(
        listened(&gateway)["listening"],
        first["listening"],
        "also the certificate is the same"
    );
    gateway.gsv(&["down"]).ok();
    gateway.gsv(&["up", "--listen", "none"]).ok();
    assert_eq!(listened(&gateway)["listening"], serde_json::Value::Null);
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn rm3_behind_a_proxy_the_address_is_plain_and_the_output_says_so() {
    let gateway = Embedded::new();
    let port = gateway.port.to_string();
    let address = format!("127.0.0.2:{}", free_port());
    let args = [
        "up",
        "--port",
        &port,
        "--listen",
        &address,
        "--behind-proxy",
        "gsv.example.org",
    ];
    let run = gateway.gsv(&args).ok();
    assert!(run.stderr.contains("not encrypted"), "{}", run.stderr);
    assert!(plain(&address, "gsv.example.org").contains("HTTP/1.1 200"));
    let config = fs::read_to_string(gateway.home.state().join("gateway/config.capnp")).unwrap();
    assert!(
        config.contains(r#"(name = "ALLOWED_HOSTS", text = "gsv.example.org")"#),
        "{config}"
    );
}

#[test]
fn rm1_an_address_that_can_t_be_used_is_refused_and_not_remembered() {
    let gateway = Embedded::new();
    let port = gateway.port.to_string();
    for (listen, status, says) in [
        (format!("127.0.0.1:{port}"), 2, "another port"),
        ("192.0.2.1:8788".to_owned(), 1, "of this machine"),
        ("8788".to_owned(), 2, "an IP address and a port"),
    ] {
        let run = gateway
            .gsv(&["up", "--port", &port, "--listen", &listen])
            .failed(status);
        assert!(run.stderr.contains(says), "{listen}: {}", run.stderr);
    }
    let alone = gateway.gsv(&["up", "--behind-proxy", "gsv.example.org"]).failed(2);
    assert!(alone.stderr.contains("--listen"), "{}", alone.stderr);
    gateway.gsv(&["up", "--port", &port]).ok();
    assert_eq!(listened(&gateway)["listening"], serde_json::Value::Null);
}

#[test]
fn rm5_a_crash_of_workerd_leaves_the_listener() {
    let gateway = Embedded::new();
    let port = gateway.port.to_string();
    let address = format!("127.0.0.2:{}", free_port());
    gateway.gsv(&["up", "--port", &port, "--listen", &address]).ok();
    let pid = gateway.pid("workerdPid").unwrap();
    crate::common::runtime::kill(pid);
    crate::common::wait_for("a new workerd", || {
        gateway.pid("workerdPid").filter(|now| *now != pid)?;
        gateway.get("/health")
    });
    assert!(TcpStream::connect(&address).is_ok());
}
