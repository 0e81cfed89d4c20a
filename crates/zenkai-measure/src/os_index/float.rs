//! Double-precision arithmetic: linear equations solved by elimination, the kernel of LINPACK in small.

use std::{hint::black_box, io};

use super::{Bench, Test};

/// Unknowns: the matrix fits into the first-level cache of any server.
const SIZE: usize = 32;

pub(super) struct Float;

impl Test for Float {
    fn name(&self) -> &'static str {
        "float"
    }

    fn what(&self) -> &'static str {
        "systems of 32 linear equations solved"
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        bench.rate(|times| {
            for _ in 0..times {
                let solution = solve(black_box(system()));
                // The right side was made for a solution of ones.
                if solution.iter().any(|value| (value - 1.0).abs() > 1e-9) {
                    return Err(io::Error::other("float: wrong result; this machine cannot be trusted"));
                }
            }
            Ok(())
        })
    }
}

/// Rows of coefficients, the right side last.
type System = [[f64; SIZE + 1]; SIZE];

fn system() -> System {
    let mut rows = [[0.0; SIZE + 1]; SIZE];
    let mut state = 1_u32;
    for row in &mut rows {
        let mut sum = 0.0;
        for value in &mut row[..SIZE] {
            // Knuth's and Lewis's generator of 32 bits.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *value = f64::from(state) / f64::from(u32::MAX) - 0.5;
            sum += *value;
        }
        row[SIZE] = sum;
    }
    rows
}

/// Elimination with partial pivoting, then substitution from the last row up.
fn solve(mut rows: System) -> [f64; SIZE] {
    for column in 0..SIZE {
        let pivot = (column..SIZE).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()));
        rows.swap(column, pivot.unwrap_or(column));
        let (above, below) = rows.split_at_mut(column + 1);
        let top = &above[column];
        for row in below {
            let factor = row[column] / top[column];
            for (value, from) in row.iter_mut().zip(top).skip(column) {
                *value -= factor * from;
            }
        }
    }
    let mut solution = [0.0; SIZE];
    for index in (0..SIZE).rev() {
        let known: f64 = (index + 1..SIZE).map(|column| rows[index][column] * solution[column]).sum();
        solution[index] = (rows[index][SIZE] - known) / rows[index][index];
    }
    solution
}
