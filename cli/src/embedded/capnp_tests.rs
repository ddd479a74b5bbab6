use super::*;
use crate::embedded::runtime::ChannelBundle;
use std::collections::BTreeMap;

fn manifest() -> Manifest {
    Manifest {
        version: "1".into(),
        compatibility_date: "2026-11-01".into(),
        compatibility_flags: vec!["x".into(), "y".into()],
        modules: ["pdf.mjs", "photon_rs_bg.wasm", "regex.mjs", "dots.wasm"]
            .map(|name| name.to_owned().try_into().unwrap())
            .into(),
        queues: crate::embedded::queue::core_queues(),
        channels: BTreeMap::new(),
    }
}

fn written(channels: &[Channel]) -> String {
    listening(channels, None)
}

fn listening(channels: &[Channel], listen: Option<&Listen>) -> String {
    of_instance(channels, listen, None)
}

fn of_instance(channels: &[Channel], listen: Option<&Listen>, cluster: Option<Clustered>) -> String {
    of_copy(channels, listen, cluster, None)
}

fn of_copy(
    channels: &[Channel],
    listen: Option<&Listen>,
    cluster: Option<Clustered>,
    id: Option<(&str, &str)>,
) -> String {
    config(&Settings {
        manifest: &manifest(),
        port: 9,
        bootstrap_hash: "ab",
        durable: Path::new("/d"),
        workspace: Path::new("/w"),
        modules: Path::new("/m"),
        kv: Path::new("/s/kv"),
        channels,
        listen,
        start_stopped: id,
        cluster,
    })
    .unwrap()
}

