//! `gsv agent edit`: the text of a definition in the user's editor. The gateway checks it; on a terminal, a refused text is opened again
//! with the reasons. Without a terminal the text comes from a pipe.

use std::io::{self, IsTerminal};

use gsv_protocol::errors;
use gsv_protocol::methods::{AgentsDefine, AgentsGet, AgentsValidate};
use gsv_protocol::types::{
    AgentDefinition, AgentId, AgentsDefineParams, AgentsDefineResult, AgentsGetParams, AgentsValidateParams,
    DefinitionProblem,
};

use super::agent_definition::{PROBLEM_COLUMNS, in_force, print_problems, problem_line, refusal, words};
use super::context::Context;
use crate::clean::{clean, one_line};
use crate::client::Client;
use crate::definition_folder::DEFINITION;
use crate::draft::Draft;
use crate::exit::{Failure, Outcome};

const TEMPLATE: &str = include_str!("agent_template.yaml");
/// Lines of GSV at the top of the file, which are no part of the text.
const MARK: &str = "# gsv: ";
const MAX_NAME_CHARS: usize = 48;

pub async fn run(context: &Context, id: AgentId) -> Outcome {
    if io::stdin().is_terminal() {
        in_editor(context, &id).await
    } else {
        from_pipe(context, &id).await
    }
}

async fn from_pipe(context: &Context, id: &AgentId) -> Outcome {
    let out = context.out;
    let text = context.read_stdin("the definition")?;
    if text.trim().is_empty() {
        return Err(Failure::usage(
            "Not a terminal, and there is nothing on stdin, so nothing was changed.",
            "Apply an agent.yaml with `gsv agent define PATH`, or pipe its text in.",
        ));
    }
    match put(context, id, &text, None).await? {
        Put::Done(defined) => {
            out.done(&defined, &in_force(&defined));
            Ok(())
        }
        Put::Refused(problems) => {
            out.show(&problems, |problems| print_problems(out, DEFINITION, problems));
            refusal(DEFINITION, &problems).map_or(Ok(()), Err)
        }
    }
}

async fn in_editor(context: &Context, id: &AgentId) -> Outcome {
    let out = context.out;
    // The editor may be open for hours, so the text is read and applied on separate connections.
    let client = context.connect().await?;
    let present = present(&client, id).await?;
    client.close().await;
    let original = present.text.clone().unwrap_or_else(|| template(id));
    let draft = Draft::new(&format!("agent-{id}"), "yaml", "From a file: `gsv agent define FILE`.")?;
    let mut body = original.clone();
    let mut head = present.head(id);
    let mut refused: Option<Failure> = None;
    loop {
        let text = format!("{head}{body}");
        let edited = draft.edit(&text, |typed| without_head(typed) == original)?;
        let typed = without_head(&edited);
        match refused.take() {
            Some(failure) if edited == text => return Err(draft.kept(failure)),
            _ if typed == original => {
                draft.remove();
                out.note("Nothing was changed.");
                return Ok(());
            }
            _ => {}
        }
        typed.clone_into(&mut body);
        match put(context, id, &body, Some(&present)).await {
            Ok(Put::Done(defined)) => {
                draft.remove();
                out.done(&defined, &in_force(&defined));
                return Ok(());
            }
            Ok(Put::Refused(problems)) => {
                head = refused_head(&problems);
                let lines = problems.iter().map(|problem| problem_line(DEFINITION, problem));
                refused = refusal(DEFINITION, &problems).map(|failure| failure.with_lines(lines.collect()));
            }
            Err(failure) => return Err(draft.kept(failure)),
        }
    }
}

enum Put {
    Done(Box<AgentsDefineResult>),
    Refused(Vec<DefinitionProblem>),
}

/// Checks the text, then applies it. `read`: what was edited, which must still be the current text.
async fn put(context: &Context, id: &AgentId, text: &str, read: Option<&Present>) -> Outcome<Put> {
    if text.trim().is_empty() {
        return Ok(Put::Refused(vec![whole("The file is empty.")]));
    }
    let client = context.connect().await?;
    let params = AgentsValidateParams {
        text: text.to_owned(),
        files: None,
    };
    let checked = match client.call::<AgentsValidate>(params).await {
        Ok(checked) => checked,
        // Such as a text with more characters than the contract allows.
        Err(failure) if failure.is(&errors::PROTOCOL_INVALID_PARAMS) => {
            return Ok(Put::Refused(vec![whole(&failure.message)]));
        }
        Err(failure) => return Err(failure),
    };
    let mut problems = checked.problems;
    problems.extend(checked.definition.and_then(|definition| of_another(&definition, id)));
    if !problems.is_empty() {
        return Ok(Put::Refused(problems));
    }
    if let Some(read) = read
        && present(&client, id).await?.text != read.text
    {
        return Err(Failure::failed(
            format!("The definition of {id} was changed since it was read, so your text was not applied."),
            format!("Edit the existing one: `gsv agent edit {id}`."),
        ));
    }
    let params = AgentsDefineParams {
        text: text.to_owned(),
        files: None,
    };
    let defined = client.call::<AgentsDefine>(params).await?;
    client.close().await;
    Ok(Put::Done(Box::new(defined)))
}

fn whole(problem: &str) -> DefinitionProblem {
    DefinitionProblem {
        path: String::new(),
        line: None,
        problem: problem.to_owned(),
    }
}

