//! Completions that know what the gateway has: agents, conversations, models, settings and machines. The shell's script calls
//! `gsv --complete -- WORDS...` with the words up to the cursor; each answer is one line. It is silent on every failure, waits a
//! moment only, starts nothing, and prints no value of a setting. `wanted` is pure.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use gsv_protocol::NoParams;
use gsv_protocol::methods::{AgentsList, ConfigGet, ModelsList, NodesList, SessionsList};
use gsv_protocol::types::{ConfigGetParams, ModelsListParams, SessionsListParams};
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::args::Cli;
use crate::client::{Account, Client};
use crate::commands::node_files::known_here;
use crate::config::{Config, Key};
use crate::paths::state_dir;

/// Before the words, as the first argument of the program.
pub const COMPLETE: &str = "--complete";
/// A key that is pressed must not wait longer.
const PATIENCE: Duration = Duration::from_millis(300);
const MOST: usize = 200;
const DEPTH: usize = 6;

/// What a word stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Agent,
    Session,
    Model,
    Setting,
    LocalSetting,
    Node,
    /// A node of this machine.
    OwnNode,
    /// An end of `gsv cp`: `NAME:`, or a file of this machine.
    Place,
}

/// The last word, and what it stands for.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    pub kind: Kind,
    /// What is typed of it.
    pub typed: String,
    /// What stands before it in the same word: `--agent=`.
    pub before: String,
}

pub fn main(words: impl Iterator<Item = OsString>) {
    let words: Vec<String> = words
        .skip_while(|word| word == "--")
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // A command of the agent learns nothing of the owner's gateway (SB18).
    if gsv_node::is_inside_command() {
        return;
    }
    let Some(wanted) = wanted(&Cli::command(), &words) else {
        return;
    };
    let lines: String = answers(&wanted).into_iter().map(|line| line + "\n").collect();
    crate::output::Output::detect(false).piece(&lines);
}

fn answers(wanted: &Wanted) -> Vec<String> {
    offered(names(wanted), wanted)
}

/// The names that begin with what is typed. Only names that mean the same in every shell, because none is quoted, and in every command: a name
/// that begins with `-` would be an option.
fn offered(mut names: Vec<String>, wanted: &Wanted) -> Vec<String> {
    let is_plain = |name: &String| {
        !name.is_empty()
            && !name.starts_with('-')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._:/@+%-".contains(c))
    };
    names.retain(|name| name.starts_with(&wanted.typed) && is_plain(name));
    names.sort();
    names.dedup();
    names.truncate(MOST);
    names.iter().map(|name| format!("{}{name}", wanted.before)).collect()
}

fn names(wanted: &Wanted) -> Vec<String> {
    if wanted.kind == Kind::LocalSetting {
        return Key::ALL.iter().map(|key| key.name().to_owned()).collect();
    }
    if wanted.kind == Kind::OwnNode {
        return own_nodes();
    }
    if wanted.kind == Kind::Place && wanted.typed.contains(['/', ':']) {
        // The shell completes paths.
        return Vec::new();
    }
    let mut local = if wanted.kind == Kind::Place {
        files()
    } else {
        Vec::new()
    };
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let asked = async { timeout(PATIENCE, ask(wanted)).await.ok().flatten() };
    local.extend(runtime.block_on(asked).unwrap_or_default());
    local
}

fn own_nodes() -> Vec<String> {
    let of_config = Config::load()
        .ok()
        .and_then(|config| config.get(Key::NodeId).map(str::to_owned));
    let known = state_dir().map(|home| known_here(&home)).unwrap_or_default();
    known.into_iter().chain(of_config).collect()
}

/// Of the current folder, which the machines must not hide.
fn files() -> Vec<String> {
    let entries = std::fs::read_dir(".").into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let end = if entry.path().is_dir() { "/" } else { "" };
        format!("{}{end}", entry.file_name().to_string_lossy())
    };
    entries.map(name).filter(|name| !name.starts_with('.')).collect()
}

