//! Work on the disk that may take minutes before an attempt moves bytes: it ends with the attempt, and the gateway is told meanwhile that
//! this end is alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gsv_tools::ToolError;
use gsv_tools::beneath::GoesOn;
use tokio::pin;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::attempts::Signal;
use super::{Ends, on_disk};

/// Less than the time after which the gateway gives an attempt up.
const ALIVE: Duration = Duration::from_secs(20);

/// The result of the work, or what ended the attempt before: a signal, or `None` when the connection is gone. Then the work has ended, too.
pub async fn while_alive<T: Send + 'static>(
    ends: &Arc<Ends>,
    number: u32,
    signals: &mut mpsc::Receiver<Signal>,
    work: impl FnOnce(&GoesOn<'_>) -> Result<T, ToolError> + Send + 'static,
) -> Result<Result<T, ToolError>, Option<Signal>> {
    let wanted = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&wanted);
    let working = on_disk(move || work(&|| asked.load(Ordering::Relaxed)));
    pin!(working);
    let mut beats = interval_at(Instant::now() + ALIVE, ALIVE);
    loop {
        tokio::select! {
            done = &mut working => return Ok(done),
            // Nothing else is said to an attempt before it moves bytes.
            ended = signals.recv() => {
                wanted.store(false, Ordering::Relaxed);
                // Its files are closed, and the next attempt can have them.
                let _ = working.await;
                return Err(ended);
            }
            _ = beats.tick() => ends.say_alive(number),
        }
    }
}
