//! Which services and files are those of a state folder, and which are not.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::common::service_world::World;
use crate::common::{finish, start};
use serde_json::json;

#[test]
fn sv7_a_unit_that_someone_else_put_there_after_the_installation_stays() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    let unit = world.services.only_unit();
    let own = fs::read_to_string(&unit).unwrap();
    let foreign = "[Service]\nExecStart=/bin/true\n";
    fs::write(&unit, foreign).unwrap();
    for verb in ["install", "uninstall"] {
        let run = world.gsv(&["service", verb]).failed(1);
        assert!(run.stderr.contains("was not written by GSV"), "{verb}: {}", run.stderr);
        assert_eq!(fs::read_to_string(&unit).unwrap(), foreign, "{verb}");
    }
    fs::remove_file(&unit).unwrap();
    let nowhere = world.gateway.home.root().join("nowhere");
    symlink(&nowhere, &unit).unwrap();
    for verb in ["install", "uninstall"] {
        let run = world.gsv(&["service", verb]).failed(1);
        assert!(run.stderr.contains("was not written by GSV"), "{verb}: {}", run.stderr);
        assert_eq!(fs::read_link(&unit).unwrap(), nowhere, "{verb}");
    }
    fs::remove_file(&unit).unwrap();
    fs::write(&unit, own).unwrap();
    world.gsv(&["service", "uninstall"]).ok();
    assert!(world.services.knows_nothing());
}

#[test]
fn sv2_services_run_without_a_login_until_the_last_state_folder_has_none() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    let other = world
        .services
        .only_unit()
        .with_file_name("gsv.00000000-gateway.service");
    fs::copy(world.services.only_unit(), &other).unwrap();
    world.gsv(&["service", "uninstall"]).ok();
    assert_eq!(world.services.only_unit(), other);
    assert!(world.services.lingers(), "the other one needs it");
    fs::remove_file(other).unwrap();
    world.gsv(&["service", "uninstall"]).ok();
    assert!(!world.services.lingers());
    assert!(!world.gateway.home.state().join("services").exists());
}

#[test]
fn sv1_one_state_folder_has_one_service_however_it_is_written() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    let (unit, pid) = (world.services.only_unit(), world.gateway.pid("supervisorPid"));
    let state = world.gateway.home.state();
    let link = world.gateway.home.root().join("link");
    symlink(&state, &link).unwrap();
    let ways = [
        link,
        state.join(""),
        state.join("../state"),
        world.gateway.home.root().join("none/../state"),
    ];
    for way in ways {
        let mut command = world.command(&["service", "status", "--json"]);
        let status = finish(start(command.env("GSV_HOME", &way))).json();
        assert_eq!(status["file"], json!(unit), "{}", way.display());
        assert_eq!(status["pid"], json!(pid));
    }
}

#[test]
fn sv1_a_service_that_an_older_version_named_is_found_by_its_record() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    world.gsv(&["service", "stop"]).ok();
    let unit = world.services.only_unit();
    let name = unit.file_stem().unwrap().to_str().unwrap();
    let old = unit.with_file_name("gsv.0000abcd-gateway.service");
    let records = world.gateway.home.state().join("services");
    let record = records.join(format!("{name}.json"));
    let text = fs::read_to_string(&record)
        .unwrap()
        .replace(name, "gsv.0000abcd-gateway");
    fs::write(&record, text).unwrap();
    fs::rename(&record, records.join("gsv.0000abcd-gateway.json")).unwrap();
    fs::rename(&unit, &old).unwrap();
    world.gsv(&["service", "install"]).ok();
    assert_eq!(world.services.only_unit(), old);
    assert_eq!(world.status()["state"], "running");
    // The records of a copied folder are the original's.
    let copy = world.gateway.home.root().join("copy");
    let copied = Command::new("cp").args(["-Rp"]).args([&records, &copy]).status();
    assert!(copied.unwrap().success());
    fs::create_dir(world.gateway.home.root().join("second")).unwrap();
    fs::rename(&copy, world.gateway.home.root().join("second/services")).unwrap();
    let mut command = world.command(&["service", "status", "--json"]);
    let status = finish(start(command.env("GSV_HOME", world.gateway.home.root().join("second")))).json();
    assert_eq!(status["installed"], false, "{status}");
    world.gsv(&["service", "uninstall"]).ok();
    assert!(world.services.units().is_empty());
}
