//! An answer to a question by its code, as the text of each question offers it: `allow K7Q2A`, `allow K7Q2A for 8h`, `deny K7Q2A use git
//! instead`. Pure. The gateway reads the words that allow once and that deny in a direct chat of a channel, too.

use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry, ApprovalResolveParams};

/// What a code consists of (gateway/src/calls/approval.ts).
const CODE_ALPHABET: &str = "234679ACDEFGHJKMNPQRTWXYZ";
const CODE_CHARS: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub code: String,
    pub answer: ApprovalAnswerKind,
    /// To the agent.
    pub word: Option<String>,
}

impl Decision {
    /// None: the text is something else. "allow K7Q2A but only once" is no plain yes.
    pub fn read(text: &str) -> Option<Self> {
        let (verb, rest) = text.trim().split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let code = rest[..end].to_uppercase();
        if !is_code(&code) {
            return None;
        }
        let after = &rest[end..];
        if !after.is_empty() && !after.starts_with(|c: char| c.is_whitespace() || ":,".contains(c)) {
            return None;
        }
        let word = after.trim_matches(|c: char| c.is_whitespace() || ":,".contains(c));
        let word = (!word.is_empty()).then(|| word.to_owned());
        let (answer, word) = match (verb.to_lowercase().as_str(), word) {
            ("allow", None) => (ApprovalAnswerKind::Allow, None),
            ("allow", Some(time)) => (for_longer(&time)?, None),
            ("deny", word) => (ApprovalAnswerKind::Deny, word),
            _ => return None,
        };
        Some(Self { code, answer, word })
    }

    /// Takes its question out of those that were shown here, and is bound to what was shown. The question may also be of another
    /// conversation.
    pub fn about(self, shown: &mut Vec<ApprovalEntry>) -> ApprovalResolveParams {
        let at = shown.iter().position(|entry| entry.code == self.code);
        let entry = at.map(|at| shown.remove(at));
        let (session_key, hash) = entry.map(|entry| (entry.session_key, entry.hash)).unzip();
        ApprovalResolveParams {
            code: self.code,
            decision: self.answer,
            word: self.word,
            session_key,
            hash,
        }
    }
}

/// Whether a word has the form of a code, in either case.
pub fn is_code(word: &str) -> bool {
    word.len() == CODE_CHARS && word.chars().all(|c| CODE_ALPHABET.contains(c.to_ascii_uppercase()))
}

/// How long calls like it are allowed: `session`, `for 8h`.
fn for_longer(time: &str) -> Option<ApprovalAnswerKind> {
    match time.strip_prefix("for ").unwrap_or(time).trim().to_lowercase().as_str() {
        "session" => Some(ApprovalAnswerKind::AllowSession),
        "1h" => Some(ApprovalAnswerKind::Allow1h),
        "8h" => Some(ApprovalAnswerKind::Allow8h),
        "30d" => Some(ApprovalAnswerKind::Allow30d),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ap14_a_question_is_answered_with_its_code_and_nothing_else_is_an_answer() {
        let read = |text: &str| Decision::read(text).map(|it| (it.code, it.answer, it.word));
        let code = || "K7Q2A".to_owned();
        assert_eq!(read("allow K7Q2A"), Some((code(), ApprovalAnswerKind::Allow, None)));
        assert_eq!(read(" Allow k7q2a "), Some((code(), ApprovalAnswerKind::Allow, None)));
        for (text, answer) in [
            ("allow K7Q2A session", ApprovalAnswerKind::AllowSession),
            ("allow K7Q2A for 8h", ApprovalAnswerKind::Allow8h),
            ("ALLOW k7q2a: 30D", ApprovalAnswerKind::Allow30d),
        ] {
            assert_eq!(read(text), Some((code(), answer, None)), "{text}");
        }
        assert_eq!(read("deny K7Q2A"), Some((code(), ApprovalAnswerKind::Deny, None)));
        let word = Some("use git: it is safer".to_owned());
        assert_eq!(
            read("deny K7Q2A, use git: it is safer"),
            Some((code(), ApprovalAnswerKind::Deny, word))
        );
        for other in [
            "allow",
            "allow K7Q2",
            "allow K7Q2AA",
            "allow K7Q2A but only once",
            "allow K7Q2A always",
            "allow K7Q2A for now",
            "allow K7Q2A-x",
            "allow guest",
            "deny access to it",
            "K7Q2A",
            "do allow K7Q2A",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn f3_codes_here_are_those_of_the_gateway() {
        let gateway = include_str!("../../../gateway/src/calls/approval.ts");
        assert!(gateway.contains(&format!("CODE_ALPHABET = \"{CODE_ALPHABET}\"")));
        assert!(gateway.contains(&format!("CODE_CHARS = {CODE_CHARS}")));
    }
}
