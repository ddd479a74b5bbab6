//! [P6] [K15] [K16] [K16'] [K17]: commands survive the node. This program is also the node that is killed with SIGKILL (with
//! its whole process group), and the supervisor program; so it has its own `main`.
//! The tests are in `survival/`, by rule.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;
#[path = "survival/recovery.rs"]
mod recovery;
#[path = "survival/scene.rs"]
mod scene;
#[path = "survival/tree.rs"]
mod tree;

use std::ffi::OsString;
use std::process::ExitCode;

use gsv_tools::supervise_main;

use self::common::PATIENCE;
use self::common::own_harness::run_tests;
use self::recovery::{
    background_is_recovered, can_be_cancelled, end_is_reported, ended_meanwhile, gone_is_lost, never_started,
    running_is_recovered, timeout_goes_on,
};
use self::scene::{Scene, node};
use self::tree::{FAR, tree_ends};
#[cfg(target_os = "linux")]
use self::tree::{FAR_CHILD, FAR_ORPHAN, FAR_SCRIPT, chain_ends, far_gets_term, others_go_on, timeout_ends_tree};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|first| first.to_str()) {
        Some("__supervise") => supervise_main(args.into_iter().skip(1)),
        Some("__node") => {
            node(&args[1..]);
            ExitCode::SUCCESS
        }
        _ => run_tests(&args, survival_tests()),
    }
}

type Test = (&'static str, fn(&Scene));

const TESTS: [Test; 9] = [
    ("k16_a_running_command_is_recovered_and_ran_once", |scene| {
        block(running_is_recovered(scene));
    }),
    ("k17_a_command_that_ended_meanwhile_has_its_result", |scene| {
        block(ended_meanwhile(scene));
    }),
    (
        "k16b_a_killed_command_is_lost_and_its_pid_and_output_are_known",
        |scene| {
            block(gone_is_lost(scene));
        },
    ),
    ("k15_a_command_whose_start_was_not_recorded_never_ran", |scene| {
        block(never_started(scene));
    }),
    ("p6_the_timeout_goes_on_from_the_start", |scene| {
        block(timeout_goes_on(scene));
    }),
    ("p6_a_recovered_background_command_still_takes_input", |scene| {
        block(background_is_recovered(scene));
    }),
    (
        "w14_an_end_while_the_node_was_down_is_reported_until_released",
        |scene| block(end_is_reported(scene)),
    ),
    ("p14_a_recovered_command_can_be_cancelled", |scene| {
        block(can_be_cancelled(scene));
    }),
    ("f20_p14_a_cancelled_call_ends_processes_in_other_sessions", |scene| {
        block(tree_ends(scene, FAR));
    }),
];

/// Only Linux tells which processes belong to a command after they have left its tree.
#[cfg(target_os = "linux")]
const ON_LINUX: [Test; 9] = [
    ("f20_p14_processes_in_other_sessions_get_term_before_kill", |scene| {
        block(far_gets_term(scene));
    }),
    (
        "f20_p14_a_cancelled_call_ends_children_of_processes_that_left_its_session",
        |scene| {
            block(tree_ends(scene, FAR_CHILD));
        },
    ),
    ("f20_p14_a_cancelled_call_ends_orphans_in_other_sessions", |scene| {
        block(tree_ends(scene, FAR_ORPHAN));
    }),
    (
        "f20_p14_a_cancelled_call_ends_what_is_left_without_a_supervisor",
        |scene| {
            block(tree_ends(scene, &format!("kill -9 $PPID; {FAR}")));
        },
    ),
    (
        "f20_p14_a_cancelled_call_ends_orphans_without_an_environment",
        |scene| {
            block(tree_ends(
                scene,
                &format!("kill -9 $PPID; env -i PATH=\"$PATH\" sh -c '{FAR_SCRIPT}'"),
            ));
        },
    ),
    (
        "f20_p14_a_cancelled_call_ends_although_its_supervisor_was_stopped",
        |scene| {
            block(tree_ends(scene, &format!("kill -STOP $PPID; {FAR}")));
        },
    ),
    ("f20_p6_a_timeout_ends_what_is_left_without_a_supervisor", |scene| {
        block(timeout_ends_tree(scene));
    }),
    (
        "f20_p14_a_cancelled_call_ends_a_program_that_replaces_itself",
        |scene| {
            block(chain_ends(scene));
        },
    ),
    ("f20_p14_a_cancelled_call_leaves_the_orphans_of_other_calls", |scene| {
        block(others_go_on(scene));
    }),
];
#[cfg(not(target_os = "linux"))]
const ON_LINUX: [Test; 0] = [];

fn survival_tests() -> impl Iterator<Item = (String, impl FnOnce())> {
    let tests = TESTS.into_iter().chain(ON_LINUX);
    tests
        .flat_map(|test| ["shell", "program"].map(|kind| (test, kind)))
        .map(|((name, test), kind)| (format!("{name}_by_{kind}"), move || test(&Scene::new(kind))))
}

fn block(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") });
}
