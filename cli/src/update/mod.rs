//! `gsv update`: the program and its runtime are replaced by another release (rules UP8 to UP14). Which release there is (`manifest`), where it
//! comes from (`address`, `fetch`), whose it is (`signature`), how this program was installed (`install`), and the one step that replaces it.
//! Never touches the state of a gateway: `embedded/upgrade.rs` does.

pub mod address;
pub mod fetch;
pub mod install;
pub mod manifest;
pub mod seen;
pub mod signature;
pub mod unpack;
