//! Two threads that wake each other by turns through a futex: each round trip is two wake-ups.

use std::{
    io,
    sync::{Condvar, Mutex, PoisonError},
    thread,
};

use super::{Bench, Test};

pub(super) struct Wake;

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    Ours,
    Theirs,
    Over,
}

impl Test for Wake {
    fn name(&self) -> &'static str {
        "wake"
    }

    fn what(&self) -> &'static str {
        "round trips between two threads that sleep in between"
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        let turn = Mutex::new(Turn::Ours);
        let changed = Condvar::new();
        // Passes the turn on and waits for it to come back.
        let pass = |to: Turn, wait: Turn| {
            let mut now = turn.lock().unwrap_or_else(PoisonError::into_inner);
            if to != wait {
                *now = to;
                changed.notify_one();
            }
            while *now != wait && *now != Turn::Over {
                now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
            }
            *now
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut now = pass(Turn::Theirs, Turn::Theirs);
                while now != Turn::Over {
                    now = pass(Turn::Ours, Turn::Theirs);
                }
            });
            let rate = bench.rate(|times| {
                (0..times).for_each(|_| {
                    pass(Turn::Theirs, Turn::Ours);
                });
                Ok(())
            });
            pass(Turn::Over, Turn::Ours);
            rate
        })
    }
}
