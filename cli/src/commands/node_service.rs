//! `gsv node install` and its neighbours: the node as a service of this machine.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gsv_node::check_workspace;
use gsv_protocol::NoParams;
use gsv_protocol::methods::NodesList;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::context::{Context, block_on};
use super::node::{fatal, host_name, no_name, private_folders, workspace, workspace_of};
use super::node_files::{Running, known_here, log_file, nodes_here, running, state_dir};
use super::node_token::{Tokens, kind_of};
use super::service::{ByHand, Service, logs, wait_ready, with_installer};
use crate::args::{NodeInstall, NodeLogs, NodeService};
use crate::client::find_url;
use crate::config::{Config, Key, check_node_id};
use crate::embedded::log;
use crate::exit::{Failure, OrFail, Outcome};
use crate::node_policy;
use crate::paths;
use crate::service::{Kind, Manager, Part, Phase, Records, Spec, prefix};

/// For a glance at the gateway.
const ASK_WITHIN: Duration = Duration::from_secs(5);
/// For the way from this machine to the gateway.
const ONLINE_WITHIN: Duration = Duration::from_secs(10);

pub fn service(id: &str) -> Outcome<Service> {
    Ok(Service {
        kind: Kind::Node,
        name: format!("{}{id}", name_start()?),
        what: format!("the node `{id}`"),
        id: Some(id.to_owned()),
    })
}

fn name_start() -> Outcome<String> {
    Ok(format!("{}-node-", prefix()?))
}

/// The ids of the nodes that are installed.
pub fn installed() -> Outcome<Vec<String>> {
    let start = name_start()?;
    let names = Records::find()?.names();
    Ok(names
        .iter()
        .filter_map(|name| name.strip_prefix(&start))
        .map(str::to_owned)
        .collect())
}

/// The node that a command means.
pub fn id_of(args: &NodeService) -> Outcome<String> {
    if let Some(id) = &args.id {
        check_node_id(id)
            .map_err(|problem| Failure::usage(format!("`{id}` is not valid: {problem}."), "Give the id of a node."))?;
        return Ok(id.clone());
    }
    if let [only] = installed()?.as_slice() {
        return Ok(only.clone());
    }
    let known = Config::load()?.get(Key::NodeId).map(str::to_owned);
    known.or_else(host_name).ok_or_else(no_name)
}

pub fn install(context: &Context, args: &NodeInstall) -> Outcome {
    let out = context.out;
    node_policy::load()?;
    let mut config = Config::load()?;
    let id = match &args.id {
        Some(id) => id.clone(),
        None => id_of(&NodeService { id: None })?,
    };
    check_node_id(&id).map_err(|problem| {
        Failure::usage(
            format!("`{id}` is not valid: {problem}."),
            "Choose another name with --id.",
        )
    })?;
    let service = service(&id)?;
    service.check()?;
    let before = Records::find()?.get(&service.name).map(|record| record.spec.args);
    let before = before.unwrap_or_default();
    let workspace = choose_workspace(args.workspace.clone(), &id, &before, &config)?;
    let mut context = Context {
        global: context.global.clone(),
        out,
    };
    let address = &mut context.global.url;
    let is_given = address.as_ref().is_some_and(|given| !given.is_empty());
    if !is_given {
        *address = value_of(&before, "--url");
    }
    let has_address = is_given || address.is_some();
    let context = &context;
    let url = find_url(&context.global, &config)?;
    // Without it, the service follows the local config, and the gateway of this machine when its port changes.
    let names_url = has_address && config.get(Key::Url) != Some(&url);
    if names_url && url.contains(['?', '#']) {
        return Err(Failure::usage(
            "The address of a service can't have a query or a fragment, because other programs can read it.",
            "Give the address with --url, without `?` and `#` and what follows.",
        ));
    }
    let state_dir = state_dir(&id)?;
    let home = paths::state_dir()?;
    for dir in [&home, &home.join("node"), &state_dir] {
        paths::ensure_private_dir(dir)?;
    }
    store_token(context, &id, &url, &state_dir, &mut config)?;
    let mut words = vec!["node", "--service", "--id", &id, "--workspace", &workspace];
    if args.allow_outside {
        words.push("--allow-outside");
    }
    if names_url {
        words.extend(["--url", &url]);
    }
    let words = words.into_iter().map(str::to_owned).collect();
    let spec = Spec::new(Kind::Node, service.name.clone(), format!("GSV node {id}"), words)?;
    let part = Node::new(context, &id)?;
    let installed = with_installer(|installer| installer.install(&spec, &part))?;
    service.report_install(out, &installed);
    out.aside(&format!("The agent works in {workspace}."));
    if names_url && !is_given {
        out.aside(&format!(
            "It keeps the address of its last installation, {url}. To use that of the local config, run `gsv node uninstall` first."
        ));
    }
    if !args.allow_outside && before.iter().any(|arg| arg == "--allow-outside") {
        out.warn(
            "the file tools no longer use files outside the workspace: an installation does not keep --allow-outside",
        );
    }
    part.report_online(&service)
}