#[test]
fn s2_only_loopback_is_listened_on_and_the_hash_is_bound() {
    let config = written(&[]);
    assert!(config.contains(r#"address = "127.0.0.1:9""#));
    assert!(config.contains(r#"(name = "BOOTSTRAP_TOKEN_HASH", text = "ab")"#));
    assert!(config.contains(r#"compatibilityFlags = ["new_module_registry", "x", "y"]"#));
    assert!(!config.contains("channel"), "no channel is configured");
}

#[test]
fn bk23_a_restored_copy_is_named_to_its_gateway() {
    let binding = r#"(name = "START_STOPPED", text = "01a")"#;
    let config = of_copy(&[], None, None, Some(("01a", "GSV_HOME=/copy gsv resume")));
    assert!(config.contains(binding));
    assert!(config.contains(r#"(name = "RESUME_COPY", text = "GSV_HOME=/copy gsv resume")"#));
    assert!(!written(&[]).contains("START_STOPPED"));
}

#[test]
fn rm1_other_machines_reach_a_socket_of_this_users_only_after_their_tls_has_ended() {
    let at = |proxy: Option<&str>| Listen {
        address: "0.0.0.0:8788".parse().unwrap(),
        proxy: proxy.map(str::to_owned),
    };
    let tls = listening(&[], Some(&at(None)));
    assert!(
        tls.contains(r#"address = "unix:remote.sock", http = (), service = (name = "gsv", entrypoint = "Remote")"#)
    );
    assert!(!tls.contains("0.0.0.0") && !tls.contains("ALLOWED_HOSTS"));
    let proxied = listening(&[], Some(&at(Some("gsv.example.org"))));
    assert!(proxied.contains(r#"(name = "ALLOWED_HOSTS", text = "gsv.example.org")"#));
    assert!(!proxied.contains("remote.sock") && !proxied.contains("0.0.0.0"));
}

#[test]
fn hb9_pages_of_conditions_are_read_through_a_network_without_local_addresses() {
    let config = written(&[]);
    assert!(
        config.contains(
            r#"(name = "public-web", network = (allow = ["public"], tlsOptions = (trustBrowserCas = true)))"#
        )
    );
    assert!(config.contains(r#"(name = "PUBLIC_WEB", service = "public-web")"#));
}

#[test]
fn a8_keys_of_secrets_come_from_the_environment_of_workerd() {
    let config = written(&[]);
    assert!(config.contains(r#"(name = "SEALING_KEYS", fromEnvironment = "GSV_SEALING_KEYS")"#));
}

#[test]
fn po5_what_the_gateway_imports_itself_is_a_module_of_its_worker() {
    let config = written(&[]);
    assert!(
        config.contains(r#"(name = "regex.mjs", esModule = embed "modules/regex.mjs")"#),
        "{config}"
    );
    assert!(
        config.contains(r#"(name = "dots.wasm", wasm = embed "modules/dots.wasm")"#),
        "{config}"
    );
}

#[test]
fn f64_the_readers_are_not_part_of_what_workerd_loads_at_its_start() {
    let config = written(&[]);
    let embedded: Vec<&str> = config
        .split("embed \"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(
        embedded,
        ["worker.js", "modules/regex.mjs", "modules/dots.wasm", "r2.js"]
    );
    for part in [
        r#"(name = "modules", disk = (path = "/m"))"#,
        r#"(name = "READERS", service = (name = "gsv", entrypoint = "ReaderService", props = (json = "{\"compatibilityDate\":\"2026-11-01\",\"compatibilityFlags\":[\"x\",\"y\"]}")))"#,
        r#"(name = "LOADER", workerLoader = (id = "readers"))"#,
        r#"(name = "MODULES", service = "modules")"#,
    ] {
        assert!(config.contains(part), "{part} is not in\n{config}");
    }
}

#[test]
fn x17_a_channel_is_bound_to_the_gateways_entry_for_channels_and_listens_nowhere() {
    let channel = Channel {
        name: "whats_app".to_owned().try_into().unwrap(),
        bundle: ChannelBundle {
            compatibility_date: "2026-10-01".into(),
            compatibility_flags: vec!["nodejs_compat".into()],
            durable_object: "Account".into(),
            bytes: None,
        },
        vars: BTreeMap::from([("KEY".to_owned(), "a\"b".to_owned())]),
        certificates: vec!["pem".into()],
    };
    let config = written(&[channel]);
    for part in [
        r#"(name = "CHANNEL_WHATS_APP", service = "channel-whats_app")"#,
        r#"(name = "GATEWAY", service = (name = "gsv", entrypoint = "GatewayEntrypoint", props = (json = "{\"channel\":\"whats_app\"}")))"#,
        r#"uniqueKey = "gsv-channel-whats_app-Account", enableSql = true"#,
        r#"esModule = embed "channel-whats_app.js""#,
        r#"(name = "KEY", fromEnvironment = "GSV_CHANNEL_whats_app_KEY")"#,
        r#"(name = "SEALING_KEYS", fromEnvironment = "GSV_SEALING_KEYS_whats_app")"#,
        r#"globalOutbound = "channel-whats_app-internet""#,
        r#"trustedCertificates = [embed "channel-whats_app-0.pem"]"#,
        r#"compatibilityFlags = ["nodejs_compat"]"#,
    ] {
        assert!(config.contains(part), "{part} is not in\n{config}");
    }
    assert_eq!(config.matches("address = ").count(), 1);
    assert!(
        !config.contains("a\\\"b"),
        "no value of a variable, which may be secret: {config}"
    );
}

#[test]
fn f12_a_channel_has_no_access_to_the_bucket() {
    let channel = Channel {
        name: "example".to_owned().try_into().unwrap(),
        bundle: ChannelBundle {
            compatibility_date: "2026-10-01".into(),
            compatibility_flags: vec![],
            durable_object: "Account".into(),
            bytes: None,
        },
        vars: BTreeMap::new(),
        certificates: vec![],
    };
    let config = written(&[channel]);
    let worker = config.split("const channel0 ").nth(1).unwrap();
    assert!(
        worker.contains("GatewayEntrypoint") && !worker.contains("r2") && !worker.contains("\"services\""),
        "{worker}"
    );
}

#[test]
fn cl4_cl5_an_instance_names_the_files_of_its_keys_and_keeps_no_file_in_a_folder() {
    let cluster = Cluster {
        bucket: "s3://bucket/a".into(),
        listen: "10.0.0.7:7000".parse().unwrap(),
    };
    let place = Place {
        endpoint: Some("https://s3.example.org".into()),
        region: Some("auto".into()),
    };
    let config = of_instance(
        &[],
        None,
        Some(Clustered {
            cluster: &cluster,
            place: &place,
            keys: Path::new("/c/cluster.env"),
        }),
    );
    for part in [
        r#"bucket = "s3://bucket/a""#,
        r#"bucketOptions = ["aws_endpoint=https://s3.example.org", "aws_region=auto", "aws_credentials_file=/c/cluster.env"]"#,
        r#"address = "10.0.0.7:7000""#,
        r#"key = embed "/cluster.key""#,
        r#"(name = "files", bucket = (path = "files"))"#,
        r#"(name = "kv-disk", bucket = (path = "kv"))"#,
        r#"(name = "FS", service = "files")"#,
        r#"(name = "SHARED", text = "1")"#,
        // The copies of the objects that run here.
        r#"(name = "do-disk", disk = (path = "/d", writable = true))"#,
    ] {
        assert!(config.contains(part), "{part} is not in\n{config}");
    }
    assert!(!config.contains("\"/w\"") && !config.contains("\"/s/kv\""), "{config}");
    let alone = written(&[]);
    assert!(!alone.contains("cluster") && !alone.contains("SHARED") && !alone.contains("bucket = ("));
    // A folder with dotfiles alone is not an empty one (gateway rule WF7).
    let files = r#"(name = "files", disk = (path = "/w", writable = true, allowDotfiles = true))"#;
    assert!(alone.contains(files), "{alone}");
}
