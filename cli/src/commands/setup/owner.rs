//! Who the agent is for: the time zone, a setting, and the name, a line of USER.md.

use gsv_protocol::methods::{ConfigGet, ConfigSet, WorkspaceWrite};
use gsv_protocol::types::{ConfigGetParams, ConfigSetParams, WorkspaceWriteParams};
use jiff::tz::TimeZone;
use serde_json::Value;

use super::dialogue::Dialogue;
use crate::args::Setup;
use crate::client::Client;
use crate::commands::context::Context;
use crate::commands::workspace_file::read_or_absent;
use crate::exit::{Failure, Outcome};

const ZONE: &str = "userTimezone";
const UTC: &str = "UTC";
const FILE: &str = "USER.md";
const NAME_CHARS: usize = 80;

/// Returns the time zone.
pub async fn introduce(context: &Context, dialogue: &Dialogue, args: &Setup) -> Outcome<String> {
    let client = context.connect().await?;
    let present = client
        .call::<ConfigGet>(ConfigGetParams {
            path: Some(ZONE.into()),
        })
        .await?;
    let present = present.value.as_ref().and_then(Value::as_str).unwrap_or(UTC).to_owned();
    let usual = if present == UTC {
        TimeZone::system().iana_name().unwrap_or(UTC).to_owned()
    } else {
        present.clone()
    };
    let zone = match &args.timezone {
        Some(zone) => zone.clone(),
        None => dialogue.line(&format!("Your time zone [{usual}]")).unwrap_or(usual),
    };
    if zone != present {
        let params = ConfigSetParams {
            path: ZONE.to_owned(),
            value: Value::String(zone.clone()),
        };
        client.call::<ConfigSet>(params).await?;
    }
    let typed = || dialogue.line("Your name, for the agent [it asks when you meet]");
    if let Some(name) = args.name.clone().or_else(typed) {
        store_name(&client, dialogue, &name).await?;
    }
    client.close().await;
    Ok(zone)
}

async fn store_name(client: &Client, dialogue: &Dialogue, name: &str) -> Outcome {
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) || name.chars().count() > NAME_CHARS {
        return Err(Failure::usage(
            format!("A name has 1 to {NAME_CHARS} characters, in one line."),
            "Run it again with another --name.",
        ));
    }
    let Some(file) = read_or_absent(client, FILE, None).await? else {
        dialogue.out.warn(&format!(
            "there is no {FILE}, so the agent does not know your name yet; tell it."
        ));
        return Ok(());
    };
    let Some(content) = with_name(&file.content, name) else {
        return Ok(());
    };
    let params = WorkspaceWriteParams {
        path: FILE.to_owned(),
        content,
        agent_id: None,
        if_match: file.etag,
    };
    client.call::<WorkspaceWrite>(params).await.map(drop)
}

/// The text with this name in its line. None: it stands there, or there is no such line.
fn with_name(text: &str, name: &str) -> Option<String> {
    let at = text.lines().position(|line| line.starts_with("- Name:"))?;
    let line = format!("- Name: {name}");
    let lines: Vec<&str> = text
        .lines()
        .enumerate()
        .map(|(index, old)| if index == at { line.as_str() } else { old })
        .collect();
    let new = format!("{}\n", lines.join("\n"));
    (new != text).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_one_line_of_the_file_and_all_others_stay() {
        let file = "# Your human\n\n- Name:\n- Languages: de\n";
        let named = "# Your human\n\n- Name: Sam\n- Languages: de\n";
        assert_eq!(with_name(file, "Sam").as_deref(), Some(named));
        assert_eq!(with_name(named, "Sam"), None);
        assert_eq!(
            with_name(named, "Ann").as_deref(),
            Some("# Your human\n\n- Name: Ann\n- Languages: de\n")
        );
        assert_eq!(with_name("something else\n", "Sam"), None);
    }
}
