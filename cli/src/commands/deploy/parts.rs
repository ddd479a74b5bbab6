//! The names of what a deployment consists of. Pure.

use crate::embedded::channel_name::Name;

/// The name of the gateway's Worker, and of the deployment.
pub const GATEWAY: &str = "gsv";
/// The name of the index of long-term memory (docs/agents.md), and the fields by which it is filtered.
pub const INDEX: &str = "gsv-memories";
pub const INDEX_FIELDS: [&str; 2] = ["agent", "model"];

/// What the Workers of a deployment stand on, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    pub buckets: Vec<String>,
    pub databases: Vec<String>,
    pub namespaces: Vec<String>,
    pub queues: Vec<String>,
    /// Each by its bucket and its key there.
    pub files: Vec<(String, String)>,
}

/// A Worker of a deployment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worker {
    Gateway,
    Channel(Name),
}

impl Worker {
    pub fn name(&self) -> String {
        match self {
            Self::Gateway => GATEWAY.to_owned(),
            Self::Channel(name) => format!("gsv-channel-{name}"),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        if text == GATEWAY {
            return Some(Self::Gateway);
        }
        let name = text.strip_prefix("gsv-channel-")?;
        Name::try_from(name.to_owned()).ok().map(Self::Channel)
    }
}

impl std::fmt::Display for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gateway => f.write_str("the gateway"),
            Self::Channel(name) => write!(f, "the channel {name}"),
        }
    }
}
