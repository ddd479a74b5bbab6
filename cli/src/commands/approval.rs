//! `gsv approval`: calls of the agent that wait for your word. Their texts come from the gateway with hidden characters as escapes; they
//! are cleaned here once more, because a terminal must not depend on that.

use gsv_protocol::NoParams;
use gsv_protocol::methods::{ApprovalGrants, ApprovalList, ApprovalResolve, ApprovalRevoke};
use gsv_protocol::types::{
    ApprovalAnswerKind, ApprovalChoice, ApprovalEntry, ApprovalGrant, ApprovalListParams, ApprovalOutcome,
    ApprovalResolveParams, ApprovalResolveResult, ApprovalRevokeParams,
};

use super::context::Context;
use crate::args::{Allow, ApprovalCommand, Hold, Question};
use crate::ask;
use crate::clean::visible;
use crate::exit::{Failure, Outcome};
use crate::units::{ago, bytes, duration, now_ms};

pub async fn run(context: &Context, command: ApprovalCommand) -> Outcome {
    let out = context.out;
    match command {
        ApprovalCommand::List { session } => {
            let params = ApprovalListParams { session_key: session };
            let shown = context.show::<ApprovalList>(params, |result| {
                if result.approvals.is_empty() {
                    out.aside("No question waits for your word.");
                    return;
                }
                for entry in &result.approvals {
                    for line in question(entry, now_ms()) {
                        out.line(&line);
                    }
                    out.line("");
                }
                out.aside("Answer with `gsv approval allow CODE` or `gsv approval deny CODE [WORD...]`.");
            });
            shown.await
        }
        ApprovalCommand::Show(asked) => {
            let entry = find(context, &asked).await?;
            out.show(entry, |entry| {
                for line in question(&entry, now_ms()) {
                    out.line(&line);
                }
            });
            Ok(())
        }
        ApprovalCommand::Allow(args) => allow(context, args).await,
        ApprovalCommand::Deny { question, word } => {
            let word = word.join(" ");
            let word = (!word.trim().is_empty()).then_some(word);
            answer(context, question, ApprovalAnswerKind::Deny, word, None).await
        }
        ApprovalCommand::Grants => {
            let shown = context.show::<ApprovalGrants>(NoParams {}, |result| {
                if result.grants.is_empty() {
                    out.aside("You have allowed nothing for a time.");
                    return;
                }
                for grant in &result.grants {
                    for line in granted(grant, now_ms()) {
                        out.line(&line);
                    }
                }
                out.aside("End one with `gsv approval revoke ID`.");
            });
            shown.await
        }
        ApprovalCommand::Revoke { id } => {
            let name = visible(&id);
            let revoked = context.change::<ApprovalRevoke>(ApprovalRevokeParams { id }, |result| {
                if result.revoked {
                    format!("{name} is revoked; the next such call asks again")
                } else {
                    format!("{name} did not hold any more")
                }
            });
            revoked.await
        }
    }
}

/// With a time or `--always`: only what the question offers, bound to what was shown.
async fn allow(context: &Context, args: Allow) -> Outcome {
    let Allow {
        question,
        hold,
        always,
        yes,
    } = args;
    let decision = match hold {
        _ if always => ApprovalAnswerKind::AllowAlways,
        None => return answer(context, question, ApprovalAnswerKind::Allow, None, None).await,
        Some(Hold::Session) => ApprovalAnswerKind::AllowSession,
        Some(Hold::Hour) => ApprovalAnswerKind::Allow1h,
        Some(Hold::Day) => ApprovalAnswerKind::Allow8h,
        Some(Hold::Month) => ApprovalAnswerKind::Allow30d,
    };
    let entry = find(context, &question).await?;
    let Some(choice) = choices(&entry).iter().find(|choice| choice.answer == decision) else {
        return Err(not_offered(&entry));
    };
    let text = visible(&choice.text);
    if always && !yes {
        let what = format!("This saves {text}.");
        ask::confirm(context.out, &what, "save the rule", "Nothing was allowed.")?;
    } else {
        context.out.aside(&format!("For {}: {text}", long(decision)));
    }
    let hash = entry.hash.clone();
    answer(context, question, decision, None, Some(hash)).await
}