async fn ask(wanted: &Wanted) -> Option<Vec<String>> {
    let global = crate::args::Global {
        url: std::env::var("GSV_URL").ok(),
        token: std::env::var("GSV_TOKEN").ok(),
        json: false,
    };
    let account = Account::find(&global, &Config::load().ok()?).ok()?;
    let client = account.connect().await.ok()?;
    match wanted.kind {
        Kind::Agent => {
            let found = client.call::<AgentsList>(NoParams {}).await.ok()?;
            Some(found.agents.into_iter().map(|agent| agent.agent_id.0).collect())
        }
        Kind::Session => {
            let params = SessionsListParams {
                offset: None,
                limit: u8::try_from(MOST).ok(),
                agent_id: None,
            };
            let found = client.call::<SessionsList>(params).await.ok()?;
            Some(
                found
                    .sessions
                    .into_iter()
                    .map(|session| session.session_key.into_inner())
                    .collect(),
            )
        }
        Kind::Model => models(&client, &wanted.typed).await,
        Kind::Setting => {
            let found = client.call::<ConfigGet>(ConfigGetParams { path: None }).await.ok()?;
            let mut paths = Vec::new();
            settings(&found.config?, "", 0, &mut paths);
            Some(paths)
        }
        Kind::Node => {
            let found = client.call::<NodesList>(NoParams {}).await.ok()?;
            Some(found.nodes.into_iter().map(|node| node.node_id.0).collect())
        }
        Kind::Place => {
            let found = client.call::<NodesList>(NoParams {}).await.ok()?;
            let machines = found.nodes.into_iter().map(|node| format!("{}:", node.node_id.0));
            Some(machines.chain(["gsv:".to_owned()]).collect())
        }
        Kind::LocalSetting | Kind::OwnNode => None,
    }
}

/// First the providers, then the models of the one that is typed.
async fn models(client: &Client, typed: &str) -> Option<Vec<String>> {
    let provider = typed.split_once('/').map(|(provider, _)| provider.to_owned());
    let params = ModelsListParams {
        provider: provider.clone(),
    };
    let found = client.call::<ModelsList>(params).await.ok()?;
    Some(match provider {
        None => found
            .providers?
            .into_iter()
            .map(|entry| format!("{}/", entry.provider))
            .collect(),
        Some(provider) => found
            .models?
            .into_iter()
            .map(|model| format!("{provider}/{}", model.id))
            .collect(),
    })
}

/// The paths of a configuration, without values.
fn settings(value: &Value, path: &str, depth: usize, paths: &mut Vec<String>) {
    let Some(fields) = value.as_object().filter(|_| depth < DEPTH) else {
        return;
    };
    for (name, value) in fields {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        settings(value, &path, depth + 1, paths);
        paths.push(path);
    }
}

