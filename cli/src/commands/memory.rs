//! `gsv memory`: hands each command to the part that does it.

use super::context::Context;
use super::{long_term_memory, memory_review};
use crate::args::MemoryCommand;
use crate::exit::Outcome;

pub async fn run(context: &Context, command: MemoryCommand) -> Outcome {
    match command {
        MemoryCommand::Review(args) => memory_review::run(context, args).await,
        MemoryCommand::List(args) => long_term_memory::list(context, args).await,
        MemoryCommand::Search(args) => long_term_memory::search(context, args).await,
        MemoryCommand::Add(args) => long_term_memory::add(context, args).await,
        MemoryCommand::Forget(args) => long_term_memory::forget(context, args).await,
        MemoryCommand::Export(args) => long_term_memory::export(context, args).await,
    }
}
