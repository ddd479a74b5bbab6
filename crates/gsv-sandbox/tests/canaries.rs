//! [SB1] [SB3] [SB4] [SB5]: what a command can do in each profile and tier, on this machine. This program is also the program
//! that confines and the one that tries to break out; so it has its own `main`. A tier that the machine lacks is named and skipped.
//! The tests are in `canaries/`, by rule.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on has failed; the harness prints the tests' results"
)]

#[path = "canaries/attempts.rs"]
mod attempts;
#[path = "canaries/files.rs"]
mod files;
#[path = "canaries/others.rs"]
mod others;
#[path = "canaries/projects.rs"]
mod projects;
#[path = "canaries/scene.rs"]
mod scene;
#[path = "canaries/tiers.rs"]
mod tiers;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use gsv_sandbox::{Profile, Tier, canary_main, confine_main};

use self::attempts::attempts;
use self::files::{
    caches, changes_nothing, fails_closed, hidden_files, names_the_program, no_secrets, own_links, own_places,
    refuses_other_calls, strict_reads, writes,
};
use self::others::{
    masks_met_sockets, masks_moved_sockets, masks_relative_sockets, masks_sockets, needs_the_list_of_sockets,
    no_datagrams, no_descriptors, nothing_outside, stale_plans, starts_once,
};
use self::projects::{
    other_mounts, protects, protects_any_git, protects_configured, protects_homes, protects_linked, races,
};
use self::scene::Scene;
use self::tiers::{all_open, canaries_hold, missing_tier, program_in_a_shared_folder};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|first| first.to_str()) {
        Some("__confine") => confine_main(args.into_iter().skip(1)),
        Some("__canary") => canary_main(args.into_iter().skip(1)),
        _ => run(&args),
    }
}

type Test = (&'static str, fn(Tier));

const IN_EACH_TIER: [Test; 17] = [
    ("sb1_the_canaries_hold_in_each_profile", canaries_hold),
    ("sb1_a_program_in_a_shared_folder_is_tested", program_in_a_shared_folder),
    ("sb3_hidden_files_can_not_be_read_and_others_can", hidden_files),
    ("sb3_only_the_workspace_roots_and_temporary_folder_are_written", writes),
    ("sb3_strict_reads_only_the_workspace_and_the_system", strict_reads),
    ("sb21_a_command_that_reads_only_changes_nothing", changes_nothing),
    ("sb4_there_is_no_network_and_no_way_to_other_programs", nothing_outside),
    (
        "sb4_nothing_is_sent_to_datagram_sockets_of_other_programs",
        no_datagrams,
    ),
    ("sb7_caches_are_shared_and_their_tools_keep_their_homes", caches),
    ("sb8_the_environment_has_no_secrets", no_secrets),
    ("sb10_a_command_without_its_plan_does_not_run", fails_closed),
    ("sb10_a_call_that_is_no_call_of_a_node_is_refused", refuses_other_calls),
    (
        "sb10_a_program_that_the_sandbox_does_not_show_is_named",
        names_the_program,
    ),
    ("sb3_sb4_no_attempt_of_the_table_gets_out", attempts),
    ("sb4_open_files_of_the_node_are_not_inherited", no_descriptors),
    ("sb7_a_folder_that_was_replaced_by_a_link_is_made_again", own_links),
    ("sb7_what_is_in_the_place_of_an_own_folder_is_no_hindrance", own_places),
];
const IN_BUBBLEWRAP: [Test; 14] = [
    ("sb5_hooks_and_settings_of_the_workspace_are_read_only", protects),
    ("sb5_worktrees_and_submodules_are_protected_too", protects_linked),
    ("sb5_git_directories_of_any_name_are_protected", protects_any_git),
    ("sb5_what_a_git_configuration_names_is_protected", protects_configured),
    ("sb5_what_the_users_shell_and_git_read_is_protected", protects_homes),
    (
        "sb4_sockets_of_other_programs_in_the_workspace_are_masked",
        masks_sockets,
    ),
    ("sb4_sockets_with_relative_paths_are_masked", masks_relative_sockets),
    (
        "sb4_sb21_a_socket_that_only_the_search_has_met_is_masked_also_for_a_command_that_reads_only",
        masks_met_sockets,
    ),
    (
        "sb4_sb10_without_the_list_of_sockets_no_command_runs",
        needs_the_list_of_sockets,
    ),
    (
        "sb4_a_socket_of_another_program_that_a_command_has_moved_is_masked",
        masks_moved_sockets,
    ),
    (
        "sb20_a_command_is_started_again_as_long_as_it_has_not_begun",
        stale_plans,
    ),
    ("sb20_a_command_that_has_begun_is_not_started_again", starts_once),
    ("sb5_sb10_other_mounts_than_the_planned_ones_are_refused", other_mounts),
    ("sb5_a_folder_that_changes_into_a_link_meanwhile", |tier| {
        races(tier, 100);
    }),
];
/// Take minutes, so they run only when they are named.
const LONG: [Test; 1] = [("long_sb5_a_folder_that_changes_into_a_link_meanwhile", |tier| {
    races(tier, 3000);
})];

fn run(args: &[OsString]) -> ExitCode {
    let words: Vec<&str> = args
        .iter()
        .filter_map(|arg| arg.to_str())
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_list = args.iter().any(|arg| arg == "--list");
    let mut exit = ExitCode::SUCCESS;
    let mut test = |name: String, work: &dyn Fn()| {
        if !words.iter().all(|word| name.contains(word)) {
            return;
        }
        if is_list {
            println!("{name}: test");
            return;
        }
        let passed = catch_unwind(AssertUnwindSafe(work)).is_ok();
        if !passed {
            exit = ExitCode::FAILURE;
        }
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    };
    test("sb1_every_canary_gets_through_without_a_sandbox".into(), &all_open);
    test("sb1_a_tier_that_is_not_there_is_named".into(), &missing_tier);
    for tier in [Tier::Bubblewrap, Tier::Landlock] {
        if let Some(why) = missing(tier) {
            println!("skipped: {} ({why})", tier.name());
            continue;
        }
        for (name, work) in IN_EACH_TIER {
            test(format!("{name} ({})", tier.name()), &|| work(tier));
        }
        let more: &[Test] = if tier == Tier::Bubblewrap { &IN_BUBBLEWRAP } else { &[] };
        for (name, work) in more {
            test(format!("{name} ({})", tier.name()), &|| work(tier));
        }
        let asks_for_long = words.iter().any(|word| word.contains("long_"));
        for (name, work) in LONG {
            if tier == Tier::Bubblewrap && asks_for_long {
                test(name.to_owned(), &|| work(tier));
            }
        }
    }
    exit
}

/// Why the machine lacks a tier. A tier that is there and does not hold is not missing: its tests fail.
fn missing(tier: Tier) -> Option<String> {
    let scene = Scene::new(Profile::Workspace);
    let problem = scene.probe(&[tier]).problem();
    let lacks = ["not installed", "no Landlock", "does not have", "namespace"];
    lacks.iter().any(|word| problem.contains(word)).then_some(problem)
}
