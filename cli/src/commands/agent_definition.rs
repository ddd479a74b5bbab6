//! `gsv agent validate|define|undefine`, and how a definition is shown. The editor is in `agent_edit`.

use std::path::Path;

use gsv_protocol::methods::{AgentsDefine, AgentsUndefine, AgentsValidate};
use gsv_protocol::types::{
    AgentAutonomy, AgentDefinition, AgentMemory, AgentsDefineParams, AgentsDefineResult, AgentsUndefineParams,
    AgentsValidateParams, AgentsValidateResult, DefinitionFile, DefinitionProblem,
};

use super::context::Context;
use crate::args::AgentUndefine;
use crate::ask::confirm;
use crate::clean::one_line;
use crate::client::Client;
use crate::definition_folder::{self, DefinitionFolder};
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::units::{dollars, duration};

const TEXT_COLUMNS: usize = 100;
pub const PROBLEM_COLUMNS: usize = 400;

pub async fn validate(context: &Context, path: &Path) -> Outcome {
    let out = context.out;
    let folder = definition_folder::read(path)?;
    let client = context.connect().await?;
    let (checked, _files) = check(out, &client, &folder).await?;
    client.close().await;
    let refused = refusal(&folder.shown, &checked.problems);
    out.show(checked, |checked| {
        print_problems(out, &folder.shown, &checked.problems);
        if let Some(definition) = &checked.definition {
            out.line(&format!("{} is right.", folder.shown));
            out.fields(fields(definition));
        }
    });
    refused.map_or(Ok(()), Err)
}

pub async fn define(context: &Context, path: &Path) -> Outcome {
    let out = context.out;
    let folder = definition_folder::read(path)?;
    let client = context.connect().await?;
    let (checked, files) = check(out, &client, &folder).await?;
    if let Some(failure) = refusal(&folder.shown, &checked.problems) {
        out.show(checked, |checked| print_problems(out, &folder.shown, &checked.problems));
        return Err(failure);
    }
    let params = AgentsDefineParams {
        text: folder.text,
        files: (!files.is_empty()).then_some(files),
    };
    let defined = client.call::<AgentsDefine>(params).await?;
    client.close().await;
    out.done(&defined, &in_force(&defined));
    Ok(())
}

/// The gateway names the files of the text; then they are sent with it.
async fn check(
    out: Output,
    client: &Client,
    folder: &DefinitionFolder,
) -> Outcome<(AgentsValidateResult, Vec<DefinitionFile>)> {
    let ask = async |files| {
        let text = folder.text.clone();
        client
            .call::<AgentsValidate>(AgentsValidateParams { text, files })
            .await
    };
    let alone = ask(None).await?;
    let named = alone.files.clone().unwrap_or_default();
    let files = folder.files(&named)?;
    let checked = if files.is_empty() {
        alone
    } else {
        ask(Some(files.clone())).await?
    };
    let elsewhere = named.iter().filter(|name| files.iter().all(|file| &file.path != *name));
    if checked.problems.is_empty() {
        for name in elsewhere {
            let name = one_line(name, 200);
            out.aside(&format!(
                "{name} is not in this folder: the agent's own file of this name is used"
            ));
        }
    }
    Ok((checked, files))
}

/// `agent.yaml:3: tools.allowed[0]: There is no such tool.`
pub fn problem_line(file: &str, problem: &DefinitionProblem) -> String {
    let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
    one_line(&format!("{file}{line}: {}", words(problem)), PROBLEM_COLUMNS)
}

/// A problem without its line.
pub fn words(problem: &DefinitionProblem) -> String {
    match problem.path.as_str() {
        "" => problem.problem.clone(),
        path => format!("{path}: {}", problem.problem),
    }
}

pub fn print_problems(out: Output, file: &str, problems: &[DefinitionProblem]) {
    for problem in problems {
        out.line(&problem_line(file, problem));
    }
}

/// None: there is no problem.
pub fn refusal(file: &str, problems: &[DefinitionProblem]) -> Option<Failure> {
    let count = match problems.len() {
        0 => return None,
        1 => "a mistake".to_owned(),
        count => format!("{count} mistakes"),
    };
    Some(Failure::failed(
        format!("{} has {count}, so it was not applied.", one_line(file, 200)),
        "Repair the named lines; `gsv agent validate FILE` checks again.",
    ))
}

pub fn in_force(defined: &AgentsDefineResult) -> String {
    let id = &defined.definition.metadata.id;
    let what = if defined.created {
        format!("The agent {id} was created.")
    } else {
        format!("The definition of {id} applies from its next run on.")
    };
    let still = still_named(defined.still_named_by.as_deref(), "by its earlier name ");
    format!("{what} Talk to it: `gsv chat --agent {id}`.{still}")
}

