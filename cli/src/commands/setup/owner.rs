//! Who the agent is for: the time zone, a setting, and the name, a line of USER.md.

use gsv_protocol::methods::{ConfigGet, ConfigSet, SessionPrompt, WorkspaceWrite};
use gsv_protocol::types::{ConfigGetParams, ConfigSetParams, SessionPromptParams, WorkspaceWriteParams};
use jiff::tz::TimeZone;
use serde_json::Value;

use super::dialogue::{Dialogue, TRIES};
use crate::args::{Setup, person, time_zone};
use crate::client::Client;
use crate::commands::context::Context;
use crate::commands::workspace_file::read_or_absent;
use crate::exit::{Failure, Outcome};

const ZONE: &str = "userTimezone";
const UTC: &str = "UTC";
const FILE: &str = "USER.md";

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
        of_this_machine(&TimeZone::system())
    } else {
        present.clone()
    };
    let zone = match &args.timezone {
        Some(zone) => zone.clone(),
        None => ask_again(dialogue, &format!("Your time zone [{usual}]"), time_zone)?.unwrap_or(usual),
    };
    if zone != present {
        let params = ConfigSetParams {
            path: ZONE.to_owned(),
            value: Value::String(zone.clone()),
        };
        let set = client.call::<ConfigSet>(params).await?;
        dialogue.out.warn_all(set.warnings.as_deref());
    }
    let name = match &args.name {
        Some(name) => Some(name.clone()),
        None => ask_again(dialogue, "Your name, for the agent [it asks when you meet]", person)?,
    };
    if let Some(name) = name {
        store_name(&client, dialogue, &name).await?;
    }
    client.close().await;
    Ok(zone)
}

/// The zone of this machine. What is UTC under another name (Etc/UTC) is `UTC`, which is set already.
fn of_this_machine(zone: &TimeZone) -> String {
    let is_utc = |name: &str| {
        let last = name.strip_prefix("Etc/").unwrap_or(name);
        ["UTC", "UCT", "Universal", "Zulu"].contains(&last)
    };
    let name = zone.iana_name().filter(|name| !is_utc(name));
    name.unwrap_or(UTC).to_owned()
}

/// Until the answer is a right one. None: the default.
fn ask_again(
    dialogue: &Dialogue,
    question: &str,
    check: impl Fn(&str) -> Result<String, String>,
) -> Outcome<Option<String>> {
    for _ in 0..TRIES {
        let Some(typed) = dialogue.line(question) else {
            return Ok(None);
        };
        match check(&typed) {
            Ok(right) => return Ok(Some(right)),
            Err(problem) => dialogue.out.note(&format!("That can't be used: {problem}.")),
        }
    }
    Err(Failure::usage(
        "No valid answer was given. The model is already stored.",
        "Give it as an option: `gsv setup --timezone ZONE` or `gsv setup --name NAME`.",
    ))
}

async fn store_name(client: &Client, dialogue: &Dialogue, name: &str) -> Outcome {
    let mut found = read_or_absent(client, FILE, None).await?;
    if found.is_none() {
        // The files of a new agent are made with its first prompt.
        client
            .call::<SessionPrompt>(SessionPromptParams {
                session_key: Context::session(None)?,
            })
            .await?;
        found = read_or_absent(client, FILE, None).await?;
    }
    let Some(file) = found else {
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

/// The text with this name in its line, which is added where there is none. None: it stands there.
fn with_name(text: &str, name: &str) -> Option<String> {
    const START: &str = "- Name:";
    let line = format!("{START} {name}");
    let Some(at) = text
        .starts_with(START)
        .then_some(0)
        .or_else(|| text.find(&format!("\n{START}")).map(|at| at + 1))
    else {
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        return Some(format!("{text}{gap}{line}\n"));
    };
    let old = text[at..].lines().next().unwrap_or_default();
    (old != line).then(|| format!("{}{line}{}", &text[..at], &text[at + old.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su3_utc_under_another_name_is_no_other_zone() {
        for (machine, zone) in [("Etc/UTC", "UTC"), ("Zulu", "UTC"), ("Europe/Berlin", "Europe/Berlin")] {
            assert_eq!(of_this_machine(&TimeZone::get(machine).unwrap()), zone);
        }
    }

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
        let windows = "- Name: Ann\r\n- Languages: de\r\n";
        assert_eq!(with_name(windows, "Sam"), Some(windows.replace("Ann", "Sam")));
        assert_eq!(
            with_name("something else", "Sam").as_deref(),
            Some("something else\n- Name: Sam\n")
        );
    }
}
