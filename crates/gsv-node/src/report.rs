//! Reports of the node's state, to the person at its terminal and to the log.

use std::sync::Arc;

use crate::connection::Connection;
use crate::log::{Level, Log};

/// Something a person at the terminal may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub level: Level,
    pub text: String,
}

/// Where [`Status`] goes. Must return at once.
pub type StatusSink = Arc<dyn Fn(Status) + Send + Sync>;

/// Reports to the person and to the log.
pub struct Reporter {
    pub log: Arc<Log>,
    pub status: StatusSink,
}
impl Reporter {
    pub fn report(&self, level: Level, text: &str) {
        self.log.write(level, text, &[]);
        self.tell(level, text);
    }

    /// [`Self::report`] about the connection.
    pub fn connection(&self, level: Level, text: &str, connection: &Connection) {
        self.log.write(level, text, &connection.fields());
        self.tell(level, text);
    }

    fn tell(&self, level: Level, text: &str) {
        (self.status)(Status {
            level,
            text: text.to_owned(),
        });
    }
}
