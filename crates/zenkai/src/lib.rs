//! The program as a library, so that tests call it without a process: see [`cli::run`].

pub mod cli;
