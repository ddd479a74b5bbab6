//! Services: a program of GSV that the service manager of this machine starts, restarts and stops. The files that the managers read are
//! made by pure functions (`systemd_unit`, `launchd_plist`); a `Manager` runs `systemctl` or `launchctl`. Knows nothing of the gateway
//! and the node.

mod find;
mod installer;
mod launchd;
mod launchd_plist;
mod log_file;
mod manager;
mod prefix;
mod records;
mod spec;
mod systemd;
mod systemd_unit;
mod tool;

pub use self::find::find;
pub use self::installer::{Found, Installed, Installer, Part, Removed, not_installed};
pub use self::log_file::{LogFile, MOST_LINES};
pub use self::manager::{Manager, Phase};
pub use self::prefix::prefix;
pub use self::records::Records;
pub use self::spec::{Kind, Spec};
