//! Work on the disk that may take minutes while an attempt moves no bytes: the gateway is told meanwhile that this end is alive, and work
//! before the first byte ends with the attempt.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gsv_tools::ToolError;
use gsv_tools::beneath::GoesOn;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::attempts::Signal;
use super::on_disk;

/// Half of the time after which the runtime may evict an object that hears nothing: the gateway's object would lose its attempts.
const ALIVE: Duration = Duration::from_secs(5);

/// The result of the work. Calls `say` every 5 seconds while `silent` is true: then nothing else tells the gateway of this end.
pub async fn saying_alive<T>(say: impl Fn(), silent: impl Fn() -> bool, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut beats = interval_at(Instant::now() + ALIVE, ALIVE);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = beats.tick() => if silent() { say() },
        }
    }
}

/// The result of work before the first byte, or what ended the attempt before: a signal, or `None` when the connection is gone. Then the
/// work has ended, too.
pub async fn while_alive<T: Send + 'static>(
    say: impl Fn(),
    signals: &mut mpsc::Receiver<Signal>,
    work: impl FnOnce(&GoesOn<'_>) -> Result<T, ToolError> + Send + 'static,
) -> Result<Result<T, ToolError>, Option<Signal>> {
    let wanted = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&wanted);
    let working = on_disk(move || work(&|| asked.load(Ordering::Relaxed)));
    let mut working = pin!(saying_alive(say, || wanted.load(Ordering::Relaxed), working));
    tokio::select! {
        done = &mut working => Ok(done),
        // Nothing else is said to an attempt before it moves bytes.
        ended = signals.recv() => {
            wanted.store(false, Ordering::Relaxed);
            // Its files are closed, and the next attempt can have them.
            let _ = working.await;
            Err(ended)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc::channel;
    use std::thread;

    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn tf17_the_gateway_hears_every_5_seconds_of_work_on_the_disk_and_nothing_after_it() {
        let (said, silent) = (Cell::new(0), Cell::new(true));
        let (end, ended) = channel();
        let (_open, mut signals) = mpsc::channel(1);
        let work = while_alive(
            || said.set(said.get() + 1),
            &mut signals,
            move |_| ended.recv().map_err(|error| ToolError::Failed(error.to_string())),
        );
        let clock = async {
            for (seconds, total) in [(4, 0), (1, 1), (5, 2), (15, 5)] {
                advance(SECOND * seconds).await;
                tokio::task::yield_now().await;
                assert_eq!(said.get(), total);
            }
            end.send("stored").unwrap();
        };
        let (done, ()) = tokio::join!(work, clock);
        assert_eq!(done.ok().unwrap().unwrap(), "stored");
        let beats = async {
            advance(ALIVE).await;
            tokio::task::yield_now().await;
            silent.set(false);
            advance(SECOND * 60).await;
            tokio::task::yield_now().await;
        };
        saying_alive(|| said.set(said.get() + 1), || silent.get(), beats).await;
        assert_eq!(said.get(), 6, "it says nothing while something else does");
    }

    #[tokio::test]
    async fn tf17_work_on_the_disk_ends_with_its_attempt() {
        let (begun, has_begun) = channel();
        let (closed, is_closed) = channel();
        let (end, mut signals) = mpsc::channel(1);
        thread::spawn(move || {
            has_begun.recv().unwrap();
            end.blocking_send(Signal::Abort)
        });
        let ended = while_alive(
            || {},
            &mut signals,
            move |goes_on| {
                begun.send(()).unwrap();
                while goes_on() {
                    thread::yield_now();
                }
                closed.send(()).unwrap();
                Ok(())
            },
        );
        assert!(matches!(ended.await, Err(Some(Signal::Abort))));
        assert_eq!(is_closed.try_recv(), Ok(()), "the work ended first");
    }
}
