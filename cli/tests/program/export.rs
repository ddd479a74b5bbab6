//! `gsv deploy export` from a gateway that the test plays.

use std::fs;

use serde_json::json;

use crate::common::fake_gateway::FakeGateway;
use crate::common::play::{fed, serve};

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
                let described = json!({"home": {"moveId": "0123456789abcdef0123456789abcdef", "version": "0.1.0", "madeAt": 1, "levels": {},
                    "secrets": [], "hooks": [], "machines": [], "channels": []}});
                serve(connection, "move.describe", &json!({}), &described);
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
