//! PURE. The order in which results and events go to the gateway: results a few at once, events one by one, everything
//! unacknowledged again after each reconnect (SPEC.md T2).

use std::collections::{HashMap, HashSet, VecDeque};

use gsv_protocol::types::ToolResultParams;

/// Results that are sent at the same time.
const RESULTS_AT_ONCE: usize = 4;

/// One thing to send, by its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Item {
    Result(String),
    Event(String),
}

#[derive(Debug, Default)]
pub struct Outbox {
    online: bool,
    results: VecDeque<String>,
    events: VecDeque<String>,
    in_flight: HashSet<Item>,
    /// Results that the ledger could not store. When the process ends, they are lost and their calls have an unknown outcome.
    unrecorded: HashMap<String, ToolResultParams>,
}

impl Outbox {
    /// Queues an item unless it waits or is being sent.
    pub fn add(&mut self, item: Item) {
        if self.in_flight.contains(&item) {
            return;
        }
        let (queue, id) = match item {
            Item::Result(id) => (&mut self.results, id),
            Item::Event(id) => (&mut self.events, id),
        };
        if !queue.contains(&id) {
            queue.push_back(id);
        }
    }

    /// Queues a result that the ledger could not store.
    pub fn add_unrecorded(&mut self, call_id: &str, params: ToolResultParams) {
        self.unrecorded.insert(call_id.to_owned(), params);
        self.add(Item::Result(call_id.to_owned()));
    }

    pub fn unrecorded(&self, call_id: &str) -> Option<&ToolResultParams> {
        self.unrecorded.get(call_id)
    }

    pub fn take_unrecorded(&mut self, call_id: &str) -> Option<ToolResultParams> {
        self.unrecorded.remove(call_id)
    }

    /// The link is up. All unacknowledged items are sent again, except those that the link itself resends. `results` and
    /// `events` are the ledger's, oldest first.
    pub fn online(&mut self, results: Vec<String>, events: Vec<String>) {
        self.online = true;
        let waiting = std::mem::take(&mut self.results);
        let unrecorded: Vec<String> = self.unrecorded.keys().cloned().collect();
        for id in results.into_iter().chain(waiting).chain(unrecorded) {
            self.add(Item::Result(id));
        }
        self.events.clear();
        for id in events {
            self.add(Item::Event(id));
        }
    }

    pub fn offline(&mut self) {
        self.online = false;
    }

    /// The next item to send now. Events go one by one, because a later one builds on an earlier one.
    pub fn next(&mut self) -> Option<Item> {
        if !self.online {
            return None;
        }
        let sends_event = self.in_flight.iter().any(|item| matches!(item, Item::Event(_)));
        let sent_results = self.in_flight.len() - usize::from(sends_event);
        let result = if sent_results < RESULTS_AT_ONCE {
            self.results.pop_front().map(Item::Result)
        } else {
            None
        };
        let item = match result {
            Some(item) => item,
            None if sends_event => return None,
            None => Item::Event(self.events.pop_front()?),
        };
        self.in_flight.insert(item.clone());
        Some(item)
    }

    /// An attempt to send the item is over. `again`: it is the next one to be sent.
    pub fn ended(&mut self, item: Item, again: bool) {
        self.in_flight.remove(&item);
        if again {
            match item {
                Item::Result(id) => self.results.push_front(id),
                Item::Event(id) => self.events.push_front(id),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(id: &str) -> Item {
        Item::Result(id.to_owned())
    }

    fn event(id: &str) -> Item {
        Item::Event(id.to_owned())
    }

    fn drain(outbox: &mut Outbox) -> Vec<Item> {
        std::iter::from_fn(|| outbox.next()).collect()
    }

    #[test]
    fn t2_after_a_reconnect_unacknowledged_items_are_sent_oldest_first() {
        let mut outbox = Outbox::default();
        outbox.add(result("b"));
        assert_eq!(outbox.next(), None);
        outbox.online(vec!["a".into(), "b".into()], vec!["e".into()]);
        assert_eq!(drain(&mut outbox), [result("a"), result("b"), event("e")]);
        outbox.offline();
        outbox.ended(result("a"), true);
        assert_eq!(outbox.next(), None);
        // The link itself resends what is in flight.
        outbox.online(vec!["a".into(), "b".into()], vec!["e".into(), "f".into()]);
        assert_eq!(drain(&mut outbox), [result("a")]);
        outbox.ended(event("e"), false);
        assert_eq!(drain(&mut outbox), [event("f")]);
    }

    #[test]
    fn at_most_four_results_and_one_event_are_sent_at_once() {
        let mut outbox = Outbox::default();
        outbox.online((0..6).map(|n| n.to_string()).collect(), vec!["e".into(), "f".into()]);
        assert_eq!(drain(&mut outbox).len(), 5);
        outbox.ended(result("2"), false);
        assert_eq!(drain(&mut outbox), [result("4")]);
    }

    #[test]
    fn an_item_is_queued_once_and_a_failed_item_is_sent_first() {
        let mut outbox = Outbox::default();
        outbox.online(vec![], vec![]);
        for _ in 0..2 {
            outbox.add(result("a"));
            outbox.add(event("e"));
        }
        assert_eq!(drain(&mut outbox), [result("a"), event("e")]);
        outbox.add(result("a"));
        outbox.add(result("b"));
        outbox.ended(result("a"), true);
        assert_eq!(drain(&mut outbox), [result("a"), result("b")]);
    }

    #[test]
    fn p7_a_result_that_could_not_be_stored_is_sent_after_every_reconnect() {
        let mut outbox = Outbox::default();
        let params = ToolResultParams {
            call_id: "a".into(),
            result: None,
            error: None,
            reason: None,
            outcome: None,
            duration_ms: None,
        };
        outbox.add_unrecorded("a", params);
        for _ in 0..2 {
            outbox.online(vec![], vec![]);
            assert_eq!(drain(&mut outbox), [result("a")]);
            outbox.ended(result("a"), false);
        }
        assert!(outbox.take_unrecorded("a").is_some());
        outbox.online(vec![], vec![]);
        assert_eq!(drain(&mut outbox), []);
    }
}
