//! Random histories against the simplest model there is: a map from call to state.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

const NOW: EpochMs = 1_800_000_000_000;
const DAY: u64 = 24 * 3_600_000;

#[derive(Debug, Clone)]
enum Step {
    Accept(u8, bool),
    Begin(u8),
    Start(u8),
    Finish(u8, usize, bool),
    Release(u8),
    Forget(u8),
    Reopen,
    Compact,
    Pass(u64),
    Tear(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let call = 0u8..8;
    prop_oneof![
        4 => (call.clone(), any::<bool>()).prop_map(|(call, mutating)| Step::Accept(call, mutating)),
        2 => call.clone().prop_map(Step::Begin),
        4 => call.clone().prop_map(Step::Start),
        4 => (call.clone(), prop_oneof![4 => 0usize..500, 1 => Just(270_000usize)], any::<bool>()).prop_map(|(call, bytes, lost)| Step::Finish(call, bytes, lost)),
        3 => call.clone().prop_map(Step::Release),
        1 => call.prop_map(Step::Forget),
        2 => Just(Step::Reopen),
        1 => Just(Step::Compact),
        1 => (0u64..2 * DAY).prop_map(Step::Pass),
        1 => (1usize..40).prop_map(Step::Tear),
    ]
}

#[derive(Debug, Clone, PartialEq)]
struct Call {
    state: CallState,
    mutating: bool,
    result: Option<Value>,
    lost: bool,
    at: EpochMs,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn p6_p7_the_ledger_equals_a_map_after_crashes_and_restarts(steps in prop::collection::vec(step(), 1..60)) {
        let dir = TempDir::new().unwrap();
        let mut now = NOW;
        let mut ledger = Ledger::open(dir.path(), now).unwrap();
        let mut model: BTreeMap<String, Call> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Accept(call, mutating) => {
                    let call = format!("call/{call}");
                    let done = ledger.accept(now, &call, "Tool", mutating).map(Commit::lazily).is_ok();
                    prop_assert_eq!(done, !model.contains_key(&call));
                    model.entry(call).or_insert(Call { state: CallState::Accepted, mutating, result: None, lost: false, at: now });
                }
                Step::Begin(call) => {
                    let call = format!("call/{call}");
                    let done = ledger.begin(now, &call, "Tool", true).map(Commit::lazily).is_ok();
                    prop_assert_eq!(done, !model.contains_key(&call));
                    model.entry(call).or_insert(Call { state: CallState::Started, mutating: true, result: None, lost: false, at: now });
                }
                Step::Start(call) => {
                    let call = format!("call/{call}");
                    let done = ledger.start(now, &call, None).map(Commit::lazily).is_ok();
                    let known = model.get_mut(&call).filter(|known| known.state == CallState::Accepted);
                    prop_assert_eq!(done, known.is_some());
                    if let Some(known) = known { known.state = CallState::Started; }
                }
                Step::Finish(call, bytes, lost) => {
                    let call = format!("call/{call}");
                    let result = json!({"callId": call, "result": "r".repeat(bytes)});
                    let done = ledger.finish(now, &call, lost, &result).map(Commit::lazily).is_ok();
                    let known = model.get_mut(&call).filter(|known| matches!(known.state, CallState::Accepted | CallState::Started));
                    prop_assert_eq!(done, known.is_some());
                    if let Some(known) = known { *known = Call { state: CallState::Finished, result: Some(result), lost, at: now, ..known.clone() }; }
                }
                Step::Release(call) => {
                    let call = format!("call/{call}");
                    let done = ledger.release(now, &call).is_ok();
                    let known = model.get_mut(&call).filter(|known| matches!(known.state, CallState::Finished | CallState::Released));
                    prop_assert_eq!(done, known.is_some());
                    if let Some(known) = known.filter(|known| known.state == CallState::Finished) { known.state = CallState::Released; known.at = now; }
                }
                Step::Forget(call) => {
                    let call = format!("call/{call}");
                    let done = ledger.forget(&call).is_ok();
                    let known = model
                        .get(&call)
                        .is_some_and(|known| known.state == CallState::Accepted || (known.state == CallState::Started && !known.mutating));
                    prop_assert_eq!(done, known);
                    if known { model.remove(&call); }
                }
                Step::Reopen => {
                    drop(ledger);
                    ledger = Ledger::open(dir.path(), now).unwrap();
                    model.retain(|_, known| known.state != CallState::Released || now - known.at <= DAY);
                    prop_assert_eq!(ledger.take_notes(), Vec::<String>::new());
                }
                Step::Compact => ledger.compact().unwrap(),
                Step::Pass(ms) => {
                    // Short of 7 days in all, so that only released calls grow too old.
                    now = (now + ms).min(NOW + 6 * DAY);
                    ledger.sweep(now);
                    model.retain(|_, known| known.state != CallState::Released || now - known.at <= DAY);
                }
                Step::Tear(bytes) => {
                    drop(ledger);
                    // The process died while it wrote a record that no one was told of.
                    let log = dir.path().join("ledger.log");
                    let mut content = std::fs::read(&log).unwrap();
                    let torn = record::encode(&Record::Accepted { call: "torn".into(), tool: "Bash".into(), mutating: true, at: 1 }).unwrap();
                    content.extend(&torn[..bytes.min(torn.len() - 1)]);
                    std::fs::write(&log, content).unwrap();
                    ledger = Ledger::open(dir.path(), now).unwrap();
                    model.retain(|_, known| known.state != CallState::Released || now - known.at <= DAY);
                    prop_assert_eq!(ledger.take_notes().len(), 1);
                }
            }
            for number in 0..8 {
                let call = format!("call/{number}");
                let known = model.get(&call);
                prop_assert_eq!(ledger.state(&call), known.map(|known| known.state));
                prop_assert_eq!(ledger.known(&call).map(|found| found.mutating), known.map(|known| known.mutating));
                prop_assert_eq!(ledger.result(&call).unwrap(), known.and_then(|known| known.result.clone()));
            }
            let lost = ledger.listing().calls.iter().filter(|call| call.state == LedgerCallState::Lost).count();
            prop_assert_eq!(lost, model.values().filter(|known| known.lost && known.state == CallState::Finished).count());
        }
    }

    #[test]
    fn any_bytes_open_as_a_log(garbage in prop::collection::vec(any::<u8>(), 0..300), with_magic in any::<bool>()) {
        let dir = TempDir::new().unwrap();
        let mut content = if with_magic { record::MAGIC.to_vec() } else { vec![] };
        content.extend(garbage);
        std::fs::write(dir.path().join("ledger.log"), content).unwrap();
        let mut ledger = Ledger::open(dir.path(), NOW).unwrap();
        ledger.accept(NOW, "a", "Bash", true).unwrap().sync().unwrap();
        drop(ledger);
        prop_assert_eq!(Ledger::open(dir.path(), NOW).unwrap().state("a"), Some(CallState::Accepted));
    }
}