/// The command names the agent; another id in the text would change another one.
fn of_another(definition: &AgentDefinition, id: &AgentId) -> Option<DefinitionProblem> {
    let other = &definition.metadata.id;
    (other != id).then(|| DefinitionProblem {
        path: "metadata.id".to_owned(),
        line: None,
        problem: format!(
            "This is the definition of {id}, so the id must be {id}. For the other agent: `gsv agent edit {other}`."
        ),
    })
}

/// The current definition.
struct Present {
    is_agent: bool,
    text: Option<String>,
}

async fn present(client: &Client, id: &AgentId) -> Outcome<Present> {
    let agent_id = id.clone();
    match client.call::<AgentsGet>(AgentsGetParams { agent_id }).await {
        Ok(shown) => Ok(Present {
            is_agent: true,
            text: shown.definition_text,
        }),
        Err(failure) if failure.is(&errors::AGENT_UNKNOWN) => Ok(Present {
            is_agent: false,
            text: None,
        }),
        Err(failure) => Err(failure),
    }
}

impl Present {
    fn head(&self, id: &AgentId) -> String {
        let what = match (self.is_agent, &self.text) {
            (_, Some(_)) => format!("The current definition of {id}."),
            (true, None) => format!("A beginning: {id} has no definition yet."),
            (false, None) => format!("A beginning: there is no agent {id} yet, so this creates it."),
        };
        marked(&format!(
            "{what}\nSave and close the file to apply it from the next run on; close it unchanged to leave everything as it is."
        ))
    }
}

/// The problems with the lines of the file that is opened now: this head comes before the text.
fn refused_head(problems: &[DefinitionProblem]) -> String {
    let before = 2 + problems.len() as u64;
    let line = |problem: &DefinitionProblem| {
        let line = problem.line.map(|line| format!("line {}: ", line + before));
        one_line(
            &format!("{}{}", line.unwrap_or_default(), words(problem)),
            PROBLEM_COLUMNS,
        )
    };
    let lines: Vec<String> = problems.iter().map(line).collect();
    marked(&format!(
        "The definition was not applied:\n{}\nCorrect it and save, or close the file without a change to give up.",
        lines.join("\n")
    ))
}

fn marked(text: &str) -> String {
    let lines: Vec<String> = clean(text).lines().map(|line| format!("{MARK}{line}\n")).collect();
    lines.concat()
}

/// The text behind GSV's own lines at the top.
fn without_head(text: &str) -> &str {
    let head = text.split_inclusive('\n').take_while(|line| line.starts_with(MARK));
    &text[head.map(str::len).sum()..]
}

fn template(id: &AgentId) -> String {
    TEMPLATE
        .replace("{{id}}", id.as_ref())
        .replace("{{name}}", &name_of(id))
}

/// A name that the contract takes: letters, digits and `_`, a letter first.
fn name_of(id: &AgentId) -> String {
    let name = id.as_ref().replace('-', "_");
    let is_letter_first = name.starts_with(|c: char| c.is_ascii_lowercase());
    let name = if is_letter_first { name } else { format!("agent_{name}") };
    name.chars().take(MAX_NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn ad12_the_template_has_the_agent_and_every_field_of_the_contract() {
        let text = template(&AgentId("order-triage".to_owned()));
        assert!(text.contains("\n  id: order-triage\n  "), "{text}");
        assert!(text.contains("\n  name: order_triage\n"), "{text}");
        assert!(!text.contains("{{"), "{text}");
        let schema: Value = serde_json::from_str(include_str!("../../../protocol/gen/protocol.schema.json")).unwrap();
        let mut count = 0;
        for name in [
            "AgentDefinition",
            "AgentMetadata",
            "AgentCoreContext",
            "AgentTools",
            "AgentAutonomy",
            "AgentMemory",
            "AgentEvents",
        ] {
            for field in schema["$defs"][name]["properties"].as_object().unwrap().keys() {
                let has = text
                    .lines()
                    .any(|line| line.trim_start_matches([' ', '#']).starts_with(&format!("{field}:")));
                assert!(has, "{name}.{field}");
                count += 1;
            }
        }
        assert_eq!(count, 27);
        assert_eq!(without_head(&text), text, "no line of it is taken for one of GSV");
    }

    #[test]
    fn ad12_a_name_is_made_of_any_id() {
        for (id, name) in [("a", "a"), ("a-b", "a_b"), ("7up", "agent_7up"), ("_x", "agent__x")] {
            assert_eq!(name_of(&AgentId(id.to_owned())), name);
        }
        assert_eq!(name_of(&AgentId("x".repeat(64))).len(), 48);
    }

    #[test]
    fn ad12_lines_of_problems_are_those_of_the_file_that_is_opened() {
        let problems = [
            DefinitionProblem {
                path: "tool".to_owned(),
                line: Some(4),
                problem: "There is no such key.".to_owned(),
            },
            whole("It is too large."),
        ];
        let head = refused_head(&problems);
        assert_eq!(head.lines().count(), 4);
        assert!(
            head.contains("\n# gsv: line 8: tool: There is no such key.\n"),
            "{head}"
        );
        assert!(head.contains("\n# gsv: It is too large.\n"), "{head}");
        let text = format!("{head}# mine\n# gsv: in a comment of mine? No: only at the top.\na: 1\n# gsv: kept\n");
        assert_eq!(
            without_head(&text),
            "# mine\n# gsv: in a comment of mine? No: only at the top.\na: 1\n# gsv: kept\n"
        );
    }
}
