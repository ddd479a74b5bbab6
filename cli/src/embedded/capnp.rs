//! The configuration of workerd, as text. Pure. It holds the hash of the first admin token, never the token. Each channel is
//! a Worker of its own, with its own objects; it reaches the gateway only at the entry point for channels, which knows it by the
//! binding's props, and it has no access to the bucket.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use super::channel_name::Name;
use super::channel_run::Channel;
use super::cluster::{Cluster, KEY_FILE, Place};
use super::layout::REMOTE_SOCKET;
use super::listen::Listen;
use super::literals::{text, texts};
use super::runtime::{Manifest, ModuleName};
use super::{sealing_key, services};
use crate::exit::{Failure, Outcome};

pub struct Settings<'a> {
    pub manifest: &'a Manifest,
    pub port: u16,
    /// sha256, hex.
    pub bootstrap_hash: &'a str,
    pub durable: &'a Path,
    pub workspace: &'a Path,
    /// The folder of what the gateway loads on first use.
    pub modules: &'a Path,
    /// The folder of large values of the key-value store.
    pub kv: &'a Path,
    pub channels: &'a [Channel],
    /// Where it listens for other machines.
    pub listen: Option<&'a Listen>,
    /// The id of a restored copy, and the command that lets it act.
    pub start_stopped: Option<(&'a str, &'a str)>,
    pub cluster: Option<Clustered<'a>>,
}

/// This machine as an instance of a cluster.
pub struct Clustered<'a> {
    pub cluster: &'a Cluster,
    pub place: &'a Place,
    /// The file with the bucket's keys, which workerd reads.
    pub keys: &'a Path,
}

/// Modules that run in isolates of their own, which end with the file that they read (gateway/src/app/reader-service.ts).
const READERS: [&str; 4] = ["pdf.mjs", "documents.mjs", "images.mjs", "photon_rs_bg.wasm"];

/// With this flag, workerd compiles a module of the gateway when it is first imported, and not all of them at its start. On Cloudflare, and
/// in the tests in the Workers runtime, the gateway runs without it: the end-to-end tests show that both ways load the same modules.
const LAZY_MODULES: &str = "new_module_registry";

/// The modules that the gateway itself imports on first use.
fn own_modules(manifest: &Manifest) -> String {
    let mut modules = String::new();
    for name in manifest.modules.iter().map(ModuleName::as_str) {
        let extension = Path::new(name).extension().and_then(OsStr::to_str);
        let kind = match extension {
            Some("mjs") => "esModule",
            Some("wasm") => "wasm",
            _ => continue,
        };
        if !READERS.contains(&name) {
            let _ = write!(modules, ",\n    (name = \"{name}\", {kind} = embed \"modules/{name}\")");
        }
    }
    modules
}

/// The file of a channel's script, beside the configuration.
pub fn channel_script(name: &Name) -> String {
    format!("channel-{name}.js")
}

/// The file of a certificate that a channel trusts, beside the configuration.
pub fn channel_certificate(name: &Name, number: usize) -> String {
    format!("channel-{name}-{number}.pem")
}

