//! The sandbox for commands: which paths a command may read and write, and how the system is told to enforce that.
//!
//! A pure core plans (profile, folders, what exists -> binds, grants and hidden paths); drivers enforce the plan with
//! bubblewrap, with Landlock and seccomp, or with `sandbox-exec` on macOS. A level counts only after its canaries ran.
//! Never: falls back to a weaker level, runs a command without the sandbox that was planned, decides which commands may run.
//!
//! Map: [`Plan`] says what a profile means; [`probe`] finds the tier that this machine really has; [`confine_main`] is the
//! program between the supervisor and the shell; [`canary_main`] tries to break out.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a test that can't go on has failed"
    )
)]

#[cfg(target_os = "linux")]
mod attempt;
mod bounded;
#[cfg(target_os = "linux")]
mod bridge;
mod bubblewrap;
mod caches;
mod canary;
mod check;
mod configured;
mod confine;
mod environment;
mod expected;
mod explain;
mod folder;
mod folders;
mod gate;
mod git;
mod git_config;
mod grants;
mod hidden;
mod homes;
mod hosts;
mod kind;
#[cfg(target_os = "linux")]
mod landlock;
mod look;
mod mount_table;
mod mounts;
mod names;
#[cfg(target_os = "linux")]
mod networks;
mod plan;
mod probe;
mod profile;
mod protect;
#[cfg(target_os = "linux")]
mod relative;
mod remembered;
mod search;
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod sockets;
mod users;

pub use caches::{DEFAULT_CACHES, prepare};
pub use canary::{Canary, canary_main};
pub use confine::{ConfineOptions, Confinement, Enforcer, PlanUse, confine_main};
pub use environment::{KEPT, environment, is_reserved};
pub use explain::{Escalation, MayAsk, explain};
pub use gate::GateFiles;
pub use hidden::credentials_of_others;
pub use hosts::{Destination, Host, HostRule, Hosts, Reach};
pub use look::{Disk, Kind, Look};
pub use plan::{Plan, Refused, Request};
pub use probe::{Finding, IN_EACH_TIER, Level, Program, Report, probe};
pub use profile::{Profile, Tier};
pub use remembered::Remembered;
pub use search::is_run_by_others;
pub use users::{homes_of_people, homes_of_user};