/// The script of a shell, which asks this program first and then what the script knows itself.
pub fn with_hook(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{BASH}"),
        // The file is the body of `_gsv` until it has run once: the names come before its last lines, which call `_gsv`.
        Shell::Zsh => match script.split_once(ZSH_END) {
            Some((begin, end)) => format!("{begin}{ZSH}{ZSH_END}{end}"),
            None => script.to_owned(),
        },
        Shell::Fish => format!("{script}{FISH}"),
        _ => script.to_owned(),
    }
}
const BASH: &str = r#"
_gsv_names() {
    local line="${COMP_LINE:0:COMP_POINT}" IFS=$' \t\n' words found prefix cur
    read -r -a words <<<"$line"
    case "$line" in *[[:space:]]) words+=("") ;; esac
    cur="${words[${#words[@]}-1]}"
    IFS=$'\n'
    found=($(command gsv --complete -- "${words[@]}" 2>/dev/null))
    if [ "${#found[@]}" -eq 0 ]; then
        IFS=$' \t\n'
        _gsv "$@"
        return
    fi
    # A colon and an equals sign end a word of the shell.
    prefix=""
    case "$cur" in *[:=]*) prefix="${cur%"${cur##*[:=]}"}" ;; esac
    COMPREPLY=("${found[@]#"$prefix"}")
    case "${COMPREPLY[0]}" in */ | *:) compopt -o nospace 2>/dev/null ;; esac
}
complete -F _gsv_names -o bashdefault -o default gsv
"#;
const ZSH_END: &str = "if [ \"$funcstack[1]\" = \"_gsv\" ]";
const ZSH: &str = r#"_gsv_names() {
    local -a found
    found=(${(f)"$(command gsv --complete -- "${(@)words[1,CURRENT-1]}" "$PREFIX" 2>/dev/null)"})
    if (( ${#found} )); then
        # What goes on gets no space.
        local -a whole begun
        whole=(${found:#*[/:]}) begun=(${(M)found:#*[/:]})
        (( ${#whole} )) && compadd -a whole
        (( ${#begun} )) && compadd -S '' -a begun
    else
        _gsv_known "$@"
    fi
}
functions[_gsv_known]="${functions[_gsv]}"
_gsv() { _gsv_names "$@" }

"#;
const FISH: &str = r#"
complete -c gsv -k -a "(command gsv --complete -- (commandline -opc) (commandline -ct) 2>/dev/null)"
"#;

/// What the last word stands for. None: nothing that the gateway has.
pub fn wanted(root: &Command, words: &[String]) -> Option<Wanted> {
    let (typed, before) = words.get(1..)?.split_last()?;
    let mut command = root;
    let mut path: Vec<&str> = Vec::new();
    let mut position = 0;
    let mut value_of: Option<&Arg> = None;
    let mut only_values = false;
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        if only_values || !word.starts_with('-') || word == "-" {
            let child = if only_values {
                None
            } else {
                command.find_subcommand(word)
            };
            if let Some(child) = child {
                command = child;
                path.push(child.get_name());
                position = 0;
            } else {
                position += 1;
            }
        } else if word == "--" {
            only_values = true;
        } else {
            value_of = option(root, command, word).filter(|arg| takes_value(arg) && !word.contains('='));
        }
    }
    let wanted = |arg: &Arg, typed: &str, before: &str| {
        Some(Wanted {
            kind: kind(&path, arg)?,
            typed: typed.to_owned(),
            before: before.to_owned(),
        })
    };
    if let Some(arg) = value_of {
        return wanted(arg, typed, "");
    }
    if let Some((name, value)) = typed
        .split_once('=')
        .filter(|_| typed.starts_with("--") && !only_values)
    {
        return wanted(option(root, command, name)?, value, &format!("{name}="));
    }
    if typed.starts_with('-') && !only_values {
        return None;
    }
    let positionals: Vec<&Arg> = command.get_positionals().collect();
    wanted(positionals.get(position)?, typed, "")
}

fn option<'a>(root: &'a Command, command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or_default();
    let all = || command.get_arguments().chain(root.get_arguments());
    if let Some(long) = name.strip_prefix("--") {
        return all().find(|arg| arg.get_long() == Some(long));
    }
    let short = name.strip_prefix('-')?;
    let mut letters = short.chars();
    let (letter, None) = (letters.next()?, letters.next()) else {
        return None;
    };
    all().find(|arg| arg.get_short() == Some(letter))
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// What an argument of a command stands for.
fn kind(path: &[&str], arg: &Arg) -> Option<Kind> {
    let id = arg.get_id().as_str();
    match (path, id) {
        (["config", "get" | "set" | "unset"], "path") => Some(Kind::Setting),
        (["local-config", ..], "key") => Some(Kind::LocalSetting),
        (["nodes", "forget"], "id") => Some(Kind::Node),
        (["node", ..], "id") => Some(Kind::OwnNode),
        (["cp"], "source" | "destination") => Some(Kind::Place),
        (["agent", "show" | "edit" | "undefine" | "delete"], "id") | (_, "agent") => Some(Kind::Agent),
        (["session", "show" | "export"], "target") | (["session", ..] | ["stop"], "key") | (_, "session") => {
            Some(Kind::Session)
        }
        (["model", "use" | "test"] | ["session", "set"] | ["agent", "new"], "model") => Some(Kind::Model),
        _ => None,
    }
}

#[cfg(test)]
#[path = "complete_tests.rs"]
mod tests;
