//! The command line's own configuration. `keys` are the settings, `file` has `config.toml` and `gsv.toml`.

mod file;
mod keys;

pub use self::file::{Config, FormerLogin, OF_ONE_GATEWAY};
pub use self::keys::{Key, check_node_id, check_url};
