//! [SB1]: a tier counts only when its canaries hold.

use gsv_sandbox::{Canary, Finding, Profile, Program, Tier, probe};

use crate::scene::{Scene, program, search};

/// A canary that can't get through anywhere would prove nothing.
pub(crate) fn all_open() {
    // The probe runs its program as `__confine FILE -- PROGRAM __canary LAB`: a shell that only runs the rest confines nothing.
    let scene = Scene::new(Profile::Workspace);
    let script = scene.path("state/no-sandbox");
    std::fs::write(
        &script,
        format!("#!/bin/sh\nshift 4\nexec {} \"$@\"\n", program().path.display()),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let without = Program {
        path: script,
        ..program()
    };
    // Seatbelt is the only tier that has nothing to find on Linux besides its program: take the one that this machine has.
    let tiers = [Tier::Landlock, Tier::Bubblewrap];
    let report = probe(&scene.request, &scene.plan(), &without, &tiers, &search());
    let Some(Finding::Fails { why }) = report
        .findings
        .iter()
        .map(|(_, finding)| finding)
        .find(|finding| matches!(finding, Finding::Fails { why } if why.contains("test failed")))
    else {
        println!("skipped: no tier to test with: {}", report.problem());
        return;
    };
    // Mounting needs privileges, and a tier with gaps does not name them.
    let gaps = [
        Canary::Mount,
        Canary::ChangeGitHooks,
        Canary::ListProcesses,
        Canary::ChangePermissions,
        Canary::Signal,
    ];
    for canary in Canary::ALL.into_iter().filter(|canary| !gaps.contains(canary)) {
        assert!(why.contains(canary.words()), "{canary:?} did not get through: {why}");
    }
    assert_eq!(report.level(), None);
}

pub(crate) fn missing_tier() {
    let scene = Scene::new(Profile::Workspace);
    let report = probe(&scene.request, &scene.plan(), &program(), &[Tier::Bubblewrap], &[]);
    assert_eq!(report.level(), None);
    let problem = report.problem();
    assert!(problem.contains("bwrap"), "{problem}");
    assert!(report.advice().is_some());
}

pub(crate) fn canaries_hold(tier: Tier) {
    for profile in [Profile::Workspace, Profile::WorkspaceNet, Profile::Strict] {
        let report = Scene::new(profile).probe(&[tier]);
        if profile == Profile::WorkspaceNet && !tier.has_hosts() {
            assert_eq!(report.level(), None);
            assert!(report.problem().contains("single hosts"), "{}", report.problem());
            continue;
        }
        let level = report
            .level()
            .unwrap_or_else(|| panic!("{}: {}", profile.name(), report.problem()));
        let gaps: &[Canary] = match tier {
            Tier::Landlock => &[Canary::ChangeGitHooks, Canary::ListProcesses, Canary::ChangePermissions],
            _ => &[],
        };
        assert_eq!(level.gaps, gaps, "{}", profile.name());
    }
}

/// A program that lies where commands see nothing of other programs is seen by its own test, and nothing beside it is.
pub(crate) fn program_in_a_shared_folder(tier: Tier) {
    for shared in ["/tmp", "/var/tmp"] {
        let folder = tempfile::TempDir::with_prefix_in("gsv-p-", shared).unwrap();
        let copy = folder.path().canonicalize().unwrap().join("deep/gsv");
        std::fs::create_dir(copy.parent().unwrap()).unwrap();
        std::fs::copy(program().path, &copy).unwrap();
        let moved = Program {
            path: copy,
            ..program()
        };
        for profile in [Profile::Workspace, Profile::Strict] {
            let scene = Scene::new(profile);
            let report = probe(&scene.request, &scene.plan(), &moved, &[tier], &search());
            assert!(
                report.level().is_some(),
                "{} {shared}: {}",
                profile.name(),
                report.problem()
            );
            let left = scene.path("own/tmp").read_dir().map_or(0, Iterator::count);
            assert_eq!(left, 0, "the test leaves nothing in the folder for temporary files");
            // Commands do not see it.
            let found = scene.sh(tier, &format!("ls {}", folder.path().display()));
            assert!(!found.status.success(), "{found:?}");
        }
    }
}
