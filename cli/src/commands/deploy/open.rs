//! Opens a deployment for a `gsv deploy` command: finds the bundle, wrangler, a token that works and one account, or says what is missing.

use std::env;

use gsv_link::Target;
use serde_json::Value;

use super::account::{Account, Looked, list, text};
use super::api::{Api, Trouble};
use super::bundle::Bundle;
use super::finding::{self, Finding, Verdict};
use super::parts::GATEWAY;
use super::record::{Record, Unfinished};
use super::wrangler::Wrangler;
use crate::ask;
use crate::clean::one_line;
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// Columns of an account's name.
const NAME_WIDTH: usize = 80;

pub struct Open {
    pub bundle: Bundle,
    pub wrangler: Wrangler,
    pub api: Api,
    pub account_id: String,
    pub account_name: String,
    pub record: Option<Record>,
}

/// An account that the token can see.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    id: String,
    name: String,
}

impl Open {
    pub async fn new(out: Output, wanted: Option<&str>) -> Outcome<Self> {
        let bundle = Bundle::find()?;
        let wrangler = Wrangler::find()?;
        let api = Api::new(wrangler.login().await?)?;
        let record = Record::read()?;
        let seen = accounts(&api).await?;
        let from_environment = env::var("CLOUDFLARE_ACCOUNT_ID").ok().filter(|id| !id.is_empty());
        let wanted = wanted.map(str::to_owned).or(from_environment);
        let chosen = match choose(&seen, wanted.as_deref(), record.as_ref())? {
            Some(account) => account,
            None => ask_for(out, &seen)?,
        };
        Ok(Self {
            bundle,
            wrangler,
            api,
            account_id: chosen.id,
            account_name: chosen.name,
            record,
        })
    }

    pub fn account(&self) -> Account<'_> {
        Account {
            api: &self.api,
            id: &self.account_id,
        }
    }

    /// The account with everything that a deployment needs. Fails when a thing is missing.
    pub async fn look(&self) -> Outcome<Looked> {
        let looked = self.account().look(&self.bundle.needs()).await;
        let missing: Vec<&Finding> = looked
            .findings
            .iter()
            .filter(|found| found.verdict == Verdict::Missing)
            .collect();
        if missing.is_empty() {
            return Ok(looked);
        }
        let lines = missing.iter().map(|found| found.line()).collect();
        let message = format!(
            "The account {} lacks something that a deployment needs.",
            self.account_name
        );
        let next = "Do what the lines say, then run it again. `gsv deploy check` looks again.";
        Err(if missing.iter().all(|found| found.is_passing) {
            Failure::later(message, next)
        } else {
            Failure::failed(message, next)
        }
        .with_lines(lines))
    }

    pub async fn plan(&self) -> Finding {
        let rows = self.api.get(&self.account().path("subscriptions")).await;
        let ids = rows.map(|answer| {
            let rows = list(answer.result);
            rows.iter().filter_map(|row| text(&row["rate_plan"], "id")).collect()
        });
        finding::plan(&self.account_id, &ids)
    }

    /// What an earlier run in this account was to do and has not done.
    pub fn unfinished(&self) -> Option<&Unfinished> {
        let record = self.record.as_ref()?;
        record
            .unfinished
            .as_ref()
            .filter(|_| record.account_id == self.account_id)
    }

    /// Where the gateway answers: an address that the owner has given, else that at workers.dev.
    pub fn address(&self, given: Option<&str>, subdomain: Option<&str>) -> Outcome<(Target, bool)> {
        let recorded = self
            .record
            .as_ref()
            .filter(|record| record.is_own_address && record.account_id == self.account_id);
        let own = given.or_else(|| recorded?.address.as_deref());
        let url = match (own, subdomain) {
            (Some(own), _) => own.to_owned(),
            (None, Some(subdomain)) => format!("https://{GATEWAY}.{subdomain}.workers.dev"),
            (None, None) => {
                let message = "The account has no address at workers.dev yet.";
                return Err(Failure::failed(
                    message,
                    "`gsv deploy check` says what to do. Or give an address of your own with --address.",
                ));
            }
        };
        let target = Target::parse(&url).map_err(|error| Failure::usage(error.to_string(), ""))?;
        Ok((target, own.is_some()))
    }
}

async fn accounts(api: &Api) -> Outcome<Vec<Seen>> {
    let answer = api.get("/accounts?per_page=50").await;
    let rows: Vec<Value> = match answer {
        Ok(answer) => list(answer.result),
        // A token may do everything in one account and not list accounts.
        Err(Trouble::Refused { status: 403, .. }) => Vec::new(),
        Err(trouble) => {
            return Err(trouble.failure(
                "accept the token",
                "Check CLOUDFLARE_API_TOKEN, or run `wrangler login`.",
            ));
        }
    };
    Ok(seen(&rows))
}

fn seen(rows: &[Value]) -> Vec<Seen> {
    let seen = rows.iter().filter_map(|row| {
        let id = text(row, "id").filter(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()))?;
        Some(Seen {
            // Others may have named the account, and it is printed.
            name: text(row, "name").map_or_else(|| id.clone(), |name| one_line(&name, NAME_WIDTH)),
            id,
        })
    });
    seen.collect()
}

