//! Findings of `gsv deploy check`: each names a thing that a deployment needs of the machine or the account, whether it is there, and what to do
//! when it is not. Pure.

use serde_json::{Value, json};

use super::api::Trouble;

/// What a deployment needs of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    Workers,
    Subdomain,
    Storage,
    Database,
    KeyValue,
    Queues,
    Vectors,
}

pub const PRODUCTS: [Product; 7] = [
    Product::Workers,
    Product::Subdomain,
    Product::Storage,
    Product::Database,
    Product::KeyValue,
    Product::Queues,
    Product::Vectors,
];
/// R2 has to be enabled by hand.
const R2_NOT_ENABLED: u64 = 10042;

impl Product {
    const fn name(self) -> &'static str {
        match self {
            Self::Workers => "Workers and Durable Objects",
            Self::Subdomain => "address at workers.dev",
            Self::Storage => "R2",
            Self::Database => "D1",
            Self::KeyValue => "Workers KV",
            Self::Queues => "Queues",
            Self::Vectors => "Vectorize",
        }
    }

    /// The permission of a token, as the dashboard names it.
    const fn permission(self) -> &'static str {
        match self {
            Self::Workers | Self::Subdomain => "Workers Scripts: Edit",
            Self::Storage => "Workers R2 Storage: Edit",
            Self::Database => "D1: Edit",
            Self::KeyValue => "Workers KV Storage: Edit",
            Self::Queues => "Queues: Edit",
            Self::Vectors => "Vectorize: Edit",
        }
    }

    /// A deployment works without it.
    const fn is_optional(self) -> bool {
        matches!(self, Self::Vectors)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Present,
    /// Not needed, or not known.
    Note,
    Missing,
}

impl Verdict {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Present => "ok",
            Self::Note => "note",
            Self::Missing => "missing",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    pub verdict: Verdict,
    /// What was found, in a sentence.
    pub found: String,
    /// What to do; empty when nothing is to be done.
    pub next: String,
    /// The same check may have another result in a moment.
    pub is_passing: bool,
}

impl Finding {
    pub fn new(what: &str, verdict: Verdict, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            what: what.to_owned(),
            verdict,
            found: found.into(),
            next: next.into(),
            is_passing: false,
        }
    }

    pub fn of(product: Product, account: &str, trouble: Option<Trouble>) -> Self {
        let what = product.name();
        let Some(trouble) = trouble else {
            return Self::new(what, Verdict::Present, "", "");
        };
        let verdict = if product.is_optional() {
            Verdict::Note
        } else {
            Verdict::Missing
        };
        let dashboard = |page: &str| format!("https://dash.cloudflare.com/{account}/{page}");
        let next = match &trouble {
            Trouble::Unreachable(_) => "Check the network, then run it again.".to_owned(),
            Trouble::Refused { status, .. } if *status == 429 || *status >= 500 => {
                "Run it again in a moment.".to_owned()
            }
            Trouble::Refused {
                code: R2_NOT_ENABLED, ..
            } => format!("Enable R2: {}.", dashboard("r2/overview")),
            Trouble::Refused { status: 404, .. } if product == Product::Subdomain => {
                format!(
                    "Open {} once: it gives the account its name there.",
                    dashboard("workers-and-pages")
                )
            }
            _ if trouble.is_denied() => format!(
                "Give the token the permission `{}` (https://dash.cloudflare.com/profile/api-tokens).",
                product.permission()
            ),
            Trouble::Refused { .. } => format!("Your plan may not have it: {}.", dashboard("workers/plans")),
        };
        let is_passing = match &trouble {
            Trouble::Unreachable(_) => true,
            Trouble::Refused { status, .. } => *status == 429 || *status >= 500,
        };
        Self {
            is_passing,
            ..Self::new(what, verdict, format!("Cloudflare says: {trouble}."), next)
        }
    }

    pub fn json(&self) -> Value {
        json!({ "what": self.what, "verdict": self.verdict.word(), "found": self.found, "next": self.next })
    }

    pub fn line(&self) -> String {
        let text = [self.found.as_str(), self.next.as_str()];
        let text: Vec<&str> = text.into_iter().filter(|text| !text.is_empty()).collect();
        format!("{:7}  {}  {}", self.verdict.word(), self.what, text.join(" "))
            .trim_end()
            .to_owned()
    }
}

/// What is known of the plan. `subscriptions`: the ids of what the account pays for; an error: the token may not read them.
pub fn plan(account: &str, subscriptions: &Result<Vec<String>, Trouble>) -> Finding {
    const WHAT: &str = "plan";
    match subscriptions {
        Ok(ids) if ids.iter().any(|id| id.starts_with("workers_paid")) => {
            Finding::new(WHAT, Verdict::Present, "Workers Paid.", "")
        }
        Ok(_) => Finding::new(
            WHAT,
            Verdict::Note,
            "Workers Free: 100,000 requests a day, and 10 ms of CPU time for each. That is enough to try it.",
            format!("Workers Paid is for daily use: https://dash.cloudflare.com/{account}/workers/plans."),
        ),
        Err(_) => Finding::new(
            WHAT,
            Verdict::Note,
            "The token may not read the plan, so it is not known.",
            "Nothing has to be done; the permission `Billing: Read` would show it.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: u64) -> Trouble {
        Trouble::Refused {
            status,
            code,
            message: "No.".to_owned(),
        }
    }

    #[test]
    fn de2_each_lack_has_a_sentence_with_what_to_do() {
        let next = |product, trouble| Finding::of(product, "acc", Some(trouble)).next;
        assert!(
            next(Product::Storage, refused(403, R2_NOT_ENABLED))
                .starts_with("Enable R2: https://dash.cloudflare.com/acc/")
        );
        assert!(next(Product::Subdomain, refused(404, 10007)).contains("workers-and-pages"));
        assert!(next(Product::Queues, refused(403, 10000)).contains("`Queues: Edit`"));
        assert!(next(Product::Database, refused(400, 1)).contains("workers/plans"));
        assert!(next(Product::KeyValue, refused(503, 1)).contains("in a moment"));
        for product in PRODUCTS {
            let finding = Finding::of(product, "acc", Some(refused(403, 10000)));
            assert_eq!(finding.verdict == Verdict::Missing, product != Product::Vectors);
            assert!(!finding.found.is_empty() && !finding.next.is_empty());
            assert_eq!(Finding::of(product, "acc", None).verdict, Verdict::Present);
        }
    }

    #[test]
    fn de2_the_plan_is_known_or_said_to_be_unknown() {
        let of = |ids: &[&str]| plan("acc", &Ok(ids.iter().map(|id| (*id).to_owned()).collect())).verdict;
        assert_eq!(of(&["teams_free", "workers_paid"]), Verdict::Present);
        assert_eq!(of(&[]), Verdict::Note);
        assert!(plan("acc", &Err(refused(403, 10000))).found.contains("not known"));
    }
}
