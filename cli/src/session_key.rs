//! Names of conversations, as far as their form shows that no gateway can accept them. The gateway decides; it also knows the name of
//! the main conversation. Pure.

pub const NEXT: &str = "Use a name of your own such as `notes`, or a key from `gsv session list`.";

const PEER_KINDS: [&str; 4] = ["dm", "group", "channel", "thread"];
const MAX_FREE: usize = 128;
const DEFAULT_AGENT: &str = "main";

/// A key (`agent:{agent}:...`), a key without its agent, which is the default agent's, or a free name, which is a conversation of the
/// command line.
pub fn check(text: &str) -> Result<(), &'static str> {
    let parts: Vec<&str> = text.trim().split(':').collect();
    let (agent, rest) = match parts.as_slice() {
        [name] if is_free(name) => return Ok(()),
        [_] => return Err("a name has letters, digits and `+-_@.`, at most 128, and begins with a letter or digit"),
        [prefix, agent, rest @ ..] if prefix.eq_ignore_ascii_case("agent") => (*agent, rest),
        rest => (DEFAULT_AGENT, rest),
    };
    if agent.is_empty() || rest.iter().any(|part| !is_encoded(part)) {
        return Err("a part of the key is empty, or has a character that must be percent-encoded");
    }
    let is = |part: &str, words: &[&str]| words.iter().any(|word| part.eq_ignore_ascii_case(word));
    let fits = match rest {
        [_main] => true,
        [form, _] => is(form, &["dm", "cron"]),
        [_channel, kind, _peer] => is(kind, &PEER_KINDS),
        [_channel, account, kind, _peer] => is(kind, &["dm"]) && !is(account, &PEER_KINDS),
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(
            "a key is `agent:AGENT:main`, `agent:AGENT:CHANNEL:KIND:PEER` (KIND: dm, group, channel or thread) or `agent:AGENT:CHANNEL:ACCOUNT:dm:PEER`; without `agent:AGENT:` it is the default agent's, and a colon inside a name is written %3A",
        )
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+-_@.".contains(c)
}

fn is_free(name: &str) -> bool {
    name.len() <= MAX_FREE && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

/// The gateway encodes other characters itself; white space and a lone `%` are mistakes.
fn is_encoded(part: &str) -> bool {
    let escapes = part.split('%').skip(1);
    let is_hex = |text: &str| text.len() >= 2 && text.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    !part.is_empty() && !part.contains(char::is_whitespace) && escapes.into_iter().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f37_keys_and_free_names_are_accepted_and_other_texts_are_not() {
        for good in [
            "main",
            "notes",
            "BAD",
            "agent:main:main",
            "agent:work:cli:dm:notes",
            "agent:main:dm:+316",
            "agent:main:cron:1",
            "Agent:main:whatsapp:group:1%3A2",
            "agent:main:discord:work:dm:7",
            // As the chat shows it.
            "cli:dm:main",
            "dm:+316",
            "discord:work:dm:7",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "a b",
            "-x",
            "a b:c",
            "a:b",
            "cli:people:x",
            ":dm:x",
            "agent:",
            "agent::main",
            "agent:main",
            "agent:main:",
            "agent:main:x:y",
            "agent:main:cli:people:x",
            "agent:main:Foo Bar",
            "agent:main:cli:dm:1%2",
            "agent:main:discord:group:dm:7",
            "agent:a:b:c:d:e:f",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
