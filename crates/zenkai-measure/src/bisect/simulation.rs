//! The search on simulated machines.
