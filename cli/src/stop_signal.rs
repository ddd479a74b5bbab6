//! The signals that ask a command to end: Ctrl-C, the end of its terminal, and a request by another program.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for one of them. A command that is asked to end can undo what it has begun first.
pub async fn stop_signal() {
    tokio::select! {
        () = caught(SignalKind::interrupt()) => {}
        () = caught(SignalKind::terminate()) => {}
        () = caught(SignalKind::hangup()) => {}
    }
}

async fn caught(kind: SignalKind) {
    match signal(kind) {
        Ok(mut caught) => {
            caught.recv().await;
        }
        // Then it ends the program, as it does without this.
        Err(_) => std::future::pending().await,
    }
}