/// `None`: there are several, and nothing says which.
fn choose(seen: &[Seen], wanted: Option<&str>, record: Option<&Record>) -> Outcome<Option<Seen>> {
    if let Some(wanted) = wanted {
        let found = seen
            .iter()
            .find(|account| account.id == wanted || account.name == wanted);
        return match found {
            Some(account) => Ok(Some(account.clone())),
            // An account that the token can't list.
            None if seen.is_empty() && is_id(wanted) => Ok(Some(Seen {
                id: wanted.to_owned(),
                name: wanted.to_owned(),
            })),
            None => Err(
                Failure::usage(format!("The token can't see an account {wanted:?}."), which(seen))
                    .with_lines(lines(seen)),
            ),
        };
    }
    let recorded = record.and_then(|record| seen.iter().find(|account| account.id == record.account_id));
    match (recorded, seen) {
        (Some(account), _) | (None, [account]) => Ok(Some(account.clone())),
        (None, []) => match record {
            Some(record) => Ok(Some(Seen {
                id: record.account_id.clone(),
                name: one_line(&record.account_name, NAME_WIDTH),
            })),
            None => Err(Failure::usage(
                "The token can't see any account.",
                "Give the account's id with --account, or give the token the permission `Account Settings: Read`.",
            )),
        },
        (None, _) => Ok(None),
    }
}

fn ask_for(out: Output, seen: &[Seen]) -> Outcome<Seen> {
    let several = || Failure::usage("The token can see several accounts.", which(seen)).with_lines(lines(seen));
    if !ask::is_possible(out) {
        return Err(several());
    }
    for (number, account) in (1..).zip(seen) {
        out.note(&format!("{number}  {}  {}", account.id, account.name));
    }
    let number: Option<usize> = ask::answer(out, "Deploy to which account? Its number:").parse().ok();
    number
        .and_then(|number| seen.get(number.checked_sub(1)?))
        .cloned()
        .ok_or_else(several)
}

fn lines(seen: &[Seen]) -> Vec<String> {
    seen.iter()
        .map(|account| format!("{}  {}", account.id, account.name))
        .collect()
}

fn which(seen: &[Seen]) -> String {
    let example = seen.first().map_or("ID", |account| account.id.as_str());
    format!("Choose one: --account {example}.")
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<Seen> {
        let account = |name: &&str| Seen {
            id: name.repeat(32),
            name: format!("account {name}"),
        };
        names.iter().map(account).collect()
    }

    fn record(id: &str) -> Record {
        Record {
            account_id: id.repeat(32),
            account_name: format!("account {id}"),
            address: None,
            is_own_address: false,
            unfinished: None,
        }
    }

    #[test]
    fn de2_the_account_is_the_one_that_is_named_recorded_or_alone_and_never_a_guess() {
        let name = |chosen: Outcome<Option<Seen>>| chosen.unwrap().map(|account| account.name);
        let (a, both) = (named(&["a"]), named(&["a", "b"]));
        assert_eq!(name(choose(&a, None, None)).as_deref(), Some("account a"));
        assert_eq!(name(choose(&both, None, None)), None);
        assert_eq!(
            name(choose(&both, None, Some(&record("b")))).as_deref(),
            Some("account b")
        );
        assert_eq!(
            name(choose(&both, Some("account a"), Some(&record("b")))).as_deref(),
            Some("account a")
        );
        assert_eq!(
            name(choose(&both, Some(&"b".repeat(32)), None)).as_deref(),
            Some("account b")
        );
        // A record of an account that the token can't see.
        assert_eq!(name(choose(&both, None, Some(&record("c")))), None);
        let failure = choose(&both, Some("c"), None).unwrap_err();
        assert!(
            failure.next.contains("--account") && failure.lines.len() == 2,
            "{failure:?}"
        );
    }

    #[test]
    fn de2_names_of_accounts_are_cleaned_and_an_id_that_is_none_is_left_out() {
        let row = |id: &str, name: Value| serde_json::json!({ "id": id, "name": name });
        let rows = [
            row("a1", "Ada\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}\n  b2  Bob\u{202e}".into()),
            row("b2", "x".repeat(200).into()),
            row("c3", Value::Null),
            row("d4\u{1b}[31m", "Eve".into()),
        ];
        let seen = seen(&rows);
        let names: Vec<&str> = seen.iter().map(|account| account.name.as_str()).collect();
        assert_eq!(names[0], "Ada b2 Bob");
        assert!(
            names[1].chars().count() <= NAME_WIDTH && names[1].ends_with('…'),
            "{}",
            names[1]
        );
        assert_eq!(names[2..], ["c3"]);
        let failure = choose(&seen, Some("none"), None).unwrap_err();
        assert_eq!(failure.lines[0], "a1  Ada b2 Bob");
        // An earlier version has recorded the name as it was.
        let recorded = Record {
            account_name: "Ada\u{1b}[2J".to_owned(),
            ..record("c")
        };
        assert_eq!(choose(&[], None, Some(&recorded)).unwrap().unwrap().name, "Ada");
    }

    #[test]
    fn de2_a_token_that_lists_no_accounts_works_with_an_id() {
        let id = "c".repeat(32);
        assert_eq!(choose(&[], Some(&id), None).unwrap().unwrap().id, id);
        assert!(choose(&[], Some("a name"), None).is_err());
        assert_eq!(choose(&[], None, Some(&record("c"))).unwrap().unwrap().id, id);
        assert!(choose(&[], None, None).unwrap_err().next.contains("--account"));
    }
}
