//! The command line as data: every command, flag and help text, one file per noun. Reads no file and runs nothing.

#![allow(
    clippy::doc_markdown,
    reason = "these comments are the help texts, which show backticks as they are"
)]

mod agent;
mod approval;
mod backup;
mod channel;
mod cli;
mod copy;
mod cron;
mod deploy;
mod events;
mod foreign;
mod gateway;
mod heartbeat;
mod hook;
mod invite;
mod job;
mod memory;
mod model;
mod move_home;
mod nodes;
mod notifications;
mod parse;
mod service;
mod session;
mod skills;
mod update;
mod values;
mod workspace;

pub use self::agent::{AgentCommand, AgentDelete, AgentImport, AgentNew, AgentUndefine, PromptCommand, PromptShow};
pub use self::approval::{Allow, ApprovalCommand, Hold, Question};
pub use self::backup::{Backup, BackupCommand, BackupSchedule, BackupVerify, PassphraseFrom, Restore};
pub use self::channel::{
    ChannelAccount, ChannelCommand, ChannelLogin, ChannelStart, PairApprove, PairCommand, PairWho,
};
pub use self::cli::{Cli, Command, Global};
pub use self::copy::Copy;
pub use self::cron::{CronAdd, CronCommand, CronEdit, How as CronHow, When as CronWhen};
pub use self::deploy::{DeployAccount, DeployCommand, DeployDown, DeployLogs, DeployRollback, DeployUp};
pub use self::events::{EventsCommand, EventsList};
pub use self::gateway::{
    Audit, ConfigCommand, LocalConfigCommand, Node, NodeCommand, NodeSandbox, Place, TokenCommand, TokenCreate,
    ToolCall, ToolsCommand, Up,
};
pub use self::heartbeat::{HeartbeatCommand, HeartbeatOn};
pub use self::hook::{HookAdd, HookCommand, HookTest};
pub use self::invite::{Invite, InviteCommand, Join};
pub use self::job::{JobCommand, JobSubmit};
pub use self::memory::{MemoryAdd, MemoryCommand, MemoryExport, MemoryForget, MemoryList, MemoryReview, MemorySearch};
pub use self::model::{ModelCommand, ProviderCommand, Setup, person, time_zone};
pub use self::move_home::{DeployExport, DeployImport};
pub use self::nodes::{NodeForget, NodesCommand};
pub use self::notifications::{Notifications, NotificationsCommand};
pub use self::parse::try_parse_from;
pub use self::service::{NodeEnd, NodeInstall, NodeLogs, NodeService, ServiceCommand, ServiceLogs};
pub use self::session::{
    ApproveCalls, Chat, ExportFormat, Resume, Search, SessionCommand, SessionDelete, SessionExport, SessionSet,
    SessionShow, Stop, Undo,
};
pub use self::skills::{SkillApprove, SkillInstall, SkillName, SkillRemove, SkillStatus, SkillsCommand};
pub use self::update::Update;
pub use self::workspace::{
    WorkspaceCat, WorkspaceCommand, WorkspaceDiff, WorkspaceFile, WorkspaceGet, WorkspacePut, WorkspaceRestore,
    WorkspaceRm,
};
