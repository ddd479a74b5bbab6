//! Runs the same work for many items on a few threads. Knows nothing of files.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// The results are in the order of the items. A thread that cannot be started is done without.
pub(super) fn side_by_side<T: Send, R: Send>(items: Vec<T>, threads: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let count = items.len();
    let waiting = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    let worker = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, item)) = next else {
                return;
            };
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            let _ = thread::Builder::new().spawn_scoped(scope, worker);
        }
        worker();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_are_in_order_and_several_items_are_worked_on_at_once() {
        // Each of four items waits until all four are worked on.
        let barrier = Barrier::new(4);
        let doubled = side_by_side((0..4).collect(), 4, |item: u32| {
            barrier.wait();
            item * 2
        });
        assert_eq!(doubled, [0, 2, 4, 6]);
        let many: Vec<u32> = (0..500).collect();
        assert_eq!(side_by_side(many.clone(), 3, |item| item), many);
        assert!(side_by_side(Vec::<u32>::new(), 3, |item| item).is_empty());
    }
}
