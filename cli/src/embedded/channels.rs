//! Enables and disables the channels of the gateway on this machine. A channel is a Worker of its own beside the gateway's;
//! only enabled channels run. A disabled channel keeps what it has stored.

use super::channel_file::{change, read};
use super::channel_name::Name;
use super::layout::Layout;
use super::runtime::Runtime;
use crate::exit::{Failure, Outcome};

pub use super::reload::{Reload, reload};

/// The channels that this runtime has, by name.
pub fn available(runtime: &Runtime) -> Vec<String> {
    runtime.manifest.channels.keys().map(ToString::to_string).collect()
}

/// The channels that run with the gateway, by name, whether or not it runs now.
pub fn enabled(layout: &Layout) -> Outcome<Vec<String>> {
    let channels = read(layout)?.channels.into_iter();
    Ok(channels
        .filter(|(_, entry)| entry.enabled)
        .map(|(name, _)| name.to_string())
        .collect())
}

/// Enables a channel for the next start of the gateway, or for `reload`. Returns whether this changed anything.
pub fn enable(layout: &Layout, name: &str) -> Outcome<bool> {
    let runtime = Runtime::find(layout)?;
    let known = Name::try_from(name.to_owned())
        .ok()
        .filter(|name| runtime.manifest.channels.contains_key(name));
    let Some(name) = known else {
        let names = available(&runtime);
        return Err(Failure::usage(
            format!("This gateway has no channel {name:?}."),
            if names.is_empty() {
                "Its runtime was built without channels. Build or install it again.".to_owned()
            } else {
                format!("Its channels are: {}.", names.join(", "))
            },
        ));
    };
    change(layout, |content| {
        let entry = content.channels.entry(name).or_default();
        !std::mem::replace(&mut entry.enabled, true)
    })
}

/// Disables a channel from the next start of the gateway on, or from `reload` on. Returns whether this changed anything.
pub fn disable(layout: &Layout, name: &str) -> Outcome<bool> {
    let Ok(name) = Name::try_from(name.to_owned()) else {
        return Ok(false);
    };
    change(layout, |content| {
        let entry = content.channels.get_mut(&name);
        entry.is_some_and(|entry| std::mem::replace(&mut entry.enabled, false))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::channel_file::Content;
    use crate::embedded::channel_run::{Channel, to_run};
    use crate::private_file;
    use serde_json::json;
    use std::fs;
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
        let bundle = json!({"compatibilityDate": "2026-11-01", "durableObject": "Account", "bytes": 17});
        let manifest = json!({
            "version": "1", "compatibilityDate": "2026-11-01", "channels": {"example": bundle, "gone": bundle},
        });
        let runtime = Runtime {
            dir: dir.path().join("runtime"),
            manifest: serde_json::from_value(manifest).unwrap(),
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
        private_file::write(&layout.channels(), text).unwrap();
    }

    fn names(channels: &[Channel]) -> Vec<String> {
        channels.iter().map(|channel| channel.name.to_string()).collect()
    }

    #[test]
    fn only_enabled_channels_run() {
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
            let entry = content
                .channels
                .entry(Name::try_from("example".to_owned()).unwrap())
                .or_default();
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
    fn s17_a_broken_file_is_reported_without_its_content_and_no_channel_runs() {
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
                failure.message.contains("channels.json cannot be used"),
                "{text}: {failure:?}"
            );
            assert!(failure.next.contains("remove it"), "{failure:?}");
            assert!(!failure.message.contains("secret-value"), "{failure:?}");
            assert!(disable(&place.layout, "example").is_err(), "{text}");
            assert_eq!(
                fs::read_to_string(place.layout.channels()).unwrap(),
                text,
                "the file is unchanged"
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
    fn a_channel_without_a_bundle_is_reported_and_the_others_run() {
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
    fn a_damaged_bundle_is_reported_and_does_not_run() {
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
    fn an_unusable_certificate_is_reported_and_skipped() {
        let place = place();
        let good = place.layout.home.join("ca.pem");
        fs::write(&good, "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").unwrap();
        let bad = place.layout.home.join("bad.pem");
        fs::write(&bad, "no").unwrap();
        let text = json!({"version": 1, "channels": {"example": {
            "enabled": true, "trustedCertificates": [good, bad, "relative.pem", place.layout.home.join("none.pem")],
        }}});
        write(&place.layout, &text.to_string());
        let (channels, warnings) = to_run(&place.layout, &place.runtime);
        assert_eq!(channels[0].certificates.len(), 1);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }
}