/// How long an answer holds, in words.
fn long(decision: ApprovalAnswerKind) -> &'static str {
    match decision {
        ApprovalAnswerKind::AllowSession => "this conversation, at most 24 hours",
        ApprovalAnswerKind::Allow1h => "1 hour",
        ApprovalAnswerKind::Allow8h => "8 hours",
        ApprovalAnswerKind::Allow30d => "30 days",
        ApprovalAnswerKind::AllowAlways => "good",
        ApprovalAnswerKind::Allow | ApprovalAnswerKind::Deny => "this call",
    }
}

fn choices(entry: &ApprovalEntry) -> &[ApprovalChoice] {
    entry.choices.as_deref().unwrap_or_default()
}

fn not_offered(entry: &ApprovalEntry) -> Failure {
    let code = visible(&entry.code);
    let offered = longer(entry);
    let message = if offered.is_empty() {
        format!("{code}: this call can be allowed once only.")
    } else {
        format!("{code}: this call cannot be allowed in that way.")
    };
    Failure::usage(message, format!("Allow it once: `gsv approval allow {code}`."))
}

/// How to allow more than the call that waits: the answers that the question takes, and exactly what they allow.
pub fn longer(entry: &ApprovalEntry) -> Vec<String> {
    let code = visible(&entry.code);
    let (mut names, mut scope, mut rule) = (Vec::new(), None, None);
    for ApprovalChoice { answer, text } in choices(entry) {
        let name = match answer {
            ApprovalAnswerKind::AllowSession => "session",
            ApprovalAnswerKind::Allow1h => "1h",
            ApprovalAnswerKind::Allow8h => "8h",
            ApprovalAnswerKind::Allow30d => "30d",
            ApprovalAnswerKind::AllowAlways => {
                rule = Some(format!(
                    "  > `gsv approval allow {code} --always` saves {}",
                    visible(text)
                ));
                continue;
            }
            ApprovalAnswerKind::Allow | ApprovalAnswerKind::Deny => continue,
        };
        names.push(name);
        scope.get_or_insert_with(|| visible(text));
    }
    let timed = scope.map(|scope| {
        format!(
            "  > `gsv approval allow {code} --for {}` allows {scope}",
            names.join("|")
        )
    });
    timed.into_iter().chain(rule).collect()
}

fn granted(grant: &ApprovalGrant, now: u64) -> Vec<String> {
    let place = grant
        .session_key
        .as_ref()
        .map(|key| format!(", only in {}", visible(key.as_ref())))
        .unwrap_or_default();
    let last = grant
        .last_used_at
        .map(|at| format!(", last {}", ago(at, now)))
        .unwrap_or_default();
    vec![
        format!("{}  {}{place}", visible(&grant.id), visible(&grant.text)),
        format!(
            "  {} left; used {} times{last}; allowed by {} ({})",
            duration(grant.expires_at.saturating_sub(now)),
            grant.uses,
            visible(&grant.by),
            visible(&grant.code)
        ),
    ]
}

async fn find(context: &Context, asked: &Question) -> Outcome<ApprovalEntry> {
    let params = ApprovalListParams {
        session_key: asked.session.clone(),
    };
    let found = context.ask::<ApprovalList>(params).await?.approvals;
    let code = asked.code.trim();
    let entry = found.into_iter().find(|entry| entry.code.eq_ignore_ascii_case(code));
    entry.ok_or_else(|| {
        Failure::failed(
            format!("No call with the code {} waits for your word.", visible(code)),
            "List those that wait: `gsv approval list`.",
        )
    })
}

