//! The parts of a running node that its calls use together.

use std::sync::Arc;

use gsv_link::Link;
use gsv_tools::ToolBox;

use crate::calls::Calls;
use crate::delivery::Delivery;
use crate::desktop::Desktop;
use crate::event::{EventSink, NodeEvent};
use crate::images::Uploader;
use crate::log::Log;
use crate::progress::ProgressFeed;
use crate::scrub::Scrub;
use crate::shared_ledger::SharedLedger;
use crate::tasks::Tasks;
use crate::transfer::Ends;

pub struct Context {
    pub node_id: String,
    pub link: Link,
    pub ledger: SharedLedger,
    pub tools: Arc<ToolBox>,
    pub log: Arc<Log>,
    pub events: Option<EventSink>,
    pub scrub: Scrub,
    pub calls: Arc<Calls>,
    pub delivery: Arc<Delivery>,
    pub desktop: Desktop,
    pub progress: ProgressFeed,
    pub uploader: Uploader,
    pub tasks: Arc<Tasks>,
    pub transfers: Arc<Ends>,
}

impl Context {
    pub fn tell(&self, event: impl FnOnce() -> NodeEvent) {
        if let Some(sink) = &self.events {
            sink(event());
        }
    }
}
