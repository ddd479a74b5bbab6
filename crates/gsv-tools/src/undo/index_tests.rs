use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::change::{Change, FileState};
use super::index::{Index, Limits};

const HOUR: u64 = 3_600_000;

fn file(content: u8) -> FileState {
    FileState::File {
        sha256: format!("{content:02x}"),
        size: u64::from(content) * 10,
        mode: 0o644,
    }
}

/// Content 0 stands for no file.
fn state(content: u8) -> FileState {
    if content == 0 { FileState::Absent } else { file(content) }
}

fn change(seq: u64, call: &str, at_ms: u64, path: u8, before: u8, after: u8) -> Change {
    Change {
        seq,
        call: call.to_owned(),
        at_ms,
        path: format!("/ws/{path}"),
        before: state(before),
        after: state(after),
    }
}

fn copies<'a>(changes: impl Iterator<Item = &'a Change>) -> HashMap<String, u64> {
    changes
        .filter_map(|change| change.before.copy())
        .map(|(sha256, size)| (sha256.to_owned(), size))
        .collect()
}

proptest! {
    #[test]
    fn un2_the_limits_hold_and_only_the_oldest_changes_go(
        made in proptest::collection::vec((0u64..20, 0u8..40, 0u8..40), 0..60),
        bytes in 0u64..3000,
        hours in 1u64..200,
        most in 1usize..60,
    ) {
        let limits = Limits { bytes, age_ms: hours * HOUR, changes: most };
        let (mut index, mut now, mut all) = (Index::default(), 0, Vec::new());
        for (seq, (wait, before, after)) in (1u64..).zip(made) {
            now += wait * HOUR;
            let made = change(seq, "c", now, before % 7, before, after);
            all.push(made.clone());
            index.push(made);
            let needed_before = copies(index.changes());
            let freed = index.prune(now, limits);
            let kept: Vec<&Change> = index.changes().collect();
            prop_assert!(!index.is_over(now, limits));
            // What stays is an unbroken end of what was made: no copy went while an older one stayed.
            let tail: Vec<&Change> = all[all.len() - kept.len()..].iter().collect();
            prop_assert_eq!(&kept, &tail);
            let needed = copies(index.changes());
            prop_assert_eq!(index.bytes(), needed.values().sum::<u64>());
            prop_assert!(needed.keys().all(|sha256| index.needs(sha256)));
            let gone: HashSet<String> = needed_before.keys().filter(|sha256| !needed.contains_key(*sha256)).cloned().collect();
            prop_assert!(!gone.iter().any(|sha256| index.needs(sha256)));
            prop_assert_eq!(freed.into_iter().collect::<HashSet<_>>(), gone);
        }
    }

    /// Each step is a change by one of three calls, or by another program, which is not recorded.
    #[test]
    fn un3_an_undo_loses_no_change_of_others(
        made in proptest::collection::vec((0u8..4, 0u8..3, 0u8..6), 1..25),
        undone in 0u8..3,
    ) {
        let mut index = Index::default();
        let mut now: HashMap<u8, u8> = HashMap::new();
        // By path: what it held before the undone call came first, and whether something else changed it to a new state since.
        let mut first: HashMap<u8, u8> = HashMap::new();
        let mut others: HashMap<u8, HashSet<u8>> = HashMap::new();
        for (call, path, after) in made {
            let before = now.insert(path, after).unwrap_or(0);
            if call < 3 {
                index.push(change(index.next_seq(), &format!("ref/r1/{call}/0"), 0, path, before, after));
            }
            if call == undone {
                first.entry(path).or_insert(before);
            } else if first.contains_key(&path) && before != after {
                others.entry(path).or_default().insert(after);
            }
        }
        let steps = index.plan(&format!("ref/r1/{undone}/0"));
        prop_assert_eq!(steps.len(), first.len());
        prop_assert!(steps.is_sorted_by(|one, two| one.seq > two.seq));
        for step in steps {
            let path: u8 = step.path[4..].parse().unwrap();
            prop_assert_eq!(&step.before, &state(first[&path]));
            let present = state(now[&path]);
            let is_free = !step.is_mixed && step.left.iter().any(|left| left.is_same(&present));
            if !others.contains_key(&path) {
                prop_assert!(is_free, "nothing else changed it: {:?}", step);
            }
            if is_free {
                // The state that goes is one that the undone call made, so no other program's content is lost.
                prop_assert!(step.left.contains(&present));
            }
        }
    }
}

#[test]
fn un2_what_is_kept_may_reach_its_limits_and_only_beyond_them_room_is_made() {
    let limits = Limits {
        bytes: 200,
        age_ms: 10,
        changes: 9,
    };
    let made = |count: u8| {
        let mut index = Index::default();
        for at in 0..count {
            // Two contents of 100 bytes each, in turn.
            let content = FileState::File {
                sha256: (at % 2).to_string(),
                size: 100,
                mode: 0o644,
            };
            let mut made = change(u64::from(at), "c", u64::from(at), 1, 0, 0);
            made.before = content;
            index.push(made);
        }
        index
    };
    let left = |count, now_ms| {
        let mut index = made(count);
        index.prune(now_ms, limits);
        index.changes().count()
    };
    assert_eq!(left(9, 10), 9, "200 bytes in 9 changes, the oldest at its last moment");
    assert_eq!(left(9, 11), 8, "one is too old, which makes no room for others");
    assert_eq!(left(10, 10), 1, "room is made, for bytes too");
}

#[test]
fn un3_a_run_is_undone_as_a_whole_and_a_call_alone() {
    let mut index = Index::default();
    index.push(change(1, "ref/r1/1/0", 0, 1, 0, 1));
    index.push(change(2, "ref/r1/2/0", 0, 1, 1, 2));
    index.push(change(3, "ref/r12/1/0", 0, 2, 3, 0));
    let run = index.plan("ref/r1/");
    assert_eq!(run.len(), 1);
    assert_eq!((&run[0].before, run[0].seq), (&FileState::Absent, 2));
    assert_eq!(index.plan("ref/r1/2/0")[0].before, file(1));
    assert_eq!(index.plan("ref/r1"), [], "the beginning of a call's id names nothing");
    assert_eq!(index.plan("ref/r12/").len(), 1);
}

#[test]
fn un3_a_recorded_change_that_was_not_made_is_no_conflict() {
    let mut index = Index::default();
    // The node was killed between the record and the change; the next call found the old content.
    index.push(change(1, "ref/r1/1/0", 0, 1, 1, 2));
    index.push(change(2, "ref/r1/2/0", 0, 1, 1, 3));
    let [step] = index.plan("ref/r1/").try_into().unwrap();
    assert!(!step.is_mixed);
    assert_eq!(step.before, file(1));
}
