//! Admission by examples, and its invariants under every order of events.

use proptest::prelude::*;

use super::*;

const NEW: Known = Known {
    ledger: None,
    is_unrecorded: false,
};

fn of(state: CallState) -> Known {
    Known {
        ledger: Some(state),
        is_unrecorded: false,
    }
}

fn begin(has_slot: bool) -> Invoked {
    Invoked::Begin {
        is_accepted: false,
        has_slot,
    }
}

/// An admission that is full: 8 calls run and 32 wait.
fn full() -> Admission {
    let mut admission = Admission::default();
    for number in 0..40 {
        assert_eq!(admission.invoke(&format!("c{number}"), NEW), begin(number < 8));
    }
    admission
}

#[test]
fn t8_eight_calls_run_and_32_wait_and_more_are_refused() {
    let mut admission = full();
    assert_eq!(admission.invoke("one more", NEW), Invoked::Refuse);
    assert_eq!(admission.invoke("one more", of(CallState::Accepted)), Invoked::Postpone);
    assert_eq!(admission.release("c3").as_deref(), Some("c8"));
    // The result of c3 is not stored yet, so c3 still counts.
    assert_eq!(admission.invoke("one more", NEW), Invoked::Refuse);
    assert_eq!(admission.leave("c3"), None);
    assert_eq!(admission.invoke("one more", NEW), begin(false));
}

#[test]
fn t1_a_repeated_call_is_reported_while_it_is_open_and_answered_when_it_has_ended() {
    let mut admission = Admission::default();
    assert_eq!(admission.invoke("a", NEW), begin(true));
    assert_eq!(admission.invoke("a", NEW), Invoked::Report(Phase::Accepted));
    admission.started("a", false);
    // The ledger may be behind, because records of read-only calls are not synced.
    assert_eq!(
        admission.invoke("a", of(CallState::Accepted)),
        Invoked::Report(Phase::Started)
    );
    assert_eq!(
        admission.invoke("a", of(CallState::Started)),
        Invoked::Report(Phase::Started)
    );
    assert_eq!(admission.leave("a"), None);
    for state in [CallState::Finished, CallState::Released] {
        assert_eq!(admission.invoke("a", of(state)), Invoked::SendResult);
    }
}

#[test]
fn p6_a_started_call_without_a_result_is_lost_and_not_started_again() {
    let mut admission = Admission::default();
    assert_eq!(admission.invoke("a", of(CallState::Started)), Invoked::Lost);
    let unrecorded = Known {
        ledger: Some(CallState::Started),
        is_unrecorded: true,
    };
    assert_eq!(admission.invoke("a", unrecorded), Invoked::SendResult);
    assert_eq!(
        admission.invoke("b", of(CallState::Accepted)),
        Invoked::Begin {
            is_accepted: true,
            has_slot: true
        }
    );
}

#[test]
fn a_malformed_invocation_is_answered_only_when_the_call_is_new() {
    let mut admission = Admission::default();
    assert_eq!(admission.malformed("a", NEW), Malformed::Answer);
    assert_eq!(admission.malformed("a", of(CallState::Started)), Malformed::Ignore);
    assert_eq!(admission.malformed("a", of(CallState::Released)), Malformed::SendResult);
    admission.invoke("a", NEW);
    assert_eq!(admission.malformed("a", NEW), Malformed::Ignore);
}

#[test]
fn t7_a_cancellation_reaches_open_calls_and_calls_that_an_earlier_process_accepted() {
    let mut admission = Admission::default();
    assert_eq!(admission.cancel("a", NEW), Cancelled::Ignore);
    assert_eq!(admission.cancel("a", of(CallState::Accepted)), Cancelled::Finish);
    assert_eq!(admission.cancel("a", of(CallState::Finished)), Cancelled::Ignore);
    admission.invoke("a", NEW);
    assert_eq!(admission.cancel("a", NEW), Cancelled::Signal);
}

#[test]
fn a_call_that_leaves_the_queue_takes_no_slot() {
    let mut admission = full();
    assert_eq!(admission.leave("c8"), None);
    assert_eq!(admission.leave("c0").as_deref(), Some("c9"));
}

#[test]
fn commands_of_an_earlier_process_run_over_the_limit_and_keep_new_calls_waiting() {
    let mut admission = Admission::default();
    for number in 0..10 {
        assert!(admission.resume(&format!("old{number}")));
    }
    assert!(!admission.resume("old0"));
    assert_eq!(admission.invoke("a", NEW), begin(false));
    assert_eq!(admission.release("old0"), None);
    assert_eq!(admission.release("old1"), None);
    assert_eq!(admission.release("old2").as_deref(), Some("a"));
    assert_eq!(admission.short_calls(), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Invoke(u8),
    Start(u8, bool),
    Release(u8),
    Leave(u8),
    Resume(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..12).prop_map(Step::Invoke),
        2 => (0u8..12, any::<bool>()).prop_map(|(call, has_process)| Step::Start(call, has_process)),
        2 => (0u8..12).prop_map(Step::Release),
        2 => (0u8..12).prop_map(Step::Leave),
        1 => (0u8..12).prop_map(Step::Resume),
    ]
}

proptest! {
    /// Slots are never exceeded, never idle while a call waits, and given in the order of the invocations.
    #[test]
    fn t8_slots_are_given_once_each_in_order_and_never_stay_free(steps in prop::collection::vec(step(), 1..200)) {
        let limits = Limits { running_calls: 3, queued_calls: 4 };
        let mut admission = Admission { limits, ..Admission::default() };
        let mut waiting: Vec<String> = vec![];
        let mut resumed = 0;
        for step in steps {
            let mut granted = None;
            match step {
                Step::Invoke(call) => {
                    let call = call.to_string();
                    let was_active = admission.active.contains_key(&call);
                    let was_full = admission.active.len() >= 7;
                    match admission.invoke(&call, NEW) {
                        Invoked::Begin { has_slot, .. } => {
                            prop_assert!(!was_active && !was_full);
                            if !has_slot {
                                waiting.push(call);
                            }
                        }
                        Invoked::Report(_) => prop_assert!(was_active),
                        Invoked::Refuse => prop_assert!(was_full && !was_active),
                        other => prop_assert!(false, "{:?}", other),
                    }
                }
                Step::Start(call, has_process) => admission.started(&call.to_string(), has_process),
                Step::Release(call) => granted = admission.release(&call.to_string()),
                Step::Leave(call) => {
                    let call = call.to_string();
                    waiting.retain(|one| *one != call);
                    granted = admission.leave(&call);
                }
                Step::Resume(call) => resumed += usize::from(admission.resume(&call.to_string())),
            }
            if let Some(granted) = granted {
                prop_assert_eq!(&granted, &waiting.remove(0));
            }
            let running = admission.active.values().filter(|active| active.place == Place::Running).count();
            prop_assert_eq!(running, admission.running);
            prop_assert!(running <= limits.running_calls + resumed);
            prop_assert!(waiting.is_empty() || running >= limits.running_calls);
            prop_assert_eq!(waiting.iter().collect::<Vec<_>>(), admission.queue.iter().collect::<Vec<_>>());
            prop_assert!(admission.short_calls() <= admission.active.len());
        }
    }
}
