//! What the machine does while something runs, read again and again at little cost.
