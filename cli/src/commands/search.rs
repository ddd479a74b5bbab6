//! `gsv search`: finds text in files, conversations and transcripts.

use gsv_protocol::methods::SearchQuery;
use gsv_protocol::types::{AgentId, SearchHit, SearchQueryParams, SearchQueryResult, SearchSource};

use super::context::Context;
use crate::args::Search;
use crate::clean::clean;
use crate::exit::Outcome;
use crate::output::{Output, Style};
use crate::units::time;

const MARK_BEGIN: char = '\u{e000}';
const MARK_END: char = '\u{e001}';

pub async fn run(context: &Context, args: Search) -> Outcome {
    let params = SearchQueryParams {
        query: args.query.join(" "),
        agent_id: args.agent.clone(),
        sources: (!args.sources.is_empty()).then_some(args.sources),
        session_key: args.session,
        limit: args.limit,
        offset: args.offset,
    };
    let offset = u64::from(args.offset.unwrap_or(0));
    let show = context.show::<SearchQuery>(params, |result| {
        print(context.out, &result, offset, args.agent.as_ref());
    });
    show.await
}

fn print(out: Output, result: &SearchQueryResult, offset: u64, agent: Option<&AgentId>) {
    for hit in &result.hits {
        let mut head = vec![out.paint(Style::Cyan, &clean(&place(hit)))];
        let role = |role: &str| {
            if role == "toolResult" {
                "tool result".to_owned()
            } else {
                clean(role)
            }
        };
        head.extend(hit.role.as_deref().map(role));
        head.extend(hit.at.map(time));
        out.line(&head.join("  "));
        let beside = |texts: &Option<Vec<String>>| {
            for text in texts.iter().flatten() {
                out.line(&out.paint(Style::Dim, &format!("    {}", clean(text))));
            }
        };
        beside(&hit.before);
        out.line(&format!("    {}", highlighted(out, &hit.snippet)));
        beside(&hit.after);
    }
    if result.hits.is_empty() {
        out.aside("Nothing was found.");
    }
    for note in &result.notes {
        out.warn(&clean(note));
    }
    if result.more {
        out.aside(&format!("More results: --offset {}", offset + result.hits.len() as u64));
    }
    for hint in hints(&result.hits, agent) {
        out.aside(&clean(&hint));
    }
}

/// The place of a hit, as the commands that open it take it.
fn place(hit: &SearchHit) -> String {
    let named = |position: &str| match (&hit.path, hit.position) {
        (Some(path), Some(at)) => format!("{path}{position}{at}"),
        (Some(path), None) => path.clone(),
        (None, _) => String::new(),
    };
    match hit.source {
        SearchSource::Workspace => named(":"),
        SearchSource::Archives => named(" message "),
        SearchSource::Sessions => hit.session_key.as_ref().map_or_else(String::new, |key| key.0.clone()),
    }
}

/// How to open the first hit of each kind.
fn hints(hits: &[SearchHit], agent: Option<&AgentId>) -> Vec<String> {
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    let first = |source: SearchSource| hits.iter().find(|hit| hit.source == source);
    let path = |hit: &SearchHit| hit.path.clone().unwrap_or_default();
    [
        first(SearchSource::Workspace).map(|hit| format!("Open a file: `gsv workspace cat {}{agent}`", path(hit))),
        first(SearchSource::Archives).map(|hit| format!("Open a transcript: `gsv session show {}{agent}`", path(hit))),
        first(SearchSource::Sessions).map(|hit| format!("Open a conversation: `gsv session show {}`", place(hit))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Matches in bold, if there is colour.
fn highlighted(out: Output, snippet: &str) -> String {
    let mut shown = String::with_capacity(snippet.len());
    for (index, part) in snippet.split(MARK_BEGIN).enumerate() {
        match part.split_once(MARK_END) {
            Some((matched, rest)) if index > 0 => {
                shown.push_str(&out.paint(Style::Bold, &clean(matched)));
                shown.push_str(&clean(rest));
            }
            _ => shown.push_str(&clean(part)),
        }
    }
    shown.replace(['\n', MARK_END], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn th19_marks_become_bold_or_nothing_and_escapes_are_removed() {
        let plain = Output::plain();
        assert_eq!(
            highlighted(plain, "a \u{e000}bo\u{1b}[31mat\u{e001} is\nblue \u{e001} \u{e000}x"),
            "a boat is blue   x"
        );
    }
}
