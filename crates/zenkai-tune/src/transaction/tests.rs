//! Tests of the whole life of a transaction.
