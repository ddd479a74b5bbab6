//! Which channels the gateway on this machine runs: `channels.json` of the state folder, and the bundles of the runtime. A
//! channel is a Worker of its own beside the gateway's; only those that are enabled run. Whatever is wrong with one of them,
//! or with the file, is said and never keeps the gateway from starting. What a channel has stored stays when it is disabled.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::lock::Lock;
use super::runtime::{ChannelBundle, Runtime};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths;

pub use super::reload::{TakenUp, take_up};

const VERSION: u32 = 1;
const MAX_FILE_BYTES: u64 = 64 * 1024;
const MAX_CHANNELS: usize = 32;
const MAX_VARS: usize = 32;
const MAX_VAR_BYTES: usize = 8 * 1024;
const MAX_CERTIFICATES: usize = 8;
const MAX_CERTIFICATE_BYTES: u64 = 64 * 1024;
/// What every channel's Worker is bound to anyway.
const TAKEN: [&str; 3] = ["ACCOUNT", "GATEWAY", "STORAGE"];
const PATIENCE: Duration = Duration::from_secs(45);

/// A channel's name, as the gateway knows it: it finds the channel as `CHANNEL_{NAME}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The binding under which the gateway finds it.
    pub fn binding(&self) -> String {
        format!("CHANNEL_{}", self.0.to_ascii_uppercase())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let tail = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let good = text.len() <= 63
            && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
            && text.bytes().all(tail);
        if good {
            Ok(Self(text))
        } else {
            Err("a channel's name is made of a-z, 0-9 and _".to_owned())
        }
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

/// Name of a variable of a Worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VarName(String);

impl VarName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for VarName {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let tail = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let good = text.len() <= 64
            && text.bytes().next().is_some_and(|first| first.is_ascii_uppercase())
            && text.bytes().all(tail)
            && !TAKEN.contains(&text.as_str());
        if good {
            Ok(Self(text))
        } else {
            Err(format!(
                "a variable's name is made of A-Z, 0-9 and _, and is none of {}",
                TAKEN.join(", ")
            ))
        }
    }
}

impl From<VarName> for String {
    fn from(name: VarName) -> Self {
        name.0
    }
}

/// `channels.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    #[serde(default)]
    channels: BTreeMap<Name, Entry>,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            version: VERSION,
            channels: BTreeMap::new(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    enabled: bool,
    /// What `vars` and secrets are to a deployed Worker. They may be secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    vars: BTreeMap<VarName, String>,
    /// PEM files of certificate authorities that this channel trusts beside the usual ones, for a proxy or a test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    trusted_certificates: Vec<PathBuf>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Entry {{ enabled: {}, vars: {}, .. }}",
            self.enabled,
            self.vars.len()
        )
    }
}

/// A channel that can run.
pub struct Channel {
    pub name: Name,
    pub bundle: ChannelBundle,
    pub vars: BTreeMap<VarName, String>,
    /// PEM texts.
    pub certificates: Vec<String>,
}

/// The channels that this runtime has, by name.
pub fn available(runtime: &Runtime) -> Vec<String> {
    runtime.manifest.channels.keys().map(ToString::to_string).collect()
}

/// The channels that run with the gateway, by name, whether or not it runs.
pub fn enabled(layout: &Layout) -> Outcome<Vec<String>> {
    let content = read(layout)?;
    Ok(content
        .channels
        .iter()
        .filter(|(_, entry)| entry.enabled)
        .map(|(name, _)| name.to_string())
        .collect())
}

/// Lets a channel run from the next start on, or from `take_up`. Whether that is news.
pub fn enable(layout: &Layout, name: &str) -> Outcome<bool> {
    let runtime = Runtime::find(layout)?;
    let known = Name::try_from(name.to_owned())
        .ok()
        .filter(|name| runtime.manifest.channels.contains_key(name));
    let Some(name) = known else {
        let there = available(&runtime);
        return Err(Failure::usage(
            format!("This gateway has no channel {name:?}."),
            if there.is_empty() {
                "Its runtime was built without channels. Build or install it again.".to_owned()
            } else {
                format!("There are: {}.", there.join(", "))
            },
        ));
    };
    change(layout, |content| {
        let entry = content.channels.entry(name).or_default();
        !std::mem::replace(&mut entry.enabled, true)
    })
}