/// The content of the file. It embeds scripts and certificates from its own folder.
pub fn config(settings: &Settings) -> Outcome<String> {
    let date = text(&settings.manifest.compatibility_date);
    let flags = texts(
        [LAZY_MODULES]
            .into_iter()
            .chain(settings.manifest.compatibility_flags.iter().map(String::as_str)),
    );
    let mut listed = services::listed(&files(settings, settings.kv, services::KV_FOLDER)?);
    let mut bound = services::bindings(&settings.manifest.queues);
    if !settings.manifest.modules.is_empty() {
        add_readers(&mut listed, &mut bound, settings)?;
    }
    let mut workers = String::new();
    for (number, channel) in settings.channels.iter().enumerate() {
        add_services(&mut listed, number, channel);
        let (binding, name) = (channel.name.binding(), service(&channel.name));
        let _ = write!(bound, ",\n    (name = \"{binding}\", service = \"{name}\")");
        add_worker(&mut workers, number, channel);
    }
    let cluster = settings.cluster.as_ref().map(cluster).transpose()?.unwrap_or_default();
    let (remote, allowed_hosts) = for_other_machines(settings.listen);
    bound.push_str(&allowed_hosts);
    if let Some((id, resume)) = settings.start_stopped {
        let _ = write!(bound, ",\n    (name = \"START_STOPPED\", text = {})", text(id));
        let _ = write!(bound, ",\n    (name = \"RESUME_COPY\", text = {})", text(resume));
    }
    Ok(format!(
        r#"# Written by `gsv up`; changes are lost at its next start.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  # Half of the default: a quarter less memory after a busy hour, for a few per cent more time.
  v8Flags = ["--max-semi-space-size=8"],
  services = [
    (name = "gsv", worker = .gsv),{listed}
    (name = "do-disk", disk = (path = {durable}, writable = true)),
    (name = "files", {files}),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
    (name = "public-web", network = (allow = ["public"], tlsOptions = (trustBrowserCas = true)))
  ],
  sockets = [ (name = "http", address = "127.0.0.1:{port}", http = (), service = "gsv"){remote} ]{cluster}
);

const gsv :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "worker.js"){modules}
  ],
  compatibilityDate = {date},
  compatibilityFlags = [{flags}],
  durableObjectNamespaces = [
    (className = "Gateway", uniqueKey = "gsv-Gateway", enableSql = true),
    (className = "Session", uniqueKey = "gsv-Session", enableSql = true),
    (className = "SearchIndex", uniqueKey = "gsv-SearchIndex", enableSql = true),
    (className = "AgentJob", uniqueKey = "gsv-AgentJob", enableSql = true)
  ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [
    (name = "GATEWAY", durableObjectNamespace = "Gateway"),
    (name = "SESSION", durableObjectNamespace = "Session"),
    (name = "SEARCH", durableObjectNamespace = "SearchIndex"),
    (name = "JOB", durableObjectNamespace = "AgentJob"),
    (name = "PUBLIC_WEB", service = "public-web"),
    (name = "ENVIRONMENT", text = "embedded"),
    (name = "VERSION", text = {version}),
    (name = "BOOTSTRAP_TOKEN_HASH", text = {hash}),
    (name = "SEALING_KEYS", fromEnvironment = {sealing}){bound}
  ]
);
{service_worker}{workers}"#,
        service_worker = services::worker(&date, &settings.manifest.queues, settings.cluster.is_some()),
        durable = path(settings.durable)?,
        files = workspace(settings)?,
        modules = own_modules(settings.manifest),
        port = settings.port,
        version = text(&settings.manifest.version),
        hash = text(settings.bootstrap_hash),
        sealing = text(sealing_key::GATEWAY),
    ))
}

/// The agents' files. The bucket sees dotfiles, so that a folder which has some is not removed as an empty one.
fn workspace(settings: &Settings) -> Outcome<String> {
    Ok(match settings.cluster {
        None => format!(
            "disk = (path = {}, writable = true, allowDotfiles = true)",
            path(settings.workspace)?
        ),
        Some(_) => files(settings, settings.workspace, "files")?,
    })
}

/// Where a service keeps its files: a folder of this machine, or a directory of the bucket that a cluster shares.
fn files(settings: &Settings, folder: &Path, name: &str) -> Outcome<String> {
    Ok(match settings.cluster {
        None => format!("disk = (path = {}, writable = true)", path(folder)?),
        Some(_) => format!("bucket = (path = {})", text(name)),
    })
}

/// No secret: the bucket's keys and the key of the instances are in files that are named here.
fn cluster(clustered: &Clustered) -> Outcome<String> {
    let Clustered { cluster, place, keys } = clustered;
    let mut options = Vec::new();
    for (name, value) in [("aws_endpoint", &place.endpoint), ("aws_region", &place.region)] {
        if let Some(value) = value {
            options.push(text(&format!("{name}={value}")));
        }
    }
    let keys = keys.to_str().ok_or_else(|| not_text(keys))?;
    options.push(text(&format!("aws_credentials_file={keys}")));
    Ok(format!(
        r#",
  cluster = (
    bucket = {bucket},
    bucketOptions = [{options}],
    address = {address},
    key = embed "/{KEY_FILE}"
  )"#,
        bucket = text(&cluster.bucket),
        options = options.join(", "),
        address = text(&cluster.listen.to_string()),
    ))
}

