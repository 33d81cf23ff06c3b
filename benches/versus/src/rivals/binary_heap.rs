//! A binary heap. It can't remove from its middle, so a cancelled timer is only marked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::rival::{Rival, Timers};

#[derive(Default)]
pub struct Heap {
    /// A deadline, the number of the timer, and its cell.
    entries: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// The number of the live timer in each cell, or 0, and its payload.
    cells: Vec<(u64, u64)>,
    free: Vec<usize>,
    number: u64,
}

impl Rival for Heap {
    const NAME: &'static str = "BinaryHeap";
    const LESS: &'static str = "a stale id reaches another timer; a cancelled timer keeps memory \
        until its deadline";
}

impl Timers for Heap {
    type Id = usize;

    fn new() -> Heap {
        Heap::default()
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> usize {
        self.number += 1;
        let cell = self.free.pop().unwrap_or_else(|| {
            self.cells.push((0, 0));
            self.cells.len() - 1
        });
        self.cells[cell] = (self.number, payload);
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