async fn answer(
    context: &Context,
    question: Question,
    decision: ApprovalAnswerKind,
    word: Option<String>,
    hash: Option<String>,
) -> Outcome {
    let code = question.code.trim().to_uppercase();
    let params = ApprovalResolveParams {
        code: code.clone(),
        decision,
        word,
        session_key: question.session,
        hash,
    };
    let result = context.ask::<ApprovalResolve>(params).await?;
    let words = told(&code, decision, &result)?;
    context.out.done(&result, &words);
    Ok(())
}

/// What became of the question, in words; a failure when it is not what the answer asked for.
pub fn told(code: &str, decision: ApprovalAnswerKind, result: &ApprovalResolveResult) -> Outcome<String> {
    let code = visible(code);
    let by = result.by.as_deref().map(visible);
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    match (decision, result.outcome) {
        (allowed, ApprovalOutcome::Allowed) if allowed != ApprovalAnswerKind::Deny => {
            Ok(format!("{code}: allowed, the agent goes on"))
        }
        (ApprovalAnswerKind::Deny, ApprovalOutcome::Denied) => Ok(format!("{code}: denied, nothing of it is done")),
        (_, ApprovalOutcome::AskedAgain) => Err(Failure::failed(
            format!("{code}: the policy has changed since you were asked, so nothing was allowed."),
            format!(
                "The call waits under a new code: `gsv approval show {}`.",
                result.again.as_deref().map(visible).unwrap_or_default()
            ),
        )),
        (_, outcome) => Err(Failure::failed(
            match outcome {
                ApprovalOutcome::Allowed => format!("{code} was allowed before{by}."),
                ApprovalOutcome::Denied => format!("{code} was denied before{by}."),
                ApprovalOutcome::Expired => format!("{code}: no one answered in time, so it was denied."),
                ApprovalOutcome::Withdrawn => format!("{code}: the run has ended, so nothing of it is done."),
                _ => {
                    format!("{code}: the call can no longer be made, because the policy or what is connected changed.")
                }
            },
            "List what waits for your word: `gsv approval list`.",
        )),
    }
}