/// The channel no longer runs from the next start on, or from `take_up`. What it has stored stays. Whether that is news.
pub fn disable(layout: &Layout, name: &str) -> Outcome<bool> {
    let Ok(name) = Name::try_from(name.to_owned()) else {
        return Ok(false);
    };
    change(layout, |content| {
        content
            .channels
            .get_mut(&name)
            .is_some_and(|entry| std::mem::replace(&mut entry.enabled, false))
    })
}

fn change(layout: &Layout, edit: impl FnOnce(&mut Content) -> bool) -> Outcome<bool> {
    layout.ensure()?;
    let _turn = Lock::take(&layout.turn_lock(), PATIENCE)?;
    let mut content = read(layout)?;
    if !edit(&mut content) {
        return Ok(false);
    }
    let path = layout.channels();
    let text = serde_json::to_string_pretty(&content).unwrap_or_default();
    paths::write_private_file(&path, text.as_bytes()).or_fail(
        format_args!("write {}", path.display()),
        "Check that the disk is not full.",
    )?;
    Ok(true)
}

fn read(layout: &Layout) -> Outcome<Content> {
    let path = layout.channels();
    let damaged = |why: String| {
        Failure::failed(
            format!("{} can't be used: {why}.", path.display()),
            "Mend it; or remove it, and start the channels again that you want.",
        )
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Content::default()),
        Err(error) => return Err(damaged(error.to_string())),
    };
    let meta = file.metadata().map_err(|error| damaged(error.to_string()))?;
    if !meta.is_file() {
        return Err(damaged("it is not a file".to_owned()));
    }
    paths::check_private_file(&path, &meta)?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| damaged(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(damaged(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    // The parser's own words would repeat what stands there, and that may be secret.
    let content: Content = serde_json::from_str(&text).map_err(|error| {
        let what = if error.is_data() {
            "there is something that does not belong there"
        } else {
            "it is no JSON"
        };
        damaged(format!("{what} (line {}, column {})", error.line(), error.column()))
    })?;
    check(&content).map_err(damaged)?;
    Ok(content)
}

fn check(content: &Content) -> Result<(), String> {
    if content.version != VERSION {
        return Err(format!("it is of version {}, not {VERSION}", content.version));
    }
    if content.channels.len() > MAX_CHANNELS {
        return Err(format!("it names more than {MAX_CHANNELS} channels"));
    }
    for (name, entry) in &content.channels {
        if entry.vars.len() > MAX_VARS || entry.trusted_certificates.len() > MAX_CERTIFICATES {
            return Err(format!("{name} has too many variables or certificates"));
        }
        if let Some((var, _)) = entry.vars.iter().find(|(_, value)| value.len() > MAX_VAR_BYTES) {
            return Err(format!(
                "{} of {name} has more than {MAX_VAR_BYTES} bytes",
                var.as_str()
            ));
        }
    }
    Ok(())
}

/// What is to run, and what is wrong in words. Never fails: the gateway starts without what can't run.
pub fn to_run(layout: &Layout, runtime: &Runtime) -> (Vec<Channel>, Vec<String>) {
    let mut warnings = Vec::new();
    let content = read(layout).unwrap_or_else(|failure| {
        warnings.push(format!("no channel runs: {} {}", failure.message, failure.next));
        Content::default()
    });
    let mut channels = Vec::new();
    for (name, entry) in content.channels {
        if !entry.enabled {
            continue;
        }
        let script = runtime.channel_script(&name);
        let found = fs::metadata(&script).ok().filter(fs::Metadata::is_file);
        let bundle = match (found, runtime.manifest.channels.get(&name)) {
            (Some(found), Some(bundle)) if bundle.bytes.is_none_or(|bytes| bytes == found.len()) => Ok(bundle.clone()),
            (Some(_), Some(_)) => Err("is damaged"),
            _ => Err("is not there"),
        };
        let bundle = match bundle {
            Ok(bundle) => bundle,
            Err(why) => {
                warnings.push(format!(
                    "the channel {name} is enabled and does not run: {} {why}. Build or install the runtime again.",
                    script.display()
                ));
                continue;
            }
        };
        let mut certificates = Vec::new();
        for path in entry.trusted_certificates {
            match certificate(&path) {
                Ok(text) => certificates.push(text),
                Err(why) => warnings.push(format!(
                    "the channel {name} runs without the certificate {}: {why}.",
                    path.display()
                )),
            }
        }
        channels.push(Channel {
            name,
            bundle,
            vars: entry.vars,
            certificates,
        });
    }
    (channels, warnings)
}

/// The text of a PEM file, as far as can be told without reading the certificates themselves.
fn certificate(path: &PathBuf) -> Result<String, String> {
    if !path.is_absolute() {
        return Err("its path is not absolute".to_owned());
    }
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() || meta.len() > MAX_CERTIFICATE_BYTES {
        return Err("it is not a PEM file".to_owned());
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let framed =
        lines.first() == Some(&"-----BEGIN CERTIFICATE-----") && lines.last() == Some(&"-----END CERTIFICATE-----");
    if framed {
        Ok(text)
    } else {
        Err("it is not a PEM file".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Place {
        layout: Layout,
        runtime: Runtime,
        _dir: tempfile::TempDir,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: dir.path().join("home"),
        };
        layout.ensure().unwrap();
        let bundle = || ChannelBundle {
            compatibility_date: "2026-11-01".into(),
            compatibility_flags: Vec::new(),
            durable_object: "Account".into(),
            bytes: Some(17),
        };
        let runtime = Runtime {
            dir: dir.path().join("runtime"),
            manifest: super::super::runtime::Manifest {
                version: "1".into(),
                compatibility_date: "2026-11-01".into(),
                compatibility_flags: Vec::new(),
                channels: ["example", "gone"].map(|name| (Name(name.to_owned()), bundle())).into(),
            },
        };
        fs::create_dir_all(runtime.dir.join("channels")).unwrap();
        fs::write(runtime.dir.join("channels/example.js"), "export default {}").unwrap();
        Place {
            layout,
            runtime,
            _dir: dir,
        }
    }

    fn write(layout: &Layout, text: &str) {
        paths::write_private_file(&layout.channels(), text.as_bytes()).unwrap();
    }

    fn names(channels: &[Channel]) -> Vec<String> {
        channels.iter().map(|channel| channel.name.to_string()).collect()
    }

    #[test]
    fn nothing_runs_that_was_not_enabled() {
        let place = place();
        assert_eq!(enabled(&place.layout).unwrap(), Vec::<String>::new());
        let (channels, warnings) = to_run(&place.layout, &place.runtime);
        assert_eq!((names(&channels), warnings), (Vec::new(), Vec::new()));
        assert_eq!(available(&place.runtime), ["example", "gone"]);
    }

    #[test]
    fn enabling_is_durable_idempotent_and_private_and_disabling_keeps_the_settings() {
        let place = place();
        let on = |content: &mut Content| {
            let entry = content.channels.entry(Name("example".into())).or_default();
            !std::mem::replace(&mut entry.enabled, true)
        };
        assert!(change(&place.layout, on).unwrap());
        assert!(!change(&place.layout, on).unwrap());
        assert_eq!(enabled(&place.layout).unwrap(), ["example"]);
        assert_eq!(names(&to_run(&place.layout, &place.runtime).0), ["example"]);
        let mode = fs::metadata(place.layout.channels()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        write(
            &place.layout,
            r#"{"version":1,"channels":{"example":{"enabled":true,"vars":{"A":"b"}}}}"#,
        );
        assert!(disable(&place.layout, "example").unwrap());
        assert!(!disable(&place.layout, "example").unwrap());
        assert!(!disable(&place.layout, "../x").unwrap());
        assert_eq!(enabled(&place.layout).unwrap(), Vec::<String>::new());
        assert!(change(&place.layout, on).unwrap());
        let (channels, _) = to_run(&place.layout, &place.runtime);
        assert_eq!(channels[0].vars.len(), 1);
    }

    #[test]
    fn s17_what_is_broken_is_named_without_its_content_and_nothing_runs() {
        for text in [
            "",
            "{",
            r#"{"version":2}"#,
            r#"{"version":1,"chanels":{}}"#,
            r#"{"version":1,"channels":{"Upper":{"enabled":true}}}"#,
            r#"{"version":1,"channels":{"a/b":{"enabled":true}}}"#,
            r#"{"version":1,"channels":{"example":{"enabled":"secret-value"}}}"#,
            r#"{"version":1,"channels":{"example":{"enabled":true,"vars":{"GATEWAY":"secret-value"}}}}"#,
            r#"{"version":1,"channels":{"example":{"enabled":true,"vars":{"lower":"secret-value"}}}}"#,
        ] {
            let place = place();
            write(&place.layout, text);
            let failure = enabled(&place.layout).unwrap_err();
            assert!(
                failure.message.contains("channels.json can't be used"),
                "{text}: {failure:?}"
            );
            assert!(failure.next.contains("remove it"), "{failure:?}");
            assert!(!failure.message.contains("secret-value"), "{failure:?}");
            assert!(disable(&place.layout, "example").is_err(), "{text}");
            assert_eq!(
                fs::read_to_string(place.layout.channels()).unwrap(),
                text,
                "it is left as it is"
            );
            let (channels, warnings) = to_run(&place.layout, &place.runtime);
            assert!(channels.is_empty());
            assert_eq!(warnings.len(), 1, "{warnings:?}");
        }
        let place = place();
        write(&place.layout, &" ".repeat(70_000));
        assert!(enabled(&place.layout).unwrap_err().message.contains("more than"));
        write(&place.layout, r#"{"version":1}"#);
        fs::set_permissions(place.layout.channels(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(enabled(&place.layout).unwrap_err().next.contains("chmod 600"));
    }

    #[test]
    fn a_channel_without_a_bundle_is_skipped_and_said_and_the_others_run() {
        let place = place();
        write(
            &place.layout,
            r#"{"version":1,"channels":{"example":{"enabled":true},"gone":{"enabled":true},"other":{"enabled":true},"off":{"enabled":false}}}"#,
        );
        let (channels, warnings) = to_run(&place.layout, &place.runtime);
        assert_eq!(names(&channels), ["example"]);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("the channel gone") && warnings[0].contains("gone.js"));
        assert!(warnings[1].contains("the channel other"));
    }

    #[test]
    fn a_damaged_bundle_is_skipped_and_said() {
        let place = place();
        write(
            &place.layout,
            r#"{"version":1,"channels":{"example":{"enabled":true}}}"#,
        );
        assert_eq!(names(&to_run(&place.layout, &place.runtime).0), ["example"]);
        fs::write(place.runtime.dir.join("channels/example.js"), "export def").unwrap();
        let (channels, warnings) = to_run(&place.layout, &place.runtime);
        assert!(channels.is_empty());
        assert!(warnings[0].contains("is damaged"), "{warnings:?}");
    }

    #[test]
    fn a_certificate_that_can_t_be_used_is_said_and_left_out() {
        let place = place();
        let good = place.layout.home.join("ca.pem");
        fs::write(&good, "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").unwrap();
        let bad = place.layout.home.join("bad.pem");
        fs::write(&bad, "no").unwrap();
        let text = serde_json::json!({"version": 1, "channels": {"example": {
            "enabled": true, "trustedCertificates": [good, bad, "relative.pem", place.layout.home.join("none.pem")],
        }}});
        write(&place.layout, &text.to_string());
        let (channels, warnings) = to_run(&place.layout, &place.runtime);
        assert_eq!(channels[0].certificates.len(), 1);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }
}
