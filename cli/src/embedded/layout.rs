//! The paths of the embedded gateway's files in the state folder.

use std::path::{Path, PathBuf};

use super::services;
use crate::exit::Outcome;
use crate::paths;

/// Below the gateway's folder, which is workerd's working folder.
pub const REMOTE_SOCKET: &str = "remote.sock";

#[derive(Debug, Clone)]
pub struct Layout {
    pub home: PathBuf,
}

impl Layout {
    pub fn find() -> Outcome<Self> {
        Ok(Self {
            home: paths::state_dir()?,
        })
    }

    pub fn gateway(&self) -> PathBuf {
        self.home.join("gateway")
    }

    /// The agent's files, as plain files: `agents/main/SOUL.md` can be edited with any editor.
    pub fn workspace(&self) -> PathBuf {
        self.home.join("workspace")
    }

    pub fn durable(&self) -> PathBuf {
        self.gateway().join("do")
    }

    /// Large values of the key-value store (`services.rs`).
    pub fn kv(&self) -> PathBuf {
        self.services().join(services::KV_FOLDER)
    }

    fn services(&self) -> PathBuf {
        self.gateway().join("services")
    }

    /// What the gateway loads on first use.
    pub fn modules(&self) -> PathBuf {
        self.gateway().join("modules")
    }

    pub fn config(&self) -> PathBuf {
        self.gateway().join("config.capnp")
    }

    /// The same as workerd compiles it (`compiled.rs`).
    pub fn compiled_config(&self) -> PathBuf {
        self.gateway().join("config.bin")
    }

    /// Names the input of the compiled configuration.
    pub fn compiled_from(&self) -> PathBuf {
        self.gateway().join("config.bin.from")
    }

    pub fn state(&self) -> PathBuf {
        self.gateway().join("state.json")
    }

    pub fn bootstrap(&self) -> PathBuf {
        self.gateway().join("bootstrap.json")
    }

    /// Which key the stored secrets are sealed with: marks of keys, no key (`sealing_key.rs`).
    pub fn sealing_mark(&self) -> PathBuf {
        self.gateway().join("sealed-by")
    }

    /// The channels that run, and their settings (`channels.rs`).
    pub fn channels(&self) -> PathBuf {
        self.gateway().join("channels.json")
    }

    /// The port of the last start.
    pub fn port(&self) -> PathBuf {
        self.gateway().join("port")
    }

    /// The version that was ready last (`upgrade.rs`).
    pub fn last_start(&self) -> PathBuf {
        self.gateway().join("last-start")
    }

    /// The state as it was before the first start of another version.
    pub fn before_upgrade(&self) -> PathBuf {
        self.gateway().join("before-upgrade")
    }

    /// That copy, after an earlier version was started on the state of a later one.
    pub fn before_rollback(&self) -> PathBuf {
        self.gateway().join("before-rollback")
    }

    /// The state that `gsv update --rollback --with-state` has replaced, from 1. Nothing overwrites or removes it.
    pub fn rolled_back(&self, number: u32) -> PathBuf {
        self.gateway().join(format!("rolled-back-{number}"))
    }

    /// The state of a first start that failed, for a diagnosis.
    pub fn failed_upgrade(&self) -> PathBuf {
        self.gateway().join("failed-upgrade")
    }

    /// The mark of a restored copy (`start_stopped.rs`).
    pub fn start_stopped(&self) -> PathBuf {
        self.gateway().join("start-stopped")
    }

    /// Where the gateway listens for other machines (`listen.rs`).
    pub fn listen(&self) -> PathBuf {
        self.gateway().join("listen.json")
    }

    /// The cluster that this home belongs to (`cluster.rs`).
    pub fn cluster(&self) -> PathBuf {
        self.gateway().join("cluster.json")
    }

    /// The certificate for other machines, with its key.
    pub fn certificate(&self) -> PathBuf {
        self.gateway().join("tls.pem")
    }

    /// Where workerd takes the connections of other machines, after their TLS has ended.
    pub fn remote_socket(&self) -> PathBuf {
        self.gateway().join(REMOTE_SOCKET)
    }

    pub fn log(&self) -> PathBuf {
        self.gateway().join("gateway.log")
    }

    /// Held by the supervisor while it runs.
    pub fn supervisor_lock(&self) -> PathBuf {
        self.gateway().join("supervisor.lock")
    }

    /// Held by a command that starts, stops or changes the gateway, so that one of them works at a time. The name of the file is older.
    pub fn command_lock(&self) -> PathBuf {
        self.gateway().join("turn.lock")
    }

    /// Makes all folders, private to this user.
    pub fn ensure(&self) -> Outcome<()> {
        for dir in [
            &self.home,
            &self.gateway(),
            &self.workspace(),
            &self.durable(),
            &self.modules(),
            &self.services(),
            &self.kv(),
        ] {
            paths::ensure_private_dir(dir)?;
        }
        Ok(())
    }

    pub fn exists(&self) -> bool {
        Path::new(&self.gateway()).is_dir()
    }
}
