//! Asks the gateway for what the status line shows. Silent: what the gateway does not say, or says too late, is not shown.

use std::time::Duration;

use gsv_link::Link;
use gsv_protocol::NoParams;
use gsv_protocol::errors;
use gsv_protocol::methods::{NodesList, SessionGet, SessionPrompt};
use gsv_protocol::types::{ModelRef, PolicyMode, SessionGetParams, SessionKey, SessionPromptParams};
use tokio::time::timeout;

use super::status::Facts;
use crate::units::now_ms;

const PATIENCE: Duration = Duration::from_secs(5);

/// What the key alone says: `agent:main:cli:dm:main` is `cli:dm:main` of the agent `main`.
pub fn of_key(key: &str) -> Facts {
    let (agent, session) = match key.strip_prefix("agent:").and_then(|rest| rest.split_once(':')) {
        Some((agent, session)) => (agent, session),
        None => ("", key),
    };
    Facts {
        agent: agent.to_owned(),
        session: session.to_owned(),
        ..Facts::default()
    }
}

/// The facts now. `before`: what is shown, and stays where there is no answer.
pub async fn glance(link: Link, key: SessionKey, before: Facts) -> Facts {
    let mut facts = before;
    let asked = tokio::join!(conversation(&link, &key), machines(&link));
    if let Some(found) = asked.0 {
        facts = Facts {
            machines: facts.machines,
            ..found
        };
    }
    if asked.1.is_some() {
        facts.machines = asked.1;
    }
    facts
}

async fn conversation(link: &Link, key: &SessionKey) -> Option<Facts> {
    if !serves(link, "session.get") {
        return None;
    }
    let params = SessionGetParams {
        session_key: key.clone(),
    };
    let found = match timeout(PATIENCE, link.call::<SessionGet>(params)).await.ok()? {
        Ok(found) => found,
        // A conversation begins with its first message.
        Err(error) if error.reason() == errors::SESSION_NOT_FOUND.reason => return first(link, key).await,
        Err(_) => return None,
    };
    let named = of_key(found.session_key.as_str());
    Some(Facts {
        session: found.label.unwrap_or(named.session),
        mode: own_mode(found.settings.mode, found.settings.mode_until, now_ms()),
        model: found.model.map(model_name),
        cost_usd: found.tokens.cost_usd,
        context_tokens: found.context_tokens,
        context_window: found.context_window,
        ..of_key(found.session_key.as_str())
    })
}

/// Before the first message. Silent also where the token may not ask.
async fn first(link: &Link, key: &SessionKey) -> Option<Facts> {
    if !serves(link, "session.prompt") {
        return None;
    }
    let params = SessionPromptParams {
        session_key: key.clone(),
    };
    let found = timeout(PATIENCE, link.call::<SessionPrompt>(params)).await.ok()?.ok()?;
    Some(Facts {
        model: Some(model_name(found.model)),
        context_tokens: Some(found.total_tokens),
        context_window: Some(found.context_window),
        ..of_key(found.session_key.as_str())
    })
}

async fn machines(link: &Link) -> Option<Vec<String>> {
    if !serves(link, "nodes.list") {
        return None;
    }
    let found = timeout(PATIENCE, link.call::<NodesList>(NoParams {}))
        .await
        .ok()?
        .ok()?;
    let online = found.nodes.into_iter().filter(|node| node.online);
    Some(online.map(|node| node.node_id.0).collect())
}

/// The conversation's own mode, while it holds.
pub fn own_mode(mode: Option<PolicyMode>, until: Option<u64>, now: u64) -> Option<String> {
    mode.filter(|_| until.is_none_or(|until| until > now))
        .map(|mode| format!("mode {}", mode.as_str()))
}

/// The provider is not shown: the same model of two providers is rare, and the line is short.
fn model_name(model: ModelRef) -> String {
    model.id
}

fn serves(link: &Link, method: &str) -> bool {
    link.hello()
        .is_some_and(|hello| hello.features.methods.iter().any(|known| known == method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ct1_a_key_names_the_agent_and_the_conversation() {
        let facts = of_key("agent:work:cli:dm:main");
        assert_eq!((facts.agent.as_str(), facts.session.as_str()), ("work", "cli:dm:main"));
        let facts = of_key("main");
        assert_eq!((facts.agent.as_str(), facts.session.as_str()), ("", "main"));
    }
}
