//! Writes the files that workerd starts with: `config.capnp`, and the scripts and certificates that it embeds.

use super::bootstrap::Bootstrap;
use super::capnp::{self, Clustered, Settings};
use super::channel_run::{self, Channel};
use super::cluster::{self, Cluster, Place};
use super::layout::Layout;
use super::listen::Listen;
use super::runtime::{self, Runtime};
use super::start_stopped;
use crate::exit::Outcome;
use crate::private_file;

/// Returns warnings about channels. The caller holds the command lock.
pub fn write(layout: &Layout, runtime: &Runtime, port: u16, bootstrap: &Bootstrap) -> Outcome<Vec<String>> {
    runtime.copy_scripts(layout)?;
    let start_stopped = start_stopped::id(layout)?;
    let (channels, warnings) = match start_stopped::warning(layout)? {
        // Their logins are those of another gateway.
        Some(warning) => (Vec::new(), vec![warning]),
        None => channel_run::to_run(layout, runtime),
    };
    for channel in &channels {
        embed(layout, runtime, channel)?;
    }
    let resume = start_stopped::resume_command(layout);
    let listen = Listen::read(layout)?;
    let cluster = match Cluster::read(layout)? {
        None => None,
        Some(cluster) => {
            cluster::write_key()?;
            Some((cluster, Place::read()?, cluster::keys_file()?))
        }
    };
    let config = capnp::config(&Settings {
        manifest: &runtime.manifest,
        port,
        bootstrap_hash: &bootstrap.sha256,
        durable: &layout.durable(),
        workspace: &layout.workspace(),
        modules: &layout.modules(),
        kv: &layout.kv(),
        channels: &channels,
        listen: listen.as_ref(),
        start_stopped: start_stopped.as_deref().map(|id| (id, resume.as_str())),
        cluster: cluster
            .as_ref()
            .map(|(cluster, place, keys)| Clustered { cluster, place, keys }),
    })?;
    private_file::write_changed(&layout.config(), config)?;
    Ok(warnings)
}

fn embed(layout: &Layout, runtime: &Runtime, channel: &Channel) -> Outcome<()> {
    let script = layout.gateway().join(capnp::channel_script(&channel.name));
    runtime::copy(&runtime.channel_script(&channel.name), &script)?;
    for (number, certificate) in channel.certificates.iter().enumerate() {
        let path = layout.gateway().join(capnp::channel_certificate(&channel.name, number));
        private_file::write_changed(&path, certificate)?;
    }
    Ok(())
}
