//! `gsv cp` against a gateway that the test plays.

use std::collections::BTreeMap;
use std::fs;

use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{Play, fed, played, serve};
use crate::common::runtime::free_port;
use crate::common::{Home, Run, finish, signal, start};
use serde_json::{Value, json};

/// Of no bytes.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn ended(id: &str) -> serde_json::Value {
    json!({"id": id, "source": "@:/etc/hostname", "destination": "gsv:a", "state": "done", "doneBytes": 1, "sizeBytes": 1,
        "sha256": "0".repeat(64), "createdAt": 1000, "endedAt": 2000})
}

#[test]
fn tf13_an_unreachable_gateway_is_an_error_at_once() {
    let home = Home::new();
    home.write_config(&format!("url = \"ws://127.0.0.1:{}/ws\"\ntoken = \"t\"\n", free_port()));
    // The end of the link is told in two ways, in no fixed order.
    for _ in 0..10 {
        let run = home.gsv(["cp", "/etc/hostname", "gsv:a"]).failed(4);
        assert!(run.stderr.contains("be reached"), "{}", run.stderr);
    }
}

#[test]
fn tf13_a_question_without_an_answer_is_no_copy() {
    let run = played(&["cp", "/etc/hostname", "gsv:a"], |connection| {
        let asked = connection.expect("transfer.get");
        let earlier = ended(asked.params["id"].as_str().unwrap());
        connection.answer(&asked, &json!({"transfer": earlier}));
        let asked = connection.expect("transfer.get");
        connection.error(&asked, 429, "limit.rate", "Too many requests.");
    });
    let run = run.failed(4);
    assert!(run.stderr.contains("Too many requests"), "{}", run.stderr);
}

/// A copy between the workspace and a machine that the person stops while it moves. `answer`: what the gateway does with the cancellation.
fn stopped_between(answer: impl FnOnce(Connection)) -> Run {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(home.command().args(["cp", "gsv:a.bin", "laptop:in/b.bin"]));
    let mut connection = gateway.accept();
    let created = connection.expect("transfer.create");
    let moves = json!({"id": created.params["id"], "source": "gsv:a.bin", "destination": "laptop:in/b.bin", "state": "running",
        "doneBytes": 1, "sizeBytes": 9, "createdAt": 1000});
    connection.answer(&created, &json!({"transfer": moves}));
    // From this request on the command listens for signals.
    connection.expect("transfer.get");
    signal(&child, "-INT");
    answer(gateway.accept());
    finish(child).failed(130)
}

#[test]
fn tf10_a_cancelled_copy_between_machines_goes_on_to_its_end_unless_the_gateway_confirms() {
    let unconfirmed = stopped_between(|mut connection| {
        let asked = connection.expect("transfer.cancel");
        connection.error(&asked, 503, "gateway.stopped", "The gateway is stopping.");
    });
    assert!(
        unconfirmed.stderr.contains("so the copy may go on to its end."),
        "{unconfirmed:?}"
    );
    assert!(
        unconfirmed.stderr.contains("look whether laptop:in/b.bin is complete"),
        "{unconfirmed:?}"
    );
    // It had ended, or never began.
    let unknown = stopped_between(|mut connection| {
        let asked = connection.expect("transfer.cancel");
        connection.error(&asked, 404, "transfer.unknown", "There is no such transfer.");
    });
    assert_eq!(unknown.stderr, "Stopped.\n", "{unknown:?}");
}

#[test]
fn tf14_a_folder_of_this_machine_s_node_is_answered_with_the_command_that_copies_it() {
    let home = Home::new();
    home.write_config("node.id = \"desk\"\n");
    let workspace = home.root().join("work");
    std::fs::create_dir(&workspace).unwrap();
    let refused = || home.gsv(["cp", "-r", "desk:tree", "gsv:other"]).failed(2).stderr;
    assert!(
        refused().contains("as in `gsv cp -r ~/gsv/tree gsv:other`"),
        "{}",
        refused()
    );
    home.write_node("desk", "workspace", workspace.to_str().unwrap());
    let command = format!("`gsv cp -r {}/tree gsv:other`", workspace.display());
    assert!(refused().contains(&command), "{}", refused());
}

#[test]
fn tf13_a_dash_is_no_file() {
    for args in [["cp", "-", "gsv:a"], ["cp", "gsv:a", "-"]] {
        let run = Home::new().gsv(args).failed(2);
        assert!(run.stderr.contains("can't read stdin or write stdout"), "{run:?}");
    }
}

