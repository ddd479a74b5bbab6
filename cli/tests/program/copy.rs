//! `gsv cp` against a gateway that the test plays.

use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::played;
use crate::common::{Home, Run, finish, signal, start};
use serde_json::json;

fn ended(id: &str) -> serde_json::Value {
    json!({"id": id, "source": "@:/etc/hostname", "destination": "gsv:a", "state": "done", "doneBytes": 1, "sizeBytes": 1,
        "sha256": "0".repeat(64), "createdAt": 1000, "endedAt": 2000})
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
