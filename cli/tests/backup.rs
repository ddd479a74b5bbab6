//! `gsv backup` without a gateway.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;

use common::Home;

#[test]
fn bk8_a_folder_is_refused_before_the_passphrase_is_asked_for() {
    let home = Home::new();
    let root = home.root().to_str().unwrap().to_owned();
    for force in [&[][..], &["--force"]] {
        let run = home.gsv([&["backup", &root], force].concat()).failed(2);
        assert!(run.stderr.contains("is a folder"), "{run:?}");
    }
}
