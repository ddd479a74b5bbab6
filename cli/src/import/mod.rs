//! Bringing an agent along from a folder of another program: what is taken (`scan`), and what is done with each file
//! (`plan`). Knows no gateway and prints nothing.

pub mod plan;
pub mod scan;
