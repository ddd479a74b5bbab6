//! Whether an address is that of this machine's own gateway: one answer for every command that shows, saves or starts it. Asks no gateway.

use super::local::Local;
use crate::client::{is_here, is_only_node};
use crate::config::Config;
use crate::embedded::layout::Layout;

/// Not the address of an invitation, whose certificate it has, nor of a gateway of which this machine is only a node.
pub fn is_own(local: &Local, layout: &Layout, url: &str, config: Option<&Config>) -> bool {
    is_here(url) && local.is_at(layout, url) && !config.is_some_and(|config| is_only_node(url, config))
}
