//! Talking to the agent: a followed session (`conversation`), one message and its answer (`turn`), how it looks (`view`, `live`), and the prompt
//! (`interactive`). What is shown exactly once is decided in `assembler`, which is pure. Files that go with a message are `attach`'s.

pub mod assembler;
pub mod attach;
pub mod complete;
pub mod conversation;
pub mod interactive;
pub mod live;
pub mod stable;
pub mod turn;
pub mod view;
