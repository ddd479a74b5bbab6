//! `gsv prompt show`: the current prompt by section, with its share of the model's context window.

use gsv_protocol::methods::SessionPrompt;
use gsv_protocol::types::{PromptSection, SessionPromptParams, SessionPromptResult};

use super::context::Context;
use crate::args::{PromptCommand, PromptShow};
use crate::clean::clean;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::suggest::nearest;
use crate::table::Table;
use crate::units::{bytes, grouped};

/// Lines of a section that are shown without `--full`.
const FIRST_LINES: usize = 4;

pub async fn run(context: &Context, command: PromptCommand) -> Outcome {
    let PromptCommand::Show(PromptShow {
        session,
        full,
        layers,
        section,
    }) = command;
    let out = context.out;
    let session_key = Context::session(session)?;
    let prompt = context
        .ask::<SessionPrompt>(SessionPromptParams { session_key })
        .await?;
    match section {
        Some(id) => {
            let section = find(&prompt, &id)?;
            out.show(section, |section| out.content(&format!("{}\n", section.text)));
        }
        None if layers => out.show(prompt, |prompt| {
            print_head(out, &prompt);
            out.table(&by_layer(&prompt));
        }),
        None => out.show(prompt, |prompt| print(out, &prompt, full)),
    }
    Ok(())
}

fn print_head(out: Output, prompt: &SessionPromptResult) {
    out.fields([
        ("session", prompt.session_key.to_string()),
        ("agent", prompt.agent_id.to_string()),
        ("model", format!("{}/{}", prompt.model.provider, prompt.model.id)),
    ]);
    out.line("");
}

fn print(out: Output, prompt: &SessionPromptResult, full: bool) {
    print_head(out, prompt);
    out.table(&overview(prompt));
    for section in &prompt.sections {
        let heading = format!("{} ({})", section.title, layer(section.layer));
        out.line("");
        out.line(&out.paint(Style::Bold, &clean(&heading)));
        out.content(&format!("{}\n", shown(section, full)));
    }
}

fn find<'a>(prompt: &'a SessionPromptResult, id: &str) -> Outcome<&'a PromptSection> {
    let found = prompt.sections.iter().find(|section| section.id == id);
    found.ok_or_else(|| {
        let known: Vec<&str> = prompt.sections.iter().map(|section| section.id.as_str()).collect();
        let next = match nearest(id, known.iter().copied()) {
            Some(meant) => format!("Did you mean `{meant}`?"),
            None => format!("The sections are {}.", known.join(", ")),
        };
        Failure::usage(format!("This prompt has no section `{id}`."), next)
    })
}

pub const fn layer(layer: u8) -> &'static str {
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

const LAYERS: std::ops::RangeInclusive<u8> = 1..=6;
/// Layers of the parts that are no sections.
const TOOLS: u8 = 3;
const MESSAGES: u8 = 5;

/// The tokens of each layer, and below it those of its parts.
fn by_layer(prompt: &SessionPromptResult) -> Table<4> {
    let window = prompt.context_window;
    let row =
        |layer: &str, part: String, tokens: u64| [layer.to_owned(), part, grouped(tokens), percent(tokens, window)];
    let parts: Vec<(u8, String, u64)> = prompt
        .sections
        .iter()
        .map(|section| (section.layer, section.id.clone(), section.tokens))
        .chain([
            (TOOLS, tools_of(prompt), prompt.tool_tokens),
            (MESSAGES, messages_of(prompt), prompt.message_tokens),
        ])
        .collect();
    let rows = LAYERS.flat_map(|number| {
        let of: Vec<_> = parts.iter().filter(|(layer, ..)| *layer == number).collect();
        let all = of.iter().map(|(.., tokens)| tokens).sum();
        let inside = of.into_iter().map(|(_, part, tokens)| row("", part.clone(), *tokens));
        std::iter::once(row(layer(number), String::new(), all))
            .chain(inside)
            .collect::<Vec<_>>()
    });
    let all = row("all", String::new(), prompt.total_tokens);
    Table::new(["LAYER", "PART", "TOKENS", "OF THE WINDOW"], rows.chain([all]))
}

fn tools_of(prompt: &SessionPromptResult) -> String {
    format!("{} tools", prompt.tools.len())
}

fn messages_of(prompt: &SessionPromptResult) -> String {
    format!("{} messages", grouped(prompt.message_count))
}

/// The size of each part, and what is left.
fn overview(prompt: &SessionPromptResult) -> Table<5> {
    let window = prompt.context_window;
    let row = |part: String, layer: &str, size: String, tokens: u64| {
        [part, layer.to_owned(), size, grouped(tokens), percent(tokens, window)]
    };
    let sections = prompt.sections.iter().map(|section| {
        let size = bytes(section.size_bytes);
        row(section.id.clone(), layer(section.layer), size, section.tokens)
    });
    let whole = |part: String, layer: &str, tokens: u64| row(part, layer, String::new(), tokens);
    let rest = [
        whole(tools_of(prompt), layer(TOOLS), prompt.tool_tokens),
        whole(messages_of(prompt), layer(MESSAGES), prompt.message_tokens),
        whole("all".to_owned(), "", prompt.total_tokens),
        whole("free".to_owned(), "", window.saturating_sub(prompt.total_tokens)),
    ];
    Table::new(
        ["PART", "LAYER", "SIZE", "TOKENS", "OF THE WINDOW"],
        sections.chain(rest),
    )
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
    let (first, rest) = lines.split_at(FIRST_LINES);
    format!(
        "{}\n… {} more lines: --full, or --section {}",
        first.join("\n"),
        rest.len(),
        section.id
    )
}
