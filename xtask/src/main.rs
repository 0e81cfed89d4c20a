//! zenkai.
fn main() {}
