//! `gsv approval`: lists and answers the questions that wait for your word, and ends what was allowed for a time.

use std::path::Path;

use gsv_protocol::NoParams;
use gsv_protocol::methods::{ApprovalGrants, ApprovalList, ApprovalResolve, ApprovalRevoke};
use gsv_protocol::types::{
    ApprovalAnswerKind, ApprovalEntry, ApprovalListParams, ApprovalResolveParams, ApprovalRevokeParams,
};

use super::actors::Actors;
use super::approval_view::{Place, choices, granted, held, in_order, not_offered, question, told};
use super::context::Context;
use crate::args::{Allow, ApprovalCommand, Hold, Question};
use crate::ask;
use crate::chat::decision::Decision;
use crate::clean::visible;
use crate::exit::{Failure, Outcome};
use crate::paths;
use crate::units::now_ms;

pub async fn run(context: &Context, command: ApprovalCommand) -> Outcome {
    let out = context.out;
    match command {
        ApprovalCommand::List { session } => {
            let params = ApprovalListParams { session_key: session };
            let mut result = context.ask::<ApprovalList>(params).await?;
            result.approvals = in_order(result.approvals);
            out.show(result, |result| {
                if result.approvals.is_empty() {
                    out.aside("No question waits for your word.");
                    return;
                }
                for entry in &result.approvals {
                    for line in question(entry, now_ms(), Place::Shell) {
                        out.sentences(&line);
                    }
                    out.line("");
                }
                out.aside("Answer with `gsv approval allow CODE` or `gsv approval deny CODE [WORD...]`.");
            });
            Ok(())
        }
        ApprovalCommand::Show(asked) => {
            let entry = find(context, &asked).await?;
            out.show(entry, |entry| {
                for line in question(&entry, now_ms(), Place::Shell) {
                    out.sentences(&line);
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
            let client = context.connect().await?;
            let result = client.call::<ApprovalGrants>(NoParams {}).await?;
            let actors = Actors::find(context, &client, result.grants.iter().map(|grant| grant.by.as_str())).await;
            client.close().await;
            out.show(result, |result| {
                if result.grants.is_empty() {
                    out.aside("You have allowed nothing for a time.");
                } else {
                    for grant in &result.grants {
                        for line in granted(grant, &actors, now_ms()) {
                            out.sentences(&line);
                        }
                    }
                    out.aside("End one with `gsv approval revoke ID`.");
                }
                let rules = result.rules.as_deref().unwrap_or_default();
                for rule in rules {
                    out.line(&format!("rule {}, until you remove it", visible(&rule.id)));
                    out.line(&format!("  {}", visible(&rule.text)));
                    out.aside(&format!(
                        "Remove it with `gsv approval revoke {}`.",
                        rule_name(&rule.id)
                    ));
                }
            });
            Ok(())
        }
        ApprovalCommand::Revoke { id } => {
            let name = visible(&id);
            let is_rule = id.starts_with(RULE);
            let revoked = context.change::<ApprovalRevoke>(ApprovalRevokeParams { id }, |result| {
                if is_rule {
                    format!("{name} is removed; what it allowed is decided by your other rules and the mode")
                } else if result.revoked {
                    format!("{name} is revoked; the next such call asks again")
                } else {
                    format!("{name} did not hold any more")
                }
            });
            revoked.await
        }
    }
}

/// Begins the name of a rule in `gsv approval revoke`.
const RULE: &str = "rule:";
/// As it can be pasted into a shell.
fn rule_name(id: &str) -> String {
    paths::shell(Path::new(&visible(&format!("{RULE}{id}"))))
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
        Some(Hold::OneHour) => ApprovalAnswerKind::Allow1h,
        Some(Hold::EightHours) => ApprovalAnswerKind::Allow8h,
        Some(Hold::ThirtyDays) => ApprovalAnswerKind::Allow30d,
    };
    let entry = find(context, &question).await?;
    let Some(choice) = choices(&entry).iter().find(|choice| choice.answer == decision) else {
        return Err(not_offered(&entry));
    };
    if always && !yes {
        let what = format!("This saves {}.", visible(&choice.text));
        if !ask::is_possible(context.out) {
            context.out.note(&what);
        }
        ask::confirm(context.out, &what, "save the rule", "Nothing was allowed.")?;
    } else {
        held(&entry, decision).inspect(|text| context.out.aside(text));
    }
    let hash = entry.hash.clone();
    answer(context, question, decision, None, Some(hash)).await
}

/// An answer that was written as a message.
pub async fn decide(
    context: &Context,
    Decision {
        code,
        answer: decision,
        word,
    }: Decision,
) -> Outcome {
    answer(context, Question { code, session: None }, decision, word, None).await
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
    let words = told(&code, decision, &result, now_ms())?;
    context.out.done(&result, &words);
    Ok(())
}