/// A socket for the connections of other machines, whose TLS the supervisor has ended: the certificate proves the server, so any name is
/// right in the Host header. Behind a proxy they come to the port of this machine, and the proxy's name is allowed there.
fn for_other_machines(listen: Option<&Listen>) -> (String, String) {
    match listen {
        None => (String::new(), String::new()),
        Some(Listen { proxy: None, .. }) => (
            format!(
                r#",
    (name = "remote", address = "unix:{REMOTE_SOCKET}", http = (), service = (name = "gsv", entrypoint = "Remote"))"#
            ),
            String::new(),
        ),
        Some(Listen { proxy: Some(host), .. }) => (
            String::new(),
            format!(",\n    (name = \"ALLOWED_HOSTS\", text = {})", text(host)),
        ),
    }
}

/// The readers of documents and images are files, which the gateway loads into an isolate of their own: their memory is free when it ends.
fn add_readers(listed: &mut String, bound: &mut String, settings: &Settings) -> Outcome<()> {
    let Settings { manifest, modules, .. } = settings;
    let folder = path(modules)?;
    let _ = write!(listed, "\n    (name = \"modules\", disk = (path = {folder})),");
    let props = serde_json::json!({
        "compatibilityDate": manifest.compatibility_date,
        "compatibilityFlags": manifest.compatibility_flags,
    });
    let _ = write!(
        bound,
        r#",
    (name = "READERS", service = (name = "gsv", entrypoint = "ReaderService", props = (json = {}))),
    (name = "LOADER", workerLoader = (id = "readers")),
    (name = "MODULES", service = "modules")"#,
        text(&props.to_string())
    );
    Ok(())
}

/// No channel's name has a hyphen, so no two services have the same name.
fn service(name: &Name) -> String {
    format!("channel-{name}")
}

fn add_services(out: &mut String, number: usize, channel: &Channel) {
    let name = service(&channel.name);
    let _ = write!(out, "\n    (name = \"{name}\", worker = .channel{number}),");
    if channel.certificates.is_empty() {
        return;
    }
    let embeds: Vec<String> = (0..channel.certificates.len())
        .map(|number| format!("embed \"{}\"", channel_certificate(&channel.name, number)))
        .collect();
    let _ = write!(
        out,
        "\n    (name = \"{name}-internet\", network = (allow = [\"public\", \"private\"], tlsOptions = (trustBrowserCas = true, trustedCertificates = [{}]))),",
        embeds.join(", ")
    );
}

fn add_worker(out: &mut String, number: usize, channel: &Channel) {
    let Channel { name, bundle, .. } = channel;
    let class = text(&bundle.durable_object);
    let key = text(&format!("gsv-channel-{name}-{}", bundle.durable_object));
    let mut vars = String::new();
    for var in channel.vars.keys() {
        let from = text(&sealing_key::channel_var(name, var));
        let _ = write!(vars, ",\n    (name = \"{var}\", fromEnvironment = {from})");
    }
    let outbound = if channel.certificates.is_empty() {
        String::new()
    } else {
        format!("\n  globalOutbound = \"{}-internet\",", service(name))
    };
    let _ = write!(
        out,
        r#"
const channel{number} :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "{script}") ],
  compatibilityDate = {date},
  compatibilityFlags = [{flags}],{outbound}
  durableObjectNamespaces = [ (className = {class}, uniqueKey = {key}, enableSql = true) ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [
    (name = "ACCOUNT", durableObjectNamespace = {class}),
    (name = "GATEWAY", service = (name = "gsv", entrypoint = "GatewayEntrypoint", props = (json = {props}))),
    (name = "SEALING_KEYS", fromEnvironment = {sealing}){vars}
  ]
);
"#,
        script = channel_script(name),
        sealing = text(&sealing_key::channel(name)),
        props = text(&serde_json::json!({ "channel": name.to_string() }).to_string()),
        date = text(&bundle.compatibility_date),
        flags = texts(bundle.compatibility_flags.iter().map(String::as_str)),
    );
}

fn path(path: &Path) -> Outcome<String> {
    path.to_str().map(text).ok_or_else(|| not_text(path))
}

fn not_text(path: &Path) -> Failure {
    Failure::failed(
        format!("The path {} is not UTF-8.", path.display()),
        "Set GSV_HOME and GSV_CONFIG_DIR to folders with plain names.",
    )
}

#[cfg(test)]
#[path = "capnp_tests.rs"]
mod tests;
