//! Single hosts for commands in the sandbox, where it has a way to them.

use super::common::Lab;
use gsv_sandbox::Profile;
use serde_json::json;

/// Sends one request to the proxy of the sandbox, as programs do that know `HTTP_PROXY`.
fn request(host: &str) -> String {
    format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/${{HTTP_PROXY##*:}}; printf \"GET http://{host}/x HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n\" >&3; cat <&3'"
    )
}

/// A server on this machine that answers one request.
async fn server() -> (String, tokio::task::JoinHandle<()>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind(("127.0.0.2", 0)).await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap() > 0 {}
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nfrom outside").await.unwrap();
        }
    });
    (host, task)
}

#[tokio::test]
async fn sb14_sb9_a_host_is_refused_by_name_with_how_to_ask_for_it() {
    let lab = Lab::new();
    let stopped = lab.ok("Bash", json!({"command": request("example.org")})).await;
    let (output, note) = (stopped["output"].as_str().unwrap(), stopped["note"].as_str().unwrap());
    assert!(
        output.contains("403") && output.contains("reach example.org."),
        "{output}"
    );
    assert!(note.contains("reach example.org;"), "{note}");
    assert!(
        note.contains("`workspace+net` and `hosts` set to [\"example.org\"]"),
        "{note}"
    );
    // What the command starts for itself needs no proxy.
    let own = lab.ok("Bash", json!({"command": "echo $NO_PROXY $https_proxy"})).await;
    let own = own["output"].as_str().unwrap();
    assert!(own.starts_with("localhost,127.0.0.1,::1 http://127.0.0.1:"), "{own}");
    let schema = serde_json::to_value(lab.tools.definitions()).unwrap();
    assert!(schema[0]["inputSchema"]["properties"]["hosts"].is_object(), "{schema}");
}

#[tokio::test]
async fn sb9_a_name_that_does_not_resolve_is_asked_for_where_calls_may_ask() {
    let failed = json!({"command": "echo 'Could not resolve host: example.org' >&2; exit 6"});
    let lab = Lab::new();
    let note = lab.ok("Bash", failed.clone()).await["note"].clone();
    let note = note.as_str().unwrap();
    assert!(
        note.contains("`hosts` set to its name, as in [\"example.org\"]"),
        "{note}"
    );
    for close in [true, false] {
        let lab = Lab::with(|config| {
            let sandbox = config.sandbox.as_mut().unwrap();
            if close {
                sandbox.may_leave = false;
            } else {
                sandbox.network = None;
            }
        });
        let note = lab.ok("Bash", failed.clone()).await["note"].clone();
        let note = note.as_str().unwrap();
        assert!(note.contains("do not resolve") && !note.contains("`hosts`"), "{note}");
    }
}

#[tokio::test]
async fn sb9_where_calls_may_ask_for_nothing_a_refused_host_is_for_the_user_to_list() {
    for (profile, has_setting) in [(Profile::Workspace, true), (Profile::WorkspaceNet, false)] {
        let lab = Lab::with(|config| {
            let sandbox = config.sandbox.as_mut().unwrap();
            sandbox.may_leave = false;
            sandbox.level.profile = profile;
        });
        let failed = json!({"command": format!("{}; exit 1", request("example.org"))});
        let note = lab.ok("Bash", failed).await["note"].clone();
        let note = note.as_str().unwrap();
        assert!(
            note.contains("example.org") && note.contains("start the node again"),
            "{note}"
        );
        assert_eq!(note.contains("`sandbox = \"workspace+net\"`"), has_setting, "{note}");
    }
}

#[tokio::test]
async fn sb17_ta4_a_call_reaches_the_hosts_that_it_asks_for_and_only_that_call() {
    let (host, server) = server().await;
    let lab = Lab::with(|config| {
        let sandbox = config.sandbox.as_mut().unwrap();
        sandbox.network.as_mut().unwrap().listed = vec![gsv_sandbox::HostRule::parse(&host).unwrap()];
    });
    let with =
        |hosts: serde_json::Value| json!({"command": request(&host), "sandbox": "workspace+net", "hosts": hosts});
    let found = lab.ok("Bash", with(json!([host]))).await;
    assert!(found["output"].as_str().unwrap().ends_with("from outside"), "{found}");
    assert_eq!(found.get("note"), None, "{found}");
    let without = lab.ok("Bash", json!({"command": request(&host)})).await;
    assert!(without["output"].as_str().unwrap().contains("403"), "{without}");
    let mut background = with(json!([host]));
    background["command"] = json!("cat");
    background["background"] = json!(true);
    let id = lab.ok("Bash", background).await["sessionId"].clone();
    let input = |more: serde_json::Value| {
        let mut args = json!({"action": "submit", "sessionId": id, "data": "x"});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    assert_eq!(lab.reason("Process", input(json!({}))).await, "tool.bad_args");
    lab.ok("Process", input(json!({"sandbox": "workspace+net"}))).await;
    // [TA4] What it prints may be of others, so it is read only by a call that says so.
    for action in ["poll", "log"] {
        let read = json!({"action": action, "sessionId": id});
        assert_eq!(lab.reason("Process", read).await, "tool.bad_args", "{action}");
        let read = json!({"action": action, "sessionId": id, "sandbox": "workspace+net"});
        lab.ok("Process", read).await;
    }
    let killed = lab.ok("Process", json!({"action": "kill", "sessionId": id})).await;
    assert_eq!(killed.get("tail"), None, "{killed}");
    for args in [
        with(json!([])),
        with(json!(["127.0.0.3:80"])),
        with(json!(["http://a.org"])),
        with(serde_json::Value::Null),
        json!({"command": "true", "hosts": [host]}),
        json!({"command": "true", "sandbox": "off", "hosts": [host]}),
    ] {
        assert_eq!(lab.reason("Bash", args.clone()).await, "tool.bad_args", "{args}");
    }
    server.abort();
}

#[tokio::test]
async fn sb14_listed_hosts_are_reached_in_workspace_with_net_and_none_without_a_proxy() {
    let (host, server) = server().await;
    let listed = || {
        [host.as_str(), "localhost:1"]
            .map(|host| gsv_sandbox::HostRule::parse(host).unwrap())
            .to_vec()
    };
    let lab = Lab::with(|config| {
        let sandbox = config.sandbox.as_mut().unwrap();
        sandbox.level.profile = gsv_sandbox::Profile::WorkspaceNet;
        sandbox.network.as_mut().unwrap().listed = listed();
    });
    let found = lab.ok("Bash", json!({"command": request(&host)})).await;
    assert!(found["output"].as_str().unwrap().ends_with("from outside"), "{found}");
    // A server that is allowed is outside, so the proxy leads to it; others are the command's own.
    let direct = lab.ok("Bash", json!({"command": "echo $NO_PROXY $no_proxy"})).await;
    assert_eq!(direct["output"], "127.0.0.1,::1 127.0.0.1,::1\n");
    let description = serde_json::to_value(lab.tools.definitions()).unwrap()[0]["description"].to_string();
    assert!(description.contains(&host), "{description}");
    let none = Lab::with(|config| config.sandbox.as_mut().unwrap().network = None);
    let stopped = none.ok("Bash", json!({"command": "echo \"[$HTTP_PROXY]\""})).await;
    assert_eq!(stopped["output"], "[]\n");
    let asks = json!({"command": "true", "sandbox": "workspace+net", "hosts": [host]});
    assert_eq!(none.reason("Bash", asks).await, "tool.bad_args");
    server.abort();
}