fn value_of(args: &[String], option: &str) -> Option<String> {
    let at = args.iter().position(|arg| arg == option)?;
    args.get(at + 1).cloned()
}

/// The one given, that of the current service (`before`), that of the last start, that of the local config, else `~/gsv`. Never the
/// current folder.
fn choose_workspace(given: Option<PathBuf>, id: &str, before: &[String], config: &Config) -> Outcome<String> {
    let of_service = || value_of(before, "--workspace").map(PathBuf::from);
    let home = paths::state_dir()?;
    let of_config = || config.get(Key::NodeWorkspace).map(PathBuf::from);
    let of_last_start = || workspace_of(&home.join("node").join(id));
    let chosen = given.or_else(of_service).or_else(of_last_start).or_else(of_config);
    let dir = if let Some(dir) = chosen {
        dir
    } else {
        let dir = paths::home()?.join("gsv");
        fs::create_dir_all(&dir).or_fail(
            format_args!("make the folder {}", dir.display()),
            "Name a folder for the agent's work: `gsv node install --workspace DIR`.",
        )?;
        dir
    };
    let dir = workspace(Some(dir))?;
    check_workspace(&dir, &private_folders()?).map_err(|error| fatal(&error))?;
    dir.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(
            format!("{} is not UTF-8, which a service needs.", dir.display()),
            "Choose another folder with --workspace DIR.",
        )
    })
}

/// The service has no `GSV_TOKEN`, so the node's own token must be stored.
fn store_token(context: &Context, id: &str, url: &str, state_dir: &Path, config: &mut Config) -> Outcome {
    let given = context.global.token.as_deref().filter(|token| !token.is_empty());
    if given.is_some_and(|token| kind_of(token) != Some("admin")) {
        return Err(Failure::usage(
            "A service does not get the token of this command, so it must be stored.",
            format!(
                "Run `gsv local-config set node.id {id}` and `gsv local-config set node.token -`, then install again without GSV_TOKEN."
            ),
        ));
    }
    block_on(async {
        let mut tokens = Tokens {
            id,
            url,
            is_ours: config.get(Key::Url).is_none_or(|known| known == url),
            config,
            file: state_dir.join("token.json"),
            command: "gsv node install",
        };
        tokens.find(context).await.map(drop)
    })
}

pub fn uninstall(context: &Context, args: &NodeService) -> Outcome {
    let id = id_of(args)?;
    let kept = format!("The gateway still knows the machine: `gsv node forget --id {id}` ends that too.");
    service(&id)?.uninstall(context.out, &kept)
}

pub fn start(context: &Context, args: &NodeService) -> Outcome {
    let (out, id) = (context.out, id_of(args)?);
    let service = service(&id)?;
    let part = Node::new(context, &id)?;
    let started = service.in_reach(with_installer(|installer| {
        installer.start(Kind::Node, &service.name, &part)
    }))?;
    let words = if started { "is started" } else { "runs already" };
    out.show(json!({ "alreadyRunning": !started }), |_| {
        out.note(&format!("The service of {} {words}.", service.what));
    });
    part.report_online(&service)
}

pub fn stop(context: &Context, args: &NodeService) -> Outcome {
    service(&id_of(args)?)?.stop(context.out)
}

pub fn status(context: &Context, args: &NodeService) -> Outcome {
    let id = status_id(args)?;
    service(&id)?.status(context.out, || {
        let pid = match running(&id)? {
            Running::No => return Ok(None),
            Running::Somewhere => None,
            Running::Process(pid) => Some(pid),
        };
        // With --json, the gateway is not asked.
        let gateway = (!context.out.json).then(|| connection(context, &id));
        let state = format!("running in a terminal (`gsv node --id {id}`)");
        Ok(Some(ByHand { state, pid, gateway }))
    })
}

/// The named node. Without a name: the usual one, or, when that does not run and no service is installed, the only one that runs.
fn status_id(args: &NodeService) -> Outcome<String> {
    let usual = id_of(args);
    if args.id.is_none()
        && installed()?.is_empty()
        && usual
            .as_ref()
            .is_ok_and(|id| running(id).is_ok_and(|runs| runs == Running::No))
        && let [(only, _)] = nodes_here().as_slice()
    {
        return Ok(only.clone());
    }
    usual
}

