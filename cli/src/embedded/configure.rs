//! Writes what workerd is started with: `config.capnp`, and beside it the scripts and certificates that it embeds.

use super::bootstrap::Bootstrap;
use super::capnp::{self, Settings};
use super::channels::{self, Channel};
use super::layout::Layout;
use super::runtime::{self, Runtime};
use crate::exit::{OrFail, Outcome};
use crate::paths;

const NEXT: &str = "Check that the disk is not full.";

/// Answers with what is wrong with channels. The caller holds the turn lock.
pub fn write(layout: &Layout, runtime: &Runtime, port: u16, bootstrap: &Bootstrap) -> Outcome<Vec<String>> {
    runtime.copy_scripts(layout)?;
    let (channels, warnings) = channels::to_run(layout, runtime);
    for channel in &channels {
        embed(layout, runtime, channel)?;
    }
    let config = capnp::config(&Settings {
        manifest: &runtime.manifest,
        port,
        bootstrap_hash: &bootstrap.sha256,
        durable: &layout.durable(),
        workspace: &layout.workspace(),
        channels: &channels,
    })?;
    paths::write_private_file(&layout.config(), config.as_bytes())
        .or_fail(format_args!("write {}", layout.config().display()), NEXT)?;
    Ok(warnings)
}

fn embed(layout: &Layout, runtime: &Runtime, channel: &Channel) -> Outcome<()> {
    let script = layout.gateway().join(capnp::channel_script(&channel.name));
    runtime::copy(&runtime.channel_script(&channel.name), &script)?;
    for (number, certificate) in channel.certificates.iter().enumerate() {
        let path = layout.gateway().join(capnp::channel_certificate(&channel.name, number));
        paths::write_private_file(&path, certificate.as_bytes())
            .or_fail(format_args!("write {}", path.display()), NEXT)?;
    }
    Ok(())
}