/// `gsv cp -r SOURCE OUT`, with the folder OUT of this home.
fn folder_copied(home: &Home, gateway: &FakeGateway, source: &str, plays: Vec<Play<'_>>) -> Run {
    let out = home.root().join("out");
    fed(home, gateway, &["cp", "-r", source, out.to_str().unwrap()], "", plays)
}

/// What a folder of the workspace has.
fn list(connection: &mut Connection, folder: &str, files: &[&str], folders: &[&str]) {
    let etags: Vec<String> = files.iter().map(|file| format!("etag of {file}")).collect();
    let listed = json!({"path": folder, "files": files, "directories": folders, "etags": etags});
    serve(connection, "workspace.list", &json!({"path": folder}), &listed);
}

/// Plays this many new transfers, which end at once. Returns the destinations by the sources.
fn end_transfers(connection: &mut Connection, count: usize, fields: &Value) -> BTreeMap<String, String> {
    let mut ends = BTreeMap::new();
    while ends.len() < count {
        let asked = connection.request();
        if asked.method == "transfer.get" {
            connection.error(&asked, 404, "transfer.unknown", "There is no such transfer.");
            continue;
        }
        assert_eq!(asked.method, "transfer.create");
        let mut transfer = ended(asked.params["id"].as_str().unwrap());
        let text = |name: &str| asked.params[name].as_str().unwrap().to_owned();
        transfer["source"] = json!(text("source"));
        transfer["destination"] = json!(text("destination"));
        transfer
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        connection.answer(&asked, &json!({"transfer": transfer}));
        ends.insert(text("source"), text("destination"));
    }
    ends
}

#[test]
fn tf14_a_folder_that_is_written_with_a_dot_is_copied_to_the_right_names() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut ends = BTreeMap::new();
    let listing: Play<'_> = Box::new(|connection| {
        list(connection, "a", &["a/x.txt"], &["a/a"]);
        list(connection, "a/a", &["a/a/x.txt"], &[]);
    });
    let copying: Play<'_> = Box::new(|connection| ends = end_transfers(connection, 2, &json!({})));
    let run = folder_copied(&home, &gateway, "gsv:./a", vec![listing, copying]).ok();
    let out = home.root().canonicalize().unwrap().join("out");
    let to = |name: &str| format!("@:{}/{name}", out.display());
    let wanted = [("gsv:a/a/x.txt", to("a/x.txt")), ("gsv:a/x.txt", to("x.txt"))];
    assert_eq!(ends, wanted.map(|(source, to)| (source.to_owned(), to)).into());
    assert!(run.stderr.contains("gsv:a copied to"), "{}", run.stderr);
}

#[test]
fn tf14_the_same_command_again_counts_what_is_there() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    fs::create_dir(home.root().join("out")).unwrap();
    fs::write(home.root().join("out/x.txt"), "").unwrap();
    let listing: Play<'_> = Box::new(|connection| list(connection, "a", &["a/x.txt"], &[]));
    let copying: Play<'_> = Box::new(|connection| {
        let asked = connection.expect("transfer.get");
        let mut earlier = ended(asked.params["id"].as_str().unwrap());
        earlier["sha256"] = json!(EMPTY);
        connection.answer(&asked, &json!({"transfer": earlier}));
        let asked = connection.expect("transfer.get");
        connection.error(&asked, 404, "transfer.unknown", "There is no such transfer.");
    });
    let run = folder_copied(&home, &gateway, "gsv:a", vec![listing, copying]).ok();
    assert!(
        run.stderr.contains("0 files") && run.stderr.contains("1 was copied by an earlier run"),
        "{}",
        run.stderr
    );
}

#[test]
fn tf14_a_folder_that_does_not_exist_leaves_none_here() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let listing: Play<'_> = Box::new(|connection| {
        let asked = connection.expect("workspace.list");
        connection.error(
            &asked,
            404,
            "path.not_found",
            "There is no folder `nope` in the workspace.",
        );
    });
    let run = folder_copied(&home, &gateway, "gsv:nope", vec![listing]).failed(1);
    assert!(run.stderr.contains("There is no folder"), "{}", run.stderr);
    assert!(!home.root().join("out").exists());
}

