//! Whether two arms differ, by how much, and when to stop asking.