/// Everything that a call will do, and why it needs a word.
pub fn question(entry: &ApprovalEntry, now: u64) -> Vec<String> {
    let left = entry.expires_at.saturating_sub(now);
    let machine = entry
        .node_id
        .as_ref()
        .map_or_else(|| "the gateway".to_owned(), |node| visible(node.as_ref()));
    let what = if entry.limit.is_some() {
        "a paused run".to_owned()
    } else {
        format!("{} on {machine}", visible(entry.tool.as_ref()))
    };
    let mut lines = vec![
        format!(
            "{}  {what}, for {} ({} left)",
            visible(&entry.code),
            visible(entry.session_key.as_ref()),
            duration(left)
        ),
        format!("  {} ({})", visible(&entry.why), visible(&entry.rule)),
    ];
    lines.extend(entry.text.lines().map(|line| format!("  | {}", visible(line))));
    if let Some(sha256) = &entry.text_sha256 {
        let shown = entry.text.len() as u64;
        lines.push(format!(
            "  ! {} more are not shown; the whole has the sha256 {}",
            bytes(entry.text_bytes.saturating_sub(shown)),
            visible(sha256)
        ));
    }
    lines.extend(longer(entry));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsv_protocol::types::{AgentId, CallId, NodeId, RunId, SessionKey, ToolName};

    fn entry() -> ApprovalEntry {
        ApprovalEntry {
            code: "K7Q2A".to_owned(),
            session_key: SessionKey("agent:main:main".to_owned()),
            agent_id: AgentId("main".to_owned()),
            run_id: RunId("run-1".to_owned()),
            call_id: CallId("ref/r1/1/0".to_owned()),
            tool: ToolName("lap__Bash".to_owned()),
            node_id: Some(NodeId("lap".to_owned())),
            limit: None,
            text: "rm -rf build\nls\u{202e}".to_owned(),
            text_bytes: 17,
            text_sha256: None,
            why: "It runs a program.".to_owned(),
            rule: "toolApproval.rules[0]".to_owned(),
            hash: "h".to_owned(),
            choices: None,
            created_at: 0,
            expires_at: 1_800_000,
        }
    }

    #[test]
    fn s13_a_question_shows_all_of_the_call_and_no_hidden_character() {
        assert_eq!(
            question(&entry(), 0).join("\n"),
            "K7Q2A  lap__Bash on lap, for agent:main:main (30 min left)\n  It runs a program. (toolApproval.rules[0])\n  | rm -rf build\n  | ls[U+202E]"
        );
        let long = ApprovalEntry {
            text_bytes: 1_000_017,
            text_sha256: Some("ab".to_owned()),
            ..entry()
        };
        let last = question(&long, 0).pop().unwrap();
        assert!(
            last.contains("more are not shown; the whole has the sha256 ab"),
            "{last}"
        );
    }

    #[test]
    fn sp10_a_question_about_a_limit_names_no_tool() {
        let entry = ApprovalEntry {
            tool: ToolName("limit".to_owned()),
            node_id: None,
            limit: Some(true),
            text: "Continue with another $1.00?".to_owned(),
            why: "The run used up its cost budget ($1.02 of $1.00).".to_owned(),
            rule: "limits.runCostUsd".to_owned(),
            ..entry()
        };
        assert_eq!(
            question(&entry, 0),
            [
                "K7Q2A  a paused run, for agent:main:main (30 min left)",
                "  The run used up its cost budget ($1.02 of $1.00). (limits.runCostUsd)",
                "  | Continue with another $1.00?",
            ]
        );
    }

    #[test]
    fn gr1_a_question_names_the_answers_that_allow_more_and_exactly_what_they_allow() {
        assert_eq!(longer(&entry()), Vec::<String>::new());
        let choice = |answer, text: &str| ApprovalChoice {
            answer,
            text: text.to_owned(),
        };
        let offered = ApprovalEntry {
            choices: Some(vec![
                choice(ApprovalAnswerKind::AllowSession, "`git push` on lap\u{202e}"),
                choice(ApprovalAnswerKind::Allow8h, "`git push` on lap\u{202e}"),
                choice(ApprovalAnswerKind::AllowAlways, "the rule {}"),
            ]),
            ..entry()
        };
        let lines = [
            "  > `gsv approval allow K7Q2A --for session|8h` allows `git push` on lap[U+202E]",
            "  > `gsv approval allow K7Q2A --always` saves the rule {}",
        ];
        assert_eq!(longer(&offered), lines);
        assert!(question(&offered, 0).ends_with(&lines.map(ToOwned::to_owned)));
        assert!(not_offered(&entry()).message.contains("once only"));
        let told = told(
            "K7Q2A",
            ApprovalAnswerKind::Allow8h,
            &ApprovalResolveResult {
                outcome: ApprovalOutcome::Allowed,
                by: None,
                again: None,
            },
        );
        assert!(told.is_ok());
    }

    #[test]
    fn p15_an_answer_that_came_too_late_is_a_failure_that_says_what_counts() {
        let result = |outcome, again: Option<&str>| ApprovalResolveResult {
            outcome,
            by: Some("client:phone".to_owned()),
            again: again.map(ToOwned::to_owned),
        };
        let allow = ApprovalAnswerKind::Allow;
        assert!(told("K7Q2A", allow, &result(ApprovalOutcome::Allowed, None)).is_ok());
        let denied = told("K7Q2A", allow, &result(ApprovalOutcome::Denied, None)).unwrap_err();
        assert_eq!(denied.message, "K7Q2A was denied before by client:phone.");
        let again = told("K7Q2A", allow, &result(ApprovalOutcome::AskedAgain, Some("ACDEF"))).unwrap_err();
        assert!(again.next.contains("gsv approval show ACDEF"));
        for outcome in [
            ApprovalOutcome::Expired,
            ApprovalOutcome::Withdrawn,
            ApprovalOutcome::Void,
        ] {
            assert!(told("K7Q2A", ApprovalAnswerKind::Deny, &result(outcome, None)).is_err());
        }
    }
}
