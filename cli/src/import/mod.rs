//! Imports an agent from a folder of another program: `scan` reads the folder, `plan` decides for each file. Knows no
//! gateway and prints nothing.

pub mod plan;
pub mod scan;
