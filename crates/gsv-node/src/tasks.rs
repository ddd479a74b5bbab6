//! The node's background tasks. They end with the node at the latest.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::task::JoinSet;

#[derive(Default)]
pub struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends all tasks and waits for them.
    pub async fn end(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }
}