/// The agents that still hand tasks to one that takes none any more, as a sentence behind another; empty: there are none. `how` stands before the verb.
pub fn still_named(agents: Option<&[String]>, how: &str) -> String {
    let Some(agents) = agents.filter(|agents| !agents.is_empty()) else {
        return String::new();
    };
    let names = agents.join(", ");
    let (have, edit) = match agents {
        [one] => ("has", one.as_str()),
        _ => ("have", "ID"),
    };
    format!(
        " {names} still {have} it {how}in `sub_agents`: a task for it is refused until you change that with `gsv agent edit {edit}`."
    )
}

pub async fn undefine(context: &Context, AgentUndefine { id, yes }: AgentUndefine) -> Outcome {
    if !yes {
        confirm(
            context.out,
            &format!("Remove the definition of {id}? From its next run on it may use every tool."),
            "remove it",
            "Nothing was changed.",
        )?;
    }
    let agent_id = id.clone();
    let done = context.change::<AgentsUndefine>(AgentsUndefineParams { agent_id }, |result| {
        if result.removed {
            let still = still_named(result.still_named_by.as_deref(), "");
            format!("The definition of {id} is removed: from its next run on it has the defaults. Its other files and its conversations stay.{still}")
        } else {
            format!("{id} had no definition, so it has the defaults as before.")
        }
    });
    done.await
}

/// What a definition says, for people.
pub fn fields(definition: &AgentDefinition) -> Vec<(&'static str, Option<String>)> {
    let AgentDefinition {
        metadata,
        core_context,
        autonomy,
        ..
    } = definition;
    let version = metadata
        .version
        .as_deref()
        .map(|version| format!(", version {version}"));
    let name = format!("{}{}", metadata.name, version.unwrap_or_default());
    let rules = core_context.hard_constraints.iter().flatten();
    let traits = definition.characteristics.iter().flatten();
    let asked = autonomy
        .as_ref()
        .and_then(|autonomy| autonomy.requires_approval.as_ref());
    let asked = asked.filter(|tools| !tools.is_empty());
    let tools = match &definition.tools {
        None => "every tool".to_owned(),
        Some(tools) if tools.allowed.is_empty() => "none".to_owned(),
        Some(tools) => tools.allowed.join(", "),
    };
    let line = |text: &str| Some(one_line(text, TEXT_COLUMNS));
    let mut fields = vec![
        ("agent", Some(metadata.id.to_string())),
        ("name", line(&name)),
        ("role", line(&core_context.system_prompt)),
    ];
    fields.extend(rules.map(|rule| ("rule", line(rule))));
    fields.extend(traits.map(|(name, text)| ("trait", line(&format!("{name}: {text}")))));
    fields.push(("tools", Some(tools)));
    let others = definition.sub_agents.as_ref().filter(|names| !names.is_empty());
    fields.push(("delegates", others.map(|names| format!("to {}", names.join(", ")))));
    fields.push(("asks", asked.map(|tools| format!("each time: {}", tools.join(", ")))));
    let listed = |topics: Option<&Vec<String>>| {
        let topics = topics.filter(|topics| !topics.is_empty())?;
        Some(one_line(&topics.join(", "), TEXT_COLUMNS))
    };
    let events = definition.events.as_ref();
    fields.push(("events", listed(events.and_then(|events| events.emit.as_ref()))));
    fields.push(("job for each", listed(events.and_then(|events| events.on.as_ref()))));
    let causes = definition.escalation.iter().flatten();
    let causes: Vec<String> = causes
        .map(|escalation| format!("{} to {}", escalation.when.as_str(), escalation.to))
        .collect();
    fields.push(("escalates", listed(Some(&causes))));
    fields.push(("memory", definition.memory_config.as_ref().map(memory)));
    fields.push(("limits", Some(limits(autonomy.as_ref()))));
    fields.push(("tier", definition.model_tier.map(|tier| tier.as_str().to_owned())));
    fields
}

fn memory(config: &AgentMemory) -> String {
    let kept = if config.long_term_enabled == Some(true) {
        "long-term"
    } else {
        "no long-term memory"
    };
    let most = config.top_k.map(|most| format!("at most {most} a recall"));
    let least = config.min_score.map(|least| format!("scores of {least} or more"));
    let parts: Vec<String> = [Some(kept.to_owned()), most, least].into_iter().flatten().collect();
    parts.join(", ")
}

