//! Undo of the file tools (rules UN1 to UN5): keeps what a file was before Write, Edit and Delete change it, and restores it.
//!
//! Map: [`index`] is the pure part, [`store`] keeps copies and records on the disk, [`keep`] is called by the tools before a
//! change, [`restore`] undoes calls, [`side_by_side`] runs the parts that wait for the disk. Never: keeps what commands (Bash)
//! change, or copies outside its own private folder.

mod change;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod hostile_tests;
mod index;
#[cfg(test)]
mod index_tests;
mod keep;
mod restore;
mod side_by_side;
mod store;
#[cfg(test)]
mod store_tests;

pub use change::{FileState, Unkept};
pub(crate) use keep::{Keeper, Kept, now_ms};
pub(crate) use restore::Undo;
pub use restore::{UndoAction, UndoOutcome, UndoReply, UndoRequest, UndoneFile};
pub(crate) use store::UndoStore;
