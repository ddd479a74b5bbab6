//! The conversations that were active last, and which one `gsv chat --continue` goes on with.

use gsv_protocol::methods::SessionsList;
use gsv_protocol::types::{AgentId, SessionEntry, SessionKey, SessionsListParams};

use super::context::Context;
use crate::exit::Outcome;

/// The person's own conversations are among so many that were active last.
const AMONG: u8 = 200;

/// The conversation of the command line, or the main one, that was active last.
pub async fn last_own(context: &Context, agent: Option<AgentId>) -> Outcome<Option<SessionKey>> {
    let sessions = last(context, AMONG, agent).await?;
    let own = sessions
        .into_iter()
        .find(|session| is_own(session.session_key.as_str()));
    Ok(own.map(|session| session.session_key))
}

pub async fn last(context: &Context, limit: u8, agent_id: Option<AgentId>) -> Outcome<Vec<SessionEntry>> {
    let params = SessionsListParams {
        offset: None,
        limit: Some(limit),
        agent_id,
    };
    Ok(context.ask::<SessionsList>(params).await?.sessions)
}

/// `agent:main:main`, `agent:work:cli:dm:notes`: not those of channels, jobs and hooks.
fn is_own(key: &str) -> bool {
    let parts: Vec<&str> = key.split(':').collect();
    matches!(parts.as_slice(), ["agent", _, _] | ["agent", _, "cli", "dm", _])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ct8_only_conversations_of_the_person_go_on() {
        for own in ["agent:main:main", "agent:work:cli:dm:notes"] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "agent:main:cron:x",
            "agent:main:discord:dm:7",
            "agent:main:whatsapp:main:dm:1",
            "agent:main:slack:group:g",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
