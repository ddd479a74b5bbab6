//! `gsv up`, `down` and `status` with the real workerd and a tiny Worker.

mod login;
mod port;
mod restart;
mod resume;
mod start;
