//! The queues of the gateway, as the manifest of the runtime names them. Pure.

use serde::Deserialize;

/// A queue of which the gateway is the consumer, from `gateway/wrangler.jsonc`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub name: QueueName,
    /// The gateway's binding to it. Absent: only the runtime sends to it, such as dead letters.
    #[serde(default)]
    pub binding: Option<BindingName>,
    pub max_batch_size: u32,
    pub max_batch_timeout: u32,
    pub max_retries: u32,
    #[serde(default, rename = "deadLetterQueue")]
    pub dead_letters: Option<QueueName>,
}

/// The queues of runtimes that were built before queues were part of the manifest.
pub fn core_queues() -> Vec<Queue> {
    let (events, dead) = (
        QueueName("domain-events".to_owned()),
        QueueName("domain-events-dead-letter".to_owned()),
    );
    vec![
        Queue {
            name: events,
            binding: Some(BindingName("EVENTS".to_owned())),
            max_batch_size: 10,
            max_batch_timeout: 0,
            max_retries: 10,
            dead_letters: Some(dead.clone()),
        },
        Queue {
            name: dead,
            binding: None,
            max_batch_size: 10,
            max_batch_timeout: 1,
            max_retries: 100,
            dead_letters: None,
        },
    ]
}

/// The name of a queue: lower case letters, digits and hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct QueueName(String);

impl QueueName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for QueueName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.is_empty() && name.chars().all(is_plain) {
            Ok(Self(name))
        } else {
            Err(format!("{name:?} is not the name of a queue"))
        }
    }
}

/// The name of a binding: capital letters, digits and underscores.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BindingName(String);

impl BindingName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BindingName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if !name.is_empty() && name.chars().all(is_plain) {
            Ok(Self(name))
        } else {
            Err(format!("{name:?} is not the name of a binding"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::runtime::Manifest;

    #[test]
    fn pk4_queues_are_read_from_the_manifest_and_have_plain_names() {
        let manifest = |queues: &str| {
            let text = format!(r#"{{"version":"1","compatibilityDate":"2026-11-01"{queues}}}"#);
            serde_json::from_str::<Manifest>(&text)
        };
        assert_eq!(manifest("").unwrap().queues, core_queues());
        let one = |name: &str, binding: &str| {
            manifest(&format!(
                r#","queues":[{{"name":"{name}","binding":"{binding}","maxBatchSize":1,"maxBatchTimeout":1,"maxRetries":1}}]"#
            ))
        };
        let queues = one("shop-actions", "EVENTS_SHOP_ACTIONS").unwrap().queues;
        assert_eq!(queues[0].name.as_str(), "shop-actions");
        assert_eq!(queues[0].binding.as_ref().unwrap().as_str(), "EVENTS_SHOP_ACTIONS");
        for (name, binding) in [("a\\\"", "A"), ("", "A"), ("A", "A"), ("a", "a"), ("a", "")] {
            assert!(one(name, binding).is_err(), "{name} {binding}");
        }
    }
}