fn limits(autonomy: Option<&AgentAutonomy>) -> String {
    let own = autonomy.map(|autonomy| {
        let calls = autonomy.max_iterations.map(|most| match most {
            1 => "1 model call".to_owned(),
            most => format!("{most} model calls"),
        });
        let time = autonomy.time_budget_ms.map(|ms| duration(u64::from(ms)));
        [calls, time, autonomy.cost_budget_usd.map(limit_dollars)]
    });
    let own: Vec<String> = own.into_iter().flatten().flatten().collect();
    if own.is_empty() {
        "as configured".to_owned()
    } else {
        format!("{} a run", own.join(", "))
    }
}

/// A limit is in whole cents as a rule: `$0.50`, where a cost would be `$0.5000`.
fn limit_dollars(usd: f64) -> String {
    let in_cents = format!("{usd:.2}");
    let is_exact = in_cents.parse::<f64>().is_ok_and(|cents| (cents - usd).abs() < 1e-9);
    if is_exact { format!("${in_cents}") } else { dollars(usd) }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::{Value, json};

    use super::*;

    fn shown(definition: Value) -> String {
        let definition: AgentDefinition = serde_json::from_value(definition).unwrap();
        let mut text = String::new();
        for (name, value) in fields(&definition) {
            if let Some(value) = value {
                writeln!(text, "{name}  {value}").unwrap();
            }
        }
        text
    }

    #[test]
    fn a_definition_is_shown_with_each_of_its_fields() {
        let full = json!({
            "metadata": {"id": "triage", "name": "triage", "version": "0.1.0", "description": "d"},
            "core_context": {"system_prompt": format!("You sort\norders. {}", "x".repeat(200)), "hard_constraints": ["Never pay."]},
            "characteristics": {"tone": "warm"},
            "tools": {"allowed": ["gsv__ReadFile", "laptop__*"]},
            "autonomy": {"max_iterations": 12, "time_budget_ms": 60000, "cost_budget_usd": 0.5, "requires_approval": ["laptop__Bash"]},
            "memory_config": {"long_term_enabled": true, "top_k": 5, "min_score": 0.2},
            "events": {"emit": ["human_review", "letter_*"], "on": ["parcel"]},
            "escalation": [{"when": "low_confidence", "to": "human_review"}, {"when": "failed", "to": "human_review"}],
            "sub_agents": ["clerk", "letter"],
            "model_tier": "sub",
        });
        let text = shown(full);
        for line in [
            "agent  triage\n",
            "name  triage, version 0.1.0\n",
            "role  You sort orders. xxx",
            "rule  Never pay.\n",
            "trait  tone: warm\n",
            "tools  gsv__ReadFile, laptop__*\n",
            "asks  each time: laptop__Bash\n",
            "delegates  to clerk, letter\n",
            "limits  12 model calls, 1 min, $0.50 a run\n",
            "events  human_review, letter_*\n",
            "job for each  parcel\n",
            "escalates  low_confidence to human_review, failed to human_review\n",
            "memory  long-term, at most 5 a recall, scores of 0.2 or more\n",
            "tier  sub\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains(&"x".repeat(100)), "the role is cut: {text}");
        let small = json!({"metadata": {"id": "a", "name": "a"}, "core_context": {"system_prompt": "Hi."}});
        assert_eq!(
            shown(small.clone()),
            "agent  a\nname  a\nrole  Hi.\ntools  every tool\nlimits  as configured\n"
        );
        assert_eq!(limit_dollars(0.00123), "$0.0012");
        let mut none = small;
        none["tools"] = json!({"allowed": []});
        assert!(shown(none).contains("tools  none\n"));
    }

    #[test]
    fn ad1_a_problem_is_one_line_with_its_place() {
        let problem = |line, path: &str, problem: &str| DefinitionProblem {
            line,
            path: path.to_owned(),
            problem: problem.to_owned(),
        };
        for (given, line) in [
            (
                problem(Some(3), "tools.allowed[0]", "No."),
                "a/agent.yaml:3: tools.allowed[0]: No.",
            ),
            (problem(Some(3), "", "No."), "a/agent.yaml:3: No."),
            (problem(None, "", "No\n\u{1b}[2Jmore."), "a/agent.yaml: No more."),
        ] {
            assert_eq!(problem_line("a/agent.yaml", &given), line);
        }
        assert!(refusal("agent.yaml", &[]).is_none());
        let two = [problem(None, "", "No."), problem(None, "", "No.")];
        assert!(
            refusal("agent.yaml", &two)
                .unwrap()
                .message
                .starts_with("agent.yaml has 2 mistakes")
        );
    }
}
