//! What `gsv doctor` checks of the services on this machine: the gateway's, and those of nodes.

use super::doctor_report::Report;
use super::service::{Service, words};
use super::{node_service, service_gateway};
use crate::exit::Outcome;
use crate::service::Phase;

const NAME: &str = "service";

pub fn check_services(report: &mut Report) {
    let services = service_gateway::service().and_then(|gateway| {
        let nodes = node_service::installed()?
            .into_iter()
            .map(|id| node_service::service(&id));
        Ok((gateway, nodes.collect::<Outcome<Vec<_>>>()?))
    });
    let Ok((gateway, nodes)) = services else { return };
    for service in [gateway].iter().chain(&nodes) {
        check(report, service);
    }
}

fn check(report: &mut Report, service: &Service) {
    let Some(found) = service.glance() else {
        return;
    };
    let found = match found {
        Ok(found) => found,
        Err(failure) => return report.failure(NAME, failure),
    };
    let says = format!("{}: {}", service.what, words(&found));
    let next = |verb: &str| format!("`{}`", service.command(verb));
    match found.state.phase {
        Phase::Failed => report.fail(
            NAME,
            says,
            format!("See why: {}. Then {}.", next("logs"), next("start")),
        ),
        Phase::Stopped => report.warn(NAME, says, format!("Start it: {}.", next("start"))),
        Phase::Running | Phase::Starting => match (found.old.first(), found.lingers) {
            (Some(reason), _) => report.warn(NAME, format!("{says}: {reason}"), format!("{}.", next("install"))),
            (None, Some(false)) => report.warn(
                NAME,
                format!("{says}, but only while you are logged in"),
                format!("{} explains it.", next("status")),
            ),
            (None, _) => report.ok(NAME, says),
        },
    }
}
