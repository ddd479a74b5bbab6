//! Reads a file of a release: whole and with a limit, or into a file while its hash is computed. Follows few redirects, sends nothing about
//! this machine, and uses no proxy. Believes nothing of what it reads.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use data_encoding::HEXLOWER;
use gsv_link::http::{self, Answer};
use gsv_link::{Target, open_bytes};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HOST, LOCATION, USER_AGENT};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::{Request, StatusCode, Uri};
use ring::digest::{Context, SHA256};
use tokio::time::timeout;

use super::address::{Address, redirected};
use super::manifest;
use crate::exit::{Failure, OrFail, Outcome};

const MAX_REDIRECTS: usize = 5;
/// For a connection, for an answer, and for each further part of it.
const PATIENCE: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 64 * 1024;
const NEXT: &str = "Check the address (`gsv local-config get update.url`) and the connection of this machine, then run the command again.";

/// A small file.
pub async fn small(address: &Address, max_bytes: usize) -> Outcome<Vec<u8>> {
    let mut content = Vec::new();
    let mut take = |bytes: &[u8]| {
        content.extend_from_slice(bytes);
        if content.len() > max_bytes {
            return Err(Failure::failed(
                format!("{} is larger than any release's.", shown(address)),
                NEXT,
            ));
        }
        Ok(())
    };
    read(address, &mut take).await?;
    Ok(content)
}

/// The file of a manifest, verified against it. What is in `to` after a failure is not verified.
pub async fn verified(address: &Address, wanted: &manifest::File, to: &Path) -> Outcome {
    let mut file = File::create_new(to).or_fail(format_args!("write {}", to.display()), NEXT)?;
    let (mut hash, mut size) = (Context::new(&SHA256), 0_u64);
    let mut take = |bytes: &[u8]| {
        size += bytes.len() as u64;
        if size > wanted.size_bytes {
            return Err(differs(&wanted.name, "it is larger"));
        }
        hash.update(bytes);
        file.write_all(bytes)
            .or_fail(format_args!("write {}", to.display()), NEXT)
    };
    read(address, &mut take).await?;
    if size != wanted.size_bytes {
        return Err(differs(&wanted.name, "it is shorter"));
    }
    if HEXLOWER.encode(hash.finish().as_ref()) != wanted.sha256 {
        return Err(differs(&wanted.name, "its content is another"));
    }
    Ok(())
}

fn differs(name: &str, how: &str) -> Failure {
    Failure::failed(
        format!("{name} is not the file that the signed manifest names: {how}. Nothing was replaced."),
        "Run the command again. If it fails again, tell those who publish the releases.",
    )
}

async fn read(address: &Address, take: &mut impl FnMut(&[u8]) -> Outcome) -> Outcome {
    match address {
        Address::Folder(path) => read_file(path, take),
        Address::Server(uri) => read_server(uri, take).await,
    }
}

fn read_file(path: &Path, take: &mut impl FnMut(&[u8]) -> Outcome) -> Outcome {
    let doing = || format!("read {}", path.display());
    let mut file = File::open(path).or_fail(doing(), NEXT)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer).or_fail(doing(), NEXT)? {
            0 => return Ok(()),
            count => take(buffer.get(..count).unwrap_or_default())?,
        }
    }
}

async fn read_server(uri: &Uri, take: &mut impl FnMut(&[u8]) -> Outcome) -> Outcome {
    let failed = |why: &str| Failure::failed(format!("Could not read {}: {why}.", without_query(uri)), NEXT);
    let mut at = uri.clone();
    for _ in 0..=MAX_REDIRECTS {
        let answer = timeout(PATIENCE, ask(&at))
            .await
            .unwrap_or_else(|_| Err("there is no answer".into()));
        let mut answer = answer.map_err(|why| failed(&why))?;
        if answer.status().is_redirection() {
            let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let to = location.and_then(|location| redirected(&at, location));
            at = to.ok_or_else(|| {
                failed("the server sends the request to an address that is not encrypted or not valid")
            })?;
            continue;
        }
        if answer.status() != StatusCode::OK {
            return Err(failed(&format!(
                "the server answers with status {}",
                answer.status().as_u16()
            )));
        }
        loop {
            let next = timeout(PATIENCE, answer.next()).await;
            match next.map_err(|_| failed("the server does not go on"))? {
                None => return Ok(()),
                Some(part) => take(&part.map_err(|why| failed(&why))?)?,
            }
        }
    }
    Err(failed("the server sends the request on and on"))
}

async fn ask(uri: &Uri) -> Result<Answer, String> {
    let target = Target::parse(&uri.to_string()).map_err(|error| error.to_string())?;
    let request = Request::get(uri.path_and_query().map_or("/", PathAndQuery::as_str))
        .header(HOST, uri.authority().map_or("", Authority::as_str))
        .header(USER_AGENT, "gsv")
        .header(ACCEPT, "*/*")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let socket = open_bytes(&target, PATIENCE).await?;
    http::send(socket, request).await.map_err(|error| error.to_string())
}

/// A redirect's query may be a secret of the server's.
fn without_query(uri: &Uri) -> String {
    let text = uri.to_string();
    text.split('?').next().unwrap_or_default().to_owned()
}

fn shown(address: &Address) -> String {
    match address {
        Address::Folder(path) => path.display().to_string(),
        Address::Server(uri) => without_query(uri),
    }
}
