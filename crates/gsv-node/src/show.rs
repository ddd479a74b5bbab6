//! Answers the gateway's requests to show a notification (rule NT8). The work is [`crate::desktop`]'s.

use std::sync::Arc;
use std::time::Duration;

use gsv_protocol::methods::NotifyShown;
use gsv_protocol::types::{NotifyShowEvent, NotifyShownParams};
use serde_json::json;

use crate::context::Context;
use crate::log::Level;

const REPORT_TIME: Duration = Duration::from_secs(10);

/// Shows a notification and tells the gateway whether it was shown.
pub async fn answer_show(context: Arc<Context>, event: NotifyShowEvent) {
    let shown = context.desktop.show(&event).await;
    if let Err(problem) = &shown {
        context.log.write(
            Level::Warn,
            "a notification was not shown",
            &[("problem", json!(problem))],
        );
    }
    let params = NotifyShownParams {
        show_id: event.show_id,
        problem: shown.err(),
    };
    if let Err(error) = context.link.call_within::<NotifyShown>(params, REPORT_TIME).await {
        context.log.write(
            Level::Warn,
            &format!("whether a notification was shown could not be told: {error}"),
            &[],
        );
    }
}
