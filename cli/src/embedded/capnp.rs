//! workerd's configuration as text. Pure. It holds the hash of the first admin token, never the token.

use std::fmt::Write;
use std::path::Path;

use super::runtime::Manifest;
use crate::exit::{Failure, Outcome};

#[derive(Debug)]
pub struct Settings<'a> {
    pub manifest: &'a Manifest,
    pub port: u16,
    /// sha256, hex.
    pub bootstrap_hash: &'a str,
    pub durable: &'a Path,
    pub workspace: &'a Path,
}

/// The file's content. `worker.js` and `r2.js` are embedded from the folder that the file is in.
pub fn config(settings: &Settings) -> Outcome<String> {
    let date = text(&settings.manifest.compatibility_date);
    let flags = settings
        .manifest
        .compatibility_flags
        .iter()
        .map(|flag| text(flag))
        .collect::<Vec<_>>()
        .join(", ");
    Ok(format!(
        r#"# Written by `gsv up`; changes are lost at its next start.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "gsv", worker = .gsv),
    (name = "r2", worker = .r2),
    (name = "do-disk", disk = (path = {durable}, writable = true)),
    (name = "files", disk = (path = {workspace}, writable = true)),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true)))
  ],
  sockets = [ (name = "http", address = "127.0.0.1:{port}", http = (), service = "gsv") ]
);

const gsv :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "worker.js") ],
  compatibilityDate = {date},
  compatibilityFlags = [{flags}],
  durableObjectNamespaces = [
    (className = "Gateway", uniqueKey = "gsv-Gateway", enableSql = true),
    (className = "Session", uniqueKey = "gsv-Session", enableSql = true),
    (className = "SearchIndex", uniqueKey = "gsv-SearchIndex", enableSql = true)
  ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [
    (name = "GATEWAY", durableObjectNamespace = "Gateway"),
    (name = "SESSION", durableObjectNamespace = "Session"),
    (name = "SEARCH", durableObjectNamespace = "SearchIndex"),
    (name = "STORAGE", r2Bucket = "r2"),
    (name = "ENVIRONMENT", text = "embedded"),
    (name = "VERSION", text = {version}),
    (name = "BOOTSTRAP_TOKEN_HASH", text = {hash})
  ]
);

const r2 :Workerd.Worker = (
  modules = [ (name = "r2.js", esModule = embed "r2.js") ],
  compatibilityDate = {date},
  durableObjectNamespaces = [ (className = "R2", uniqueKey = "R2", enableSql = true) ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [ (name = "NS", durableObjectNamespace = "R2"), (name = "FS", service = "files") ]
);
"#,
        durable = path(settings.durable)?,
        workspace = path(settings.workspace)?,
        port = settings.port,
        version = text(&settings.manifest.version),
        hash = text(settings.bootstrap_hash),
    ))
}

fn path(path: &Path) -> Outcome<String> {
    path.to_str().map(text).ok_or_else(|| {
        Failure::failed(
            format!("The path {} is not UTF-8.", path.display()),
            "Set GSV_HOME to a folder with a plain name.",
        )
    })
}

/// A Cap'n Proto text literal.
fn text(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            _ if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_escaped() {
        assert_eq!(text("a\"b\\c\nd é"), r#""a\"b\\c\x0ad é""#);
    }

    #[test]
    fn s2_only_loopback_is_listened_on_and_the_hash_is_bound() {
        let manifest = Manifest {
            version: "1".into(),
            compatibility_date: "2026-11-01".into(),
            compatibility_flags: vec!["x".into(), "y".into()],
        };
        let settings = Settings {
            manifest: &manifest,
            port: 9,
            bootstrap_hash: "ab",
            durable: Path::new("/d"),
            workspace: Path::new("/w"),
        };
        let config = config(&settings).unwrap();
        assert!(config.contains(r#"address = "127.0.0.1:9""#));
        assert!(config.contains(r#"(name = "BOOTSTRAP_TOKEN_HASH", text = "ab")"#));
        assert!(config.contains(r#"compatibilityFlags = ["x", "y"]"#));
    }
}
