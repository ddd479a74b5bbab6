//! `gsv service`: the gateway as a service of this machine.

use std::path::PathBuf;

use serde_json::json;

use super::context::Context;
use super::local::Local;
use super::login_report::{report_listening, report_login};
use super::service::{ByHand, Service, logs, wait_ready, with_installer};
use crate::args::ServiceCommand;
use crate::embedded::layout::Layout;
use crate::embedded::state::Phase;
use crate::embedded::up::{self, Preparation, Request};
use crate::embedded::{down, log, url};
use crate::exit::Outcome;
use crate::output::Output;
use crate::service::{Kind, Manager, Part, Spec, prefix};

pub fn service() -> Outcome<Service> {
    Ok(Service {
        kind: Kind::Gateway,
        name: format!("{}-gateway", prefix()?),
        what: "the gateway".into(),
        id: None,
    })
}

pub fn run(context: &Context, command: ServiceCommand) -> Outcome {
    let out = context.out;
    let layout = Layout::find()?;
    let service = service()?;
    match command {
        ServiceCommand::Install => install(out, &service, layout),
        ServiceCommand::Uninstall => {
            let kept = format!(
                "Everything in {} stays. Start the gateway by hand with `gsv up`.",
                layout.home.display()
            );
            service.uninstall(out, &kept)
        }
        ServiceCommand::Start => {
            let started = service.in_reach(start(out, layout))?;
            let words = if started { "is started" } else { "runs already" };
            out.show(json!({ "alreadyRunning": !started }), |_| {
                out.note(&format!("The service of the gateway {words}."));
            });
            Ok(())
        }
        ServiceCommand::Stop => service.stop(out),
        ServiceCommand::Status => service.status(out, || Ok(by_hand(&Local::look(&layout)))),
        ServiceCommand::Logs(args) => logs(out, &layout.log(), &args, str::to_owned),
    }
}

/// The gateway that runs outside of a service.
fn by_hand(found: &Local) -> Option<ByHand> {
    let (state, pid) = match found {
        Local::Running(state) => (
            format!("{}, started by `gsv up`", found.words()),
            Some(state.supervisor_pid),
        ),
        Local::Orphaned(_) | Local::Unknown | Local::LeftOver(_) => (found.words(), None),
        Local::Stopped | Local::GaveUp(_) => return None,
    };
    let gateway = None;
    Some(ByHand { state, pid, gateway })
}

/// Returns whether it was started now. Its gateway answers then.
pub fn start(out: Output, layout: Layout) -> Outcome<bool> {
    let name = service()?.name;
    let part = Gateway::new(out, layout);
    with_installer(|installer| installer.start(Kind::Gateway, &name, &part))
}

fn install(out: Output, service: &Service, layout: Layout) -> Outcome {
    service.check()?;
    // Before anything is changed: the runtime, the port and the first token, whose secret goes to no log.
    if let Preparation::Ready(prepared) = up::prepare(&layout, &Request::default())? {
        let (started, _command_lock) = prepared.into_started();
        started.warnings.iter().for_each(|warning| out.warn(warning));
        report_login(out, &url(started.port), &started.login);
        report_listening(out, started.listening.as_ref());
    }
    let args = vec!["up".to_owned(), "--service".to_owned()];
    let spec = Spec::new(Kind::Gateway, service.name.clone(), "GSV gateway".into(), args)?;
    let part = Gateway::new(out, layout);
    let installed = with_installer(|installer| installer.install(&spec, &part))?;
    service.report_install(out, &installed);
    Ok(())
}

struct Gateway {
    out: Output,
    layout: Layout,
    log: PathBuf,
    /// The end of the log before the start.
    mark: u64,
}

impl Gateway {
    fn new(out: Output, layout: Layout) -> Self {
        let log = layout.log();
        Self {
            out,
            mark: log::end(&log),
            log,
            layout,
        }
    }
}

impl Part for Gateway {
    fn take_over(&self, service: Option<u32>) -> Outcome {
        let runs = match Local::look(&self.layout) {
            Local::Running(state) | Local::Orphaned(state) => Some(state.supervisor_pid),
            Local::Unknown | Local::LeftOver(_) => None,
            Local::Stopped | Local::GaveUp(_) => return Ok(()),
        };
        if runs.is_some() && runs == service {
            return Ok(());
        }
        if down::stop(&self.layout)? {
            self.out
                .note("The gateway that ran outside of the service is stopped; the service goes on with it.");
        }
        Ok(())
    }

    fn wait(&self, manager: &dyn Manager) -> Outcome {
        wait_ready(manager, &service()?, &self.log, self.mark, |pid| {
            matches!(
                Local::look(&self.layout),
                Local::Running(state) if state.phase == Phase::Ready && pid.is_none_or(|pid| pid == state.supervisor_pid)
            )
        })
    }
}