#[test]
fn tf14_a_list_waits_while_the_gateway_was_asked_too_often() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let listing: Play<'_> = Box::new(|connection| {
        let asked = connection.request();
        assert_eq!(asked.method, "workspace.list");
        connection.error(&asked, 429, "limit.rate", "Too many requests.");
        list(connection, "a", &["a/x.txt"], &[]);
    });
    let copying: Play<'_> = Box::new(|connection| {
        end_transfers(connection, 1, &json!({"state": "done"}));
    });
    folder_copied(&home, &gateway, "gsv:a", vec![listing, copying]).ok();
}

#[test]
fn tf14_a_link_that_leads_out_of_the_folder_here_is_no_matter_of_a_node() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let refused = json!({"state": "failed", "reason": "path.outside_workspace",
        "problem": "\"x.txt\" is outside the workspace; use a path below it, or start the node with --allow-outside"});
    let listing: Play<'_> = Box::new(|connection| list(connection, "a", &["a/x.txt"], &[]));
    let copying: Play<'_> = Box::new(|connection| {
        end_transfers(connection, 1, &refused);
    });
    let run = folder_copied(&home, &gateway, "gsv:a", vec![listing, copying]).failed(1);
    assert!(
        run.stderr
            .contains("out/x.txt is outside of the folder, most likely behind a link.")
            && run.stderr.contains("Remove the link")
            && !run.stderr.contains("--allow-outside"),
        "{}",
        run.stderr
    );
}

#[test]
fn tf14_a_file_that_is_in_the_way_of_one_file_ends_no_other_copy() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let source = home.root().join("t");
    fs::create_dir_all(source.join("b")).unwrap();
    for name in ["MEMORY.md", "b/y", "c", "z"] {
        fs::write(source.join(name), "1").unwrap();
    }
    let copying: Play<'_> = Box::new(|connection| {
        let mut created = 0;
        while created < 4 {
            let asked = connection.request();
            if asked.method == "transfer.get" {
                connection.error(&asked, 404, "transfer.unknown", "There is no such transfer.");
                continue;
            }
            created += 1;
            match asked.params["destination"].as_str().unwrap() {
                "gsv:in/b/y" => connection.error(&asked, 400, "transfer.bad_endpoint", "`in/b` is a file."),
                "gsv:in/MEMORY.md" => connection.error(&asked, 403, "workspace.protected", "It is protected."),
                _ => connection.answer(
                    &asked,
                    &json!({"transfer": ended(asked.params["id"].as_str().unwrap())}),
                ),
            }
        }
    });
    let args = ["cp", "-r", source.to_str().unwrap(), "gsv:in", "--json"];
    let run = fed(&home, &gateway, &args, "", vec![copying]).failed(1);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["copied"], 2, "{run:?}");
    let left =
        json!([{"path": "MEMORY.md", "problem": "It is protected."}, {"path": "b/y", "problem": "`in/b` is a file."}]);
    assert_eq!(report["left"], left, "{run:?}");
}

#[test]
fn tf14_a_link_or_file_in_place_of_a_subfolder_here_ends_no_other_copy() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let out = home.root().join("out");
    fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink("/etc", out.join("linked")).unwrap();
    fs::write(out.join("file"), "mine").unwrap();
    let listing: Play<'_> = Box::new(|connection| {
        list(connection, "a", &["a/x.txt"], &["a/linked", "a/file"]);
        list(connection, "a/file", &["a/file/y.txt"], &[]);
        list(connection, "a/linked", &["a/linked/z.txt"], &[]);
    });
    let mut ends = BTreeMap::new();
    let copying: Play<'_> = Box::new(|connection| ends = end_transfers(connection, 1, &json!({})));
    let run = folder_copied(&home, &gateway, "gsv:a", vec![listing, copying]).failed(1);
    assert_eq!(ends.keys().collect::<Vec<_>>(), ["gsv:a/x.txt"]);
    for line in [
        "linked/z.txt: ".to_owned()
            + out.canonicalize().unwrap().to_str().unwrap()
            + "/linked is a link that leads to no folder inside of ",
        "file/y.txt: ".to_owned()
            + out.canonicalize().unwrap().to_str().unwrap()
            + "/file is not a folder. Move it away",
        "2 files were not copied.".to_owned(),
    ] {
        assert!(run.stderr.contains(&line), "{line}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("Glob"), "{}", run.stderr);
}
