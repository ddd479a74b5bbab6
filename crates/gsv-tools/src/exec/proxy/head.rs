//! Reads the head of a request to the proxy. PURE. Strict: what two readers could read in two ways is refused, so that the host that was
//! decided about is the host that is asked.

use gsv_sandbox::Destination;

/// What a program wants of the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// `CONNECT`: bytes both ways.
    Tunnel(Destination),
    /// One request over plain HTTP; `head` is what its server gets, `body` the number of bytes after it.
    Request {
        destination: Destination,
        head: Vec<u8>,
        body: u64,
    },
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) reason: String,
}

pub(super) const HEAD_BYTES: usize = 16 * 1024;
const HEADERS: usize = 100;
/// Belong to one connection, so the proxy does not hand them on; `Connection` can name more.
const OF_THE_CONNECTION: [&str; 8] = [
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "content-length",
];

fn bad(reason: &str) -> Refusal {
    Refusal {
        status: 400,
        reason: format!("The request can't be read: {reason}."),
    }
}

struct Header<'a> {
    name: String,
    value: &'a str,
}

/// `head`: all bytes up to the empty line, with it.
pub(super) fn read_head(head: &[u8]) -> Result<Wish, Refusal> {
    let text = std::str::from_utf8(head).map_err(|_| bad("it is not text"))?;
    let text = text.strip_suffix("\r\n\r\n").ok_or_else(|| bad("it has no end"))?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("its first line has another form"));
    };
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(bad("its method has another form"));
    }
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || !target.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return Err(bad("its first line has another form"));
    }
    let headers: Vec<Header<'_>> = lines.map(header).collect::<Result<_, _>>()?;
    if headers.len() > HEADERS {
        return Err(bad("it has more than 100 headers"));
    }
    if method == "CONNECT" {
        let destination = Destination::parse(target, None).ok_or_else(|| bad("CONNECT needs a host and a port"))?;
        return Ok(Wish::Tunnel(destination));
    }
    request(method, target, version, &headers)
}

fn header(line: &str) -> Result<Header<'_>, Refusal> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(bad("the name of a header has another form"));
    }
    let value = value.trim_matches([' ', '\t']);
    if value.bytes().any(|byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f) {
        return Err(bad("a header has a control character"));
    }
    Ok(Header {
        name: name.to_ascii_lowercase(),
        value,
    })
}

fn request(method: &str, target: &str, version: &str, headers: &[Header<'_>]) -> Result<Wish, Refusal> {
    let Some(rest) = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://")) else {
        return Err(bad("a proxy needs the whole address, as in `GET http://example.org/`"));
    };
    let rest = target.get(rest.len()..).unwrap_or_default();
    if rest.contains('#') {
        return Err(bad("its address has a fragment"));
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let read = |authority: &str| Destination::parse(authority, Some(80));
    let destination = read(authority).ok_or_else(|| bad("its address names no host"))?;
    let mut hosts = headers.iter().filter(|header| header.name == "host");
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if read(host.value).as_ref() == Some(&destination) => {}
        _ => return Err(bad("its header Host is not the host of its address")),
    }
    let body = body(headers)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut lines = vec![
        format!("{method} {slash}{path} {version}"),
        format!("Host: {authority}"),
    ];
    if headers.iter().any(|header| header.name == "content-length") {
        lines.push(format!("Content-Length: {body}"));
    }
    let named: Vec<String> = (headers.iter())
        .filter(|header| header.name == "connection")
        .flat_map(|header| header.value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let is_ours = |name: &str| {
        OF_THE_CONNECTION.contains(&name) || name.starts_with("proxy-") || named.iter().any(|other| other == name)
    };
    let passed = headers.iter().filter(|header| !is_ours(&header.name));
    lines.extend(passed.map(|header| format!("{}: {}", header.name, header.value)));
    // One request on one connection: a second one could name another host.
    lines.push("Connection: close\r\n\r\n".into());
    Ok(Wish::Request {
        destination,
        head: lines.join("\r\n").into_bytes(),
        body,
    })
}

/// How many bytes follow.
fn body(headers: &[Header<'_>]) -> Result<u64, Refusal> {
    if headers.iter().any(|header| header.name == "transfer-encoding") {
        return Err(Refusal {
            status: 411,
            reason: "The proxy needs the length of a request over plain HTTP: send `Content-Length`, or use https."
                .into(),
        });
    }
    let mut lengths = headers.iter().filter(|header| header.name == "content-length");
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(0),
        (Some(length), None) if !length.value.is_empty() && length.value.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.value.parse().map_err(|_| bad("its length is too large"))
        }
        _ => Err(bad("its length has another form")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Wish, Refusal> {
        read_head(text.as_bytes())
    }

    #[test]
    fn sb16_a_request_goes_to_the_host_of_its_address_alone() {
        let text = "POST http://Example.org/a?b=c HTTP/1.1\r\nHost: example.org:80\r\nContent-Length: 3\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nProxy-Authorization: x\r\nUpgrade: websocket\r\nAccept: */*\r\n\r\n";
        let Ok(Wish::Request {
            destination,
            head,
            body,
        }) = read(text)
        else {
            panic!("{:?}", read(text));
        };
        assert_eq!((destination.to_string().as_str(), body), ("example.org", 3));
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "POST /a?b=c HTTP/1.1\r\nHost: Example.org\r\nContent-Length: 3\r\naccept: */*\r\nConnection: close\r\n\r\n"
        );
        let Ok(Wish::Request { head, .. }) = read("GET http://a.org:8080?x HTTP/1.1\r\nHost: a.org:8080\r\n\r\n")
        else {
            panic!("no request");
        };
        assert!(head.starts_with(b"GET /?x HTTP/1.1\r\nHost: a.org:8080\r\n"));
        assert!(matches!(
            read("CONNECT a.org:443 HTTP/1.1\r\n\r\n"),
            Ok(Wish::Tunnel(_))
        ));
    }

    #[test]
    fn sb16_what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "GET http://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: b.org\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nHost: a.org\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org:8080\r\n\r\n",
            "GET http://a.org@b.org/ HTTP/1.1\r\nHost: b.org\r\n\r\n",
            "GET http://b.org\\@a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET http://a.org#@b.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nContent-Length: +1\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding : chunked\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nX: a\r\n Host: b.org\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nX: a\nHost: b.org\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nX: a\rb\r\n\r\n",
            "GET http://a.org/\tx HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET  http://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET http://a.org/ HTTP/2\r\nHost: a.org\r\n\r\n",
            "GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n",
            "get http://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            " http://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT a.org:443/x HTTP/1.1\r\n\r\n",
            "CONNECT http://a.org:443 HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
            "GET",
        ] {
            assert!(read(text).is_err(), "{text:?}: {:?}", read(text));
        }
        let many = "X: y\r\n".repeat(HEADERS + 1);
        assert!(read(&format!("GET http://a.org/ HTTP/1.1\r\n{many}\r\n")).is_err());
    }
}
