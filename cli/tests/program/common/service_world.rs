//! The gateway as a service, for tests.

use std::process::Command;

use super::runtime::Embedded;
use super::services::Services;
use super::{Run, finish, start};

/// The gateway of a test, and the service manager that the test plays.
pub struct World {
    pub gateway: Embedded,
    pub services: Services,
}

impl World {
    pub fn new() -> Self {
        let gateway = Embedded::new();
        gateway.home.write_config("");
        gateway.home.write_state("port", &gateway.port.to_string());
        let services = Services::new(&gateway.home);
        Self { gateway, services }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.gateway.command();
        command.args(args).envs(self.services.env());
        command
    }

    pub fn gsv(&self, args: &[&str]) -> Run {
        finish(start(&mut self.command(args)))
    }

    pub fn status(&self) -> serde_json::Value {
        self.gsv(&["service", "status", "--json"]).json()
    }

    pub fn count(&self) -> u64 {
        self.gateway.get("/count").unwrap()["n"].as_u64().unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.gsv(&["service", "uninstall"]);
    }
}
