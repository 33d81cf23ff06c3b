//! A binary heap. It cannot remove from its middle, so a cancelled timer is only
//! marked, and stays until its deadline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::rival::Timers;

/// A deadline, the number of the timer, and its cell.
type Entry = Reverse<(u64, u64, usize)>;

pub struct Heap {
    entries: BinaryHeap<Entry>,
    /// The number of the live timer in each cell, or 0, and its payload.
    cells: Vec<(u64, u64)>,
    free: Vec<usize>,
    number: u64,
}

impl Timers for Heap {
    const NAME: &'static str = "BinaryHeap, lazy";
    const ENDLESS: bool = true;
    type Id = usize;

    fn new() -> Heap {
        Heap {
            entries: BinaryHeap::new(),
            cells: Vec::new(),
            free: Vec::new(),
            number: 0,
        }
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> usize {
        self.number += 1;
        let tenant = (self.number, payload);
        let cell = match self.free.pop() {
            Some(cell) => {
                self.cells[cell] = tenant;
                cell
            }
            None => {
                self.cells.push(tenant);
                self.cells.len() - 1
            }
        };
        self.entries.push(Reverse((deadline, self.number, cell)));
        cell
    }

    fn cancel(&mut self, id: usize) {
        self.cells[id].0 = 0;
        self.free.push(id);
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        while let Some(&Reverse((deadline, number, cell))) = self.entries.peek() {
            if deadline > now {
                return;
            }
            self.entries.pop();
            if self.cells[cell].0 == number {
                fired.push(self.cells[cell].1);
                self.cancel(cell);
            }
        }
    }
}
