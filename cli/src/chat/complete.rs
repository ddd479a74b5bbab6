//! Commands of the prompt: their completion, and messages of several lines. Pure.

use rustyline::completion::Pair;

use crate::suggest::nearest;

/// Commands of the gateway and of this program.
const COMMANDS: [(&str, &str); 19] = [
    ("/help", "show all commands"),
    ("/status", "show status"),
    ("/steer ", "show a text to the run at its next step"),
    ("/stop", "stop the run"),
    ("/stop all", "stop everything until /resume"),
    ("/resume", "go on after /stop all"),
    ("/new", "archive this conversation and start a new one"),
    ("/reset", "archive this conversation and start a new one"),
    ("/compact ", "archive older messages and keep the last ones"),
    ("/model ", "show or change the model"),
    ("/mode ", "show or set which tool calls run and which ask"),
    ("/trust", "vouch for what the conversation has read"),
    ("/think ", "set how long the model thinks"),
    ("/thoughts ", "show or hide what the model thinks"),
    ("/queue ", "show or change the messages that wait"),
    ("/tool ", "show all output of a tool call"),
    ("/attach ", "send a file with the next message"),
    ("/quit", "leave"),
    ("/exit", "leave"),
];
/// Further names of the gateway's commands, which are not offered.
const ALIASES: [&str; 3] = ["/t", "/thinking", "/?"];
/// What the gateway's own `/help` does not know.
pub const HELP_HERE: &str = "/attach FILE       send a file with the next message (`/attach none`: no files)\n\
    y, s, n            answer the question that waits: once, for calls like it in this conversation (where offered), not\n\
    allow CODE         answer the question with this code, also one of another conversation; `allow CODE for 8h` (1h, 30d);\n\
                       `deny CODE [WORD...]`\n\
    /queue             show the messages that wait\n\
    /queue edit N      put message N back into the line; `/queue drop N` removes it\n\
    /queue add TEXT    a message that waits, also where Enter steers\n\
    /tool N            show all output of tool call N; `/tool` lists the calls\n\
    /thoughts on       show what the model thinks; `/thoughts off` hides it, `/thoughts N` shows all of thought N\n\
    Alt-Enter          another line of the same message, as a backslash at the end of a line and an open ``` do\n\
    /quit, /exit       leave\n\
    During an answer, commands act at once, and Esc or Ctrl-C stops the run. Messages wait in this chat and\n\
    are sent when it has ended; leaving before prints those that were not sent.\n\
    At a question Esc does nothing: the question stays open; Ctrl-C stops the run that asks.\n\
    To let the run see them at its next step: `gsv local-config set chat.enter steer`, or `/steer TEXT`.";
const LEVELS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

pub fn candidates(typed: &str) -> Vec<Pair> {
    if !typed.starts_with('/') || typed.contains('\n') {
        return Vec::new();
    }
    if let Some(level) = typed.strip_prefix("/think ") {
        let levels = LEVELS.iter().filter(|name| name.starts_with(level));
        return levels
            .map(|name| Pair {
                display: (*name).to_owned(),
                replacement: format!("/think {name}"),
            })
            .collect();
    }
    if let Some(word) = typed.strip_prefix("/thoughts ") {
        let words = ["on", "off"].into_iter().filter(|name| name.starts_with(word));
        return words
            .map(|name| Pair {
                display: name.to_owned(),
                replacement: format!("/thoughts {name}"),
            })
            .collect();
    }
    COMMANDS
        .iter()
        .filter(|(name, _)| name.starts_with(typed))
        .map(|(name, about)| Pair {
            display: format!("{:10} {about}", name.trim_end()),
            replacement: (*name).to_owned(),
        })
        .collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, _)| name.trim_end()).chain(ALIASES)
}

pub fn is_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    names().any(|name| name.eq_ignore_ascii_case(word))
}

/// Whether a text only asks for something that the gateway does at once, also during a run. `/status` before other words is a
/// part of their message.
pub fn acts_at_once(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let is_status = words.next().is_some_and(|word| word.eq_ignore_ascii_case("/status"));
    is_command(text) && !(is_status && words.next().is_some())
}

/// What is wrong with a text that looks like a command and is none. A path or a directive does not look like one.
pub fn unknown_command(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    let letters = word.strip_prefix('/')?;
    if letters.is_empty() || !letters.chars().all(|c| c.is_ascii_alphabetic()) || is_command(text) {
        return None;
    }
    let meant = nearest(word, names()).map(|meant| format!(" Did you mean `{meant}`?"));
    Some(format!("There is no command `{word}`.{}", meant.unwrap_or_default()))
}

/// Whether the message has another line: after a backslash at the end, or in an open code fence.
pub fn is_continued(input: &str) -> bool {
    let fences = input
        .lines()
        .filter(|line| line.trim_start().starts_with("```"))
        .count();
    fences % 2 == 1 || (input.ends_with('\\') && !input.ends_with("\\\\"))
}

/// The message to send: without the backslashes that continued a line.
pub fn message(input: &str) -> String {
    input.replace("\\\n", "\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_completed() {
        let names = |typed: &str| {
            candidates(typed)
                .into_iter()
                .map(|pair| pair.replacement)
                .collect::<Vec<_>>()
        };
        assert_eq!(names("/st"), ["/status", "/steer ", "/stop", "/stop all"]);
        assert_eq!(names("/think m"), ["/think minimal", "/think medium"]);
        assert_eq!(names("hello /st"), Vec::<String>::new());
        assert_eq!(names("/thoughts o"), ["/thoughts on", "/thoughts off"]);
        assert_eq!(names("/").len(), 19);
        assert!(is_command("/compact 5") && is_command("/help"));
        assert!(!is_command("/etc/hosts is wrong") && !is_command("hi /help"));
        assert!(acts_at_once("/stop all") && acts_at_once("/STOP") && acts_at_once("/status"));
        assert!(!acts_at_once("/status of the house?") && !acts_at_once("stop"));
    }

    #[test]
    fn f3_every_command_that_is_offered_exists() {
        let gateway = include_str!("../../../gateway/src/session/commands.ts");
        let help = gateway.split("HELP_TEXT = [").nth(1).unwrap();
        let help = help.split("].join").next().unwrap();
        let here = ["/queue", "/tool", "/thoughts", "/attach", "/quit", "/exit"];
        for (name, _) in COMMANDS {
            let name = name.trim_end();
            assert!(here.contains(&name) || help.contains(name), "{name}");
        }
    }

    #[test]
    fn a_backslash_or_an_open_fence_continues_the_message() {
        assert!(is_continued("one\\"));
        assert!(!is_continued("one\\\ntwo"));
        assert!(!is_continued("path\\\\"));
        assert!(is_continued("look:\n```sh\nls"));
        assert!(!is_continued("look:\n```sh\nls\n```"));
        assert_eq!(message("one\\\ntwo\n"), "one\ntwo");
    }
}
