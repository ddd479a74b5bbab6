//! `gsv prompt show`: what the model would get now, by section, with what it takes of the model's window.

use std::fmt::Write as _;

use gsv_protocol::methods::SessionPrompt;
use gsv_protocol::types::{PromptSection, SessionKey, SessionPromptParams, SessionPromptResult};

use super::Context;
use crate::args::PromptCommand;
use crate::clean::clean;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::suggest::nearest;
use crate::table::Table;
use crate::units::{bytes, grouped};

/// Lines of a section that are shown without `--full`.
const FIRST_LINES: usize = 4;

pub async fn run(context: &Context, command: PromptCommand) -> Outcome {
    let PromptCommand::Show { session, full, section } = command;
    let session_key = SessionKey(Context::session(session)?);
    let client = context.connect().await?;
    let prompt = client
        .call::<SessionPrompt>(SessionPromptParams { session_key })
        .await?;
    client.close().await;
    let out = context.out;
    if let Some(id) = section {
        return one(out, &prompt, &id);
    }
    if out.json {
        out.json_document(&prompt);
        return Ok(());
    }
    out.fields(&[
        ("session", prompt.session_key.0.clone()),
        ("agent", prompt.agent_id.0.clone()),
        ("model", format!("{}/{}", prompt.model.provider, prompt.model.id)),
    ]);
    out.line("");
    out.table(&overview(&prompt));
    for section in &prompt.sections {
        let heading = format!("{} ({})", section.title, layer(section.layer));
        out.line("");
        out.line(&out.paint(Style::Bold, &clean(&heading)));
        out.content(&format!("{}\n", shown(section, full)));
    }
    Ok(())
}

fn one(out: Output, prompt: &SessionPromptResult, id: &str) -> Outcome {
    let ids = prompt.sections.iter().map(|section| section.id.as_str());
    let Some(section) = prompt.sections.iter().find(|section| section.id == id) else {
        let known: Vec<&str> = ids.clone().collect();
        return Err(Failure::usage(
            format!("This prompt has no section `{id}`."),
            nearest(id, ids).map_or_else(
                || format!("There is {}.", known.join(", ")),
                |meant| format!("Did you mean `{meant}`?"),
            ),
        ));
    };
    if out.json {
        out.json_document(section);
    } else {
        out.content(&format!("{}\n", section.text));
    }
    Ok(())
}

const fn layer(layer: u8) -> &'static str {
    match layer {
        1 => "1 core",
        2 => "2 characteristics",
        3 => "3 shared",
        4 => "4 delegated",
        5 => "5 conversation",
        6 => "6 memory",
        _ => "?",
    }
}

/// How much each part takes, and what is left.
fn overview(prompt: &SessionPromptResult) -> Table {
    let mut table = Table::new(["PART", "LAYER", "SIZE", "TOKENS", "OF THE WINDOW"]);
    let window = prompt.context_window;
    let mut row = |part: String, layer: &str, size: String, tokens: u64| {
        table.row(&[part, layer.to_owned(), size, grouped(tokens), percent(tokens, window)]);
    };
    for section in &prompt.sections {
        row(
            section.id.clone(),
            layer(section.layer),
            bytes(section.size_bytes),
            section.tokens,
        );
    }
    row(
        format!("{} tools", prompt.tools.len()),
        "3 shared",
        String::new(),
        prompt.tool_tokens,
    );
    row(
        format!("{} messages", grouped(prompt.message_count)),
        "5 conversation",
        String::new(),
        prompt.message_tokens,
    );
    row("all".to_owned(), "", String::new(), prompt.total_tokens);
    row(
        "free".to_owned(),
        "",
        String::new(),
        window.saturating_sub(prompt.total_tokens),
    );
    table
}

fn percent(tokens: u64, window: u64) -> String {
    let tenths = u128::from(tokens) * 1000 / u128::from(window.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn shown(section: &PromptSection, full: bool) -> String {
    let lines: Vec<&str> = section.text.lines().collect();
    if full || lines.len() <= FIRST_LINES + 1 {
        return section.text.clone();
    }
    let mut text = lines[..FIRST_LINES].join("\n");
    let _ = write!(
        text,
        "\n… {} more lines: --full, or --section {}",
        lines.len() - FIRST_LINES,
        section.id
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_window() {
        assert_eq!(percent(2_000, 128_000), "1.5 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(percent(200_000, 100_000), "200.0 %");
    }

    #[test]
    fn a_long_section_is_cut_with_a_note() {
        let section = PromptSection {
            id: "soul".to_owned(),
            title: "Your Soul".to_owned(),
            layer: 2,
            text: (0..20)
                .map(|line| format!("line {line}"))
                .collect::<Vec<_>>()
                .join("\n"),
            size_bytes: 0,
            tokens: 0,
        };
        let text = shown(&section, false);
        assert!(
            text.ends_with("line 3\n… 16 more lines: --full, or --section soul"),
            "{text}"
        );
        assert_eq!(shown(&section, true), section.text);
    }
}
