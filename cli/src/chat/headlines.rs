//! News between two messages, in words. Pure.

use gsv_protocol::types::ChatEvent;

use super::assembler::message_text;
use super::followed::News;
use super::outcomes::is_at_limit;
use super::view::{CONNECTED, lost};
use crate::clean::clean;

/// Unsolicited news as text: a run that another client started, the link, the session.
pub fn headline(news: &News) -> Option<String> {
    let text = match news {
        News::Lost(reason) => lost(reason),
        News::Connected => CONNECTED.to_owned(),
        News::Ended(_) => String::new(),
        News::Session(event) => event.text.clone().unwrap_or_default(),
        News::Chat(event) => match &**event {
            ChatEvent::Final { message, .. } => message_text(message),
            ChatEvent::Error { error, reason, .. } => {
                let why = error.as_deref().unwrap_or("the gateway gave no reason");
                if is_at_limit(reason.as_deref()) {
                    format!("a run has ended: {why}")
                } else {
                    format!("a run failed: {why}")
                }
            }
            _ => String::new(),
        },
    };
    let text = clean(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn th19_news_between_two_messages_are_shown_in_one_clean_text() {
        let says = |event: serde_json::Value| headline(&News::replayed(event).unwrap());
        let text = |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        let chat = |state: &str, more: serde_json::Value| {
            let mut event = json!({"sessionKey": "s", "runId": "r", "state": state});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        let done = chat("final", json!({"message": text("Done\u{1b}[2J.\n")}));
        assert_eq!(says(done).as_deref(), Some("Done."));
        assert_eq!(says(chat("delta", json!({"text": "Do"}))), None);
        let failed = chat("error", json!({"error": "No model."}));
        assert_eq!(says(failed).as_deref(), Some("a run failed: No model."));
        let ended = chat("error", json!({"error": "1 step.", "reason": "budget.steps"}));
        assert_eq!(says(ended).as_deref(), Some("a run has ended: 1 step."));
        let note = json!({"sessionKey": "s", "kind": "note", "text": " laptop is back "});
        assert_eq!(says(note).as_deref(), Some("laptop is back"));
        assert_eq!(headline(&News::Connected).as_deref(), Some("connected again"));
    }
}
