//! This machine: gateway and node as services, and `gsv` on the search path of the shell.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::dialogue::Dialogue;
use crate::args::{NodeInstall, ServiceCommand, Setup};
use crate::commands::context::Context;
use crate::commands::node::start_command;
use crate::commands::node_files::nodes_here;
use crate::commands::service::{this_program, with_installer};
use crate::commands::{node_service, service_gateway};
use crate::embedded::layout::Layout;
use crate::exit::{OrFail, Outcome};
use crate::output::Output;
use crate::paths;

/// Returns whether they are installed now.
pub fn install_services(context: &Context, dialogue: &Dialogue, args: &Setup) -> Outcome<bool> {
    let out = context.out;
    if args.no_services {
        return Ok(false);
    }
    if let Err(failure) = service_gateway::service().and_then(|service| service.check()) {
        if args.services {
            return Err(failure);
        }
        // The gateway runs already, so how to run it by hand is no help here.
        let reach = with_installer(|installer| installer.manager.check())
            .err()
            .unwrap_or(failure);
        let why = reach.message.trim_end_matches('.');
        out.aside(format!("No services are installed: {why}. {}", reach.next).trim_end());
        if nodes_here().is_empty() {
            out.aside(&format!(
                "The agent can use this machine while its node runs: `{}`.",
                start_command()
            ));
        }
        return Ok(false);
    }
    if !args.services
        && !dialogue.yes("Start the gateway and the node with this machine, and restart them after a crash?")
    {
        return Ok(false);
    }
    let quiet = Context {
        global: context.global.clone(),
        out: out.for_people(),
    };
    // Another machine's gateway is not this machine's to start.
    if super::is_here(context, &Layout::find()?)? {
        service_gateway::run(&quiet, ServiceCommand::Install)?;
    }
    node_service::install(&quiet, &NodeInstall::default())?;
    Ok(true)
}

/// Returns where the shell finds the program, or will find it.
pub fn link_program(out: Output) -> Outcome<Option<PathBuf>> {
    let program = PathBuf::from(this_program()?);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let is_this = |file: &Path| fs::canonicalize(file).is_ok_and(|file| file == program);
    if let Some(found) = folders
        .iter()
        .map(|folder| folder.join("gsv"))
        .find(|file| file.is_file())
    {
        if !is_this(&found) {
            out.warn(&format!("the shell finds another gsv first: {}", found.display()));
        }
        return Ok(Some(found));
    }
    let folder = paths::home()?.join(".local").join("bin");
    let link = folder.join("gsv");
    if !is_this(&link) {
        if link.exists() {
            out.warn(&format!(
                "{} is another program, so nothing was linked.",
                link.display()
            ));
            return Ok(None);
        }
        let next = "Or run `gsv setup --no-path`.";
        // A link whose program is gone is in the way.
        if link.is_symlink() {
            fs::remove_file(&link).or_fail(format_args!("replace {}", link.display()), next)?;
        }
        fs::create_dir_all(&folder).or_fail(format_args!("make {}", folder.display()), next)?;
        symlink(&program, &link).or_fail(format_args!("make the link {}", link.display()), next)?;
        out.note(&format!("{} is a link to this program.", link.display()));
    }
    if !folders.contains(&folder) {
        out.warn(&format!(
            "the shell does not look there yet. Add to its profile: export PATH={}:$PATH",
            paths::shell(&folder)
        ));
    }
    Ok(Some(link))
}