/// Whether the gateway has the node now, for people.
fn connection(context: &Context, id: &str) -> String {
    let mut online = false;
    let asked = block_on(async {
        let asked = timeout(ASK_WITHIN, context.ask::<NodesList>(NoParams {})).await;
        let listed = asked.unwrap_or_else(|_| Err(Failure::later("The gateway does not answer.", "")))?;
        let mut nodes = listed.nodes.iter();
        online = nodes.any(|node| node.online && node.node_id.as_str() == id);
        Ok(())
    });
    match asked {
        Ok(()) if online => "connected".to_owned(),
        Ok(()) => format!("not connected; see why: `gsv node logs --id {id}`"),
        Err(failure) => format!("not known: {}", failure.message),
    }
}

pub fn show_logs(context: &Context, args: &NodeLogs) -> Outcome {
    let id = id_of(&args.node)?;
    // A name that was given may be misspelt.
    if args.node.id.is_some() && !state_dir(&id)?.is_dir() && !service(&id)?.has_trace()? {
        let known = known_here(&paths::state_dir()?);
        let next = if known.is_empty() {
            format!("Start one: `gsv node --id {id}`.")
        } else {
            format!("Its nodes: {}.", known.join(", "))
        };
        return Err(Failure::failed(format!("This machine has no node `{id}`."), next));
    }
    let file = log_file(&id)?;
    logs(context.out, &file, &args.logs, in_words)
}

/// A line of the node's log: time, level, message, and what belongs to it.
fn in_words(line: &str) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(line) else {
        return line.to_owned();
    };
    let mut text = String::new();
    for (name, wide) in [("time", 0), ("level", 5), ("message", 0)] {
        let value = fields.remove(name).unwrap_or_default();
        let _ = write!(text, "{:wide$} ", value.as_str().unwrap_or_default());
    }
    for (name, value) in fields {
        let _ = write!(text, "{name}={value} ");
    }
    text.trim_end().to_owned()
}

struct Node<'a> {
    context: &'a Context,
    id: String,
    log: PathBuf,
    /// The end of the log before the start.
    mark: u64,
}

impl<'a> Node<'a> {
    fn new(context: &'a Context, id: &str) -> Outcome<Self> {
        let log = log_file(id)?;
        Ok(Self {
            context,
            id: id.to_owned(),
            mark: log::end(&log),
            log,
        })
    }

    /// Says whether the gateway has the node now. It connects by itself later, too; only a node that ended is a failure.
    fn report_online(&self, service: &Service) -> Outcome {
        let deadline = Instant::now() + ONLINE_WITHIN;
        loop {
            let mut online = false;
            let asked = block_on(async {
                let listed = self.context.ask::<NodesList>(NoParams {}).await?;
                online = listed
                    .nodes
                    .iter()
                    .any(|node| node.online && node.node_id.as_str() == self.id);
                Ok(())
            });
            if online {
                self.context.out.aside("It is connected to the gateway.");
                return Ok(());
            }
            let found = service.find()?;
            if found.state.phase == Phase::Failed {
                return Err(Failure::failed(
                    format!("The service of {} has ended.", service.what),
                    format!("See why: `gsv node logs --id {}`.", self.id),
                )
                .with_lines(
                    log::tail_since(&self.log, self.mark, 3)
                        .iter()
                        .map(|line| in_words(line))
                        .collect(),
                ));
            }
            if asked.is_err() || Instant::now() >= deadline {
                let why = asked
                    .err()
                    .map_or_else(String::new, |failure| format!(" {}", failure.message));
                self.context.out.aside(&format!(
                    "Whether it is connected is not known yet.{why} See `gsv nodes list` and `gsv node logs --id {}`.",
                    self.id
                ));
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Part for Node<'_> {
    /// A node in a terminal belongs to the person there, who may be watching its work.
    fn take_over(&self, service: Option<u32>) -> Outcome {
        let runs = running(&self.id)?;
        if runs.is(None) || runs.is(service) {
            return Ok(());
        }
        Err(Failure::failed(
            format!("The node `{}` already runs outside of the service.", self.id),
            runs.how_to_stop(),
        ))
    }

    fn wait(&self, manager: &dyn Manager) -> Outcome {
        wait_ready(manager, &service(&self.id)?, &self.log, self.mark, |pid| {
            pid.is_some() && running(&self.id).is_ok_and(|runs| runs.is(pid))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sv6_a_line_of_the_log_is_shown_in_words() {
        let line = r#"{"time":"2026-01-02T03:04:05Z","level":"warn","message":"no answer","callId":"c1","tries":2}"#;
        assert_eq!(
            in_words(line),
            "2026-01-02T03:04:05Z warn  no answer callId=\"c1\" tries=2"
        );
        assert_eq!(in_words("not JSON"), "not JSON");
    }
}
