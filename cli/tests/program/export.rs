//! `gsv deploy export` from a gateway that the test plays.

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{fed, serve};
use crate::common::{finish, signal};

fn describe(connection: &mut Connection) {
    let described = json!({"home": {"moveId": "0123456789abcdef0123456789abcdef", "version": "0.1.0", "madeAt": 1, "levels": {},
        "secrets": [], "hooks": [], "machines": [], "channels": []}});
    serve(connection, "move.describe", &json!({}), &described);
}

#[test]
fn mv14_an_export_that_fails_after_its_last_page_names_the_way_back() {
    for (is_last, names_it) in [(true, true), (false, false)] {
        let gateway = FakeGateway::new();
        let home = gateway.home();
        let folder = home.root().join("exports");
        fs::create_dir(&folder).unwrap();
        let file = folder.join("home.gsv");
        let args = ["deploy", "export", file.to_str().unwrap(), "--passphrase-stdin"];
        let run = fed(
            &home,
            &gateway,
            &args,
            "a long passphrase\n",
            vec![Box::new(|connection| {
                describe(connection);
                let asked = connection.expect("move.read");
                fs::remove_dir(&folder).unwrap();
                if is_last {
                    connection.answer(&asked, &json!({"text": "{}\n", "parts": 1}));
                } else {
                    connection.error(&asked, 409, "move.changed", "The state has changed.");
                }
            })],
        );
        let run = run.failed(1);
        assert_eq!(
            run.stderr.contains("`gsv resume --exported`"),
            names_it,
            "{}",
            run.stderr
        );
    }
}

/// When it sends the last page, the gateway notes the export, and that it was the last one is known by its answer.
#[test]
fn mv14_an_export_that_loses_an_answer_or_is_stopped_while_it_reads_names_the_way_back() {
    for is_stopped in [false, true] {
        let gateway = FakeGateway::new();
        let home = gateway.home();
        let file = home.root().join("home.gsv");
        let mut command = home.command();
        command
            .args(["deploy", "export", file.to_str().unwrap()])
            .env("GSV_BACKUP_PASSPHRASE", "a long passphrase")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let mut connection = gateway.accept();
        describe(&mut connection);
        connection.expect("move.read");
        let code = if is_stopped {
            signal(&child, "-INT");
            130
        } else {
            connection.close(1011, "gone");
            4
        };
        let run = finish(child).failed(code);
        assert!(
            run.stderr.contains("may be noted as exported")
                && run
                    .stderr
                    .contains("`gsv resume`, and if that is refused, `gsv resume --exported`"),
            "{}",
            run.stderr
        );
    }
}
