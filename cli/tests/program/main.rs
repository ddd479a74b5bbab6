//! Tests of the built program. They are one program themselves: each further one would be linked, and would wait for its last test alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test that can't go on has failed; a skipped one says so"
)]

mod common;

mod agent_command;
mod agent_definition;
mod agents;
mod asking;
mod backup;
mod channel_list;
mod channel_login;
mod channel_start;
mod chat;
mod completions;
mod config;
mod config_edit;
mod copy;
mod doctor;
mod embedded;
mod export;
mod gateway;
mod help;
mod hook;
mod job;
mod memory;
mod node;
mod node_sandbox;
mod node_service;
mod pair;
mod remote;
#[cfg(target_os = "linux")]
mod restored_copy;
mod service;
mod service_owner;
mod sessions;
mod setup;
mod skills;
mod status;
mod steering;
mod terminal;
mod transcripts;
mod undo;
mod why;
mod workspace;
