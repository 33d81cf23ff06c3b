//! A cache for each core, without a limit on its size.
//!
//! Any number of caches may hold a line to read it. A cache that writes a line is the
//! only one that holds it. (In terms of MESI, *modified* and *exclusive* are one state
//! here: they cost the same to reach and to leave.)

use std::collections::HashMap;

/// The length of a cache line.
const LINE: u64 = 64;

/// The largest number of cores.
const CORES: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
}

/// The cores whose caches hold a line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Holders([u64; CORES / 64]);

impl Holders {
    fn only(core: usize) -> Holders {
        let mut holders = Holders::default();
        holders.add(core);
        holders
    }

    fn add(&mut self, core: usize) {
        self.0[core / 64] |= 1 << (core % 64);
    }

    fn has(&self, core: usize) -> bool {
        self.0[core / 64] & 1 << (core % 64) != 0
    }
}

/// The state of all caches.
#[derive(Default)]
pub struct Caches {
    /// The lines that any core has accessed.
    lines: HashMap<u64, Holders>,
    /// The lines that the current call has accessed, and whether it has written them.
    call: HashMap<u64, bool>,
}

/// The sums over all calls of a kind.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Count {
    pub calls: usize,
    /// Different lines of each call.
    pub lines: usize,
    /// Different lines of each call that it writes.
    pub written: usize,
    /// Lines that came from another cache, or had to be removed from others.
    pub transfers: usize,
}

impl Count {
    /// Returns the lines of other cores for each of a number of calls.
    pub fn transfers_per(&self, calls: usize) -> f64 {
        self.transfers as f64 / calls.max(1) as f64
    }
}

impl Caches {
    /// Plays an access to `size` bytes from `address` on. Returns the number of lines that
    /// came from another cache, or had to be removed from others.
    pub fn access(&mut self, core: usize, address: u64, size: u64, access: Access) -> usize {
        let last = (address + size.max(1) - 1) / LINE;
        (address / LINE..=last)
            .filter(|&line| self.access_line(core, line, access))
            .count()
    }

    fn access_line(&mut self, core: usize, line: u64, access: Access) -> bool {
        *self.call.entry(line).or_default() |= access == Access::Write;
        // The first access of all comes from memory.
        let holders = self.lines.entry(line).or_insert(Holders::only(core));
        let (is_hit, then) = match access {
            Access::Read => {
                let mut then = *holders;
                then.add(core);
                (holders.has(core), then)
            }
            Access::Write => (*holders == Holders::only(core), Holders::only(core)),
        };
        *holders = then;
        !is_hit
    }

    /// Ends a call, and adds its lines to `count`.
    pub fn end_call(&mut self, count: &mut Count) {
        count.calls += 1;
        count.lines += self.call.len();
        count.written += self.call.values().filter(|&&written| written).count();
        self.call.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Access::{Read, Write};
    use super::*;

    /// Plays accesses of cores to one line, and returns the transfers of each.
    fn played(accesses: &[(usize, Access)]) -> Vec<usize> {
        let mut caches = Caches::default();
        let play = |&(core, access): &(usize, Access)| caches.access(core, 640, 8, access);
        accesses.iter().map(play).collect()
    }

    #[test]
    fn a_line_of_one_core_stays_there() {
        let accesses = [(0, Read), (0, Write), (0, Write), (0, Read)];
        assert_eq!(played(&accesses), [0, 0, 0, 0]);
    }

    #[test]
    fn a_line_that_two_cores_write_moves_each_time() {
        let accesses = [(0, Write), (1, Write), (0, Write), (0, Write), (1, Write)];
        assert_eq!(played(&accesses), [0, 1, 1, 0, 1]);
    }

    #[test]
    fn readers_share_a_line_until_one_core_writes_it() {
        let accesses = [
            (0, Write),
            (1, Read),
            (2, Read),
            (1, Read),
            // One removal, however many others hold the line.
            (2, Write),
            (2, Write),
            (0, Read),
            (200, Read),
        ];
        assert_eq!(played(&accesses), [0, 1, 1, 0, 1, 0, 1, 1]);
    }

    #[test]
    fn a_reader_that_shares_a_line_pays_to_write_it() {
        assert_eq!(
            played(&[(0, Read), (1, Read), (0, Write), (0, Write)]),
            [0, 1, 1, 0]
        );
    }

    #[test]
    fn an_access_across_the_end_of_a_line_concerns_both() {
        let mut caches = Caches::default();
        assert_eq!(caches.access(0, 60, 8, Write), 0);
        assert_eq!(caches.access(1, 60, 8, Read), 2);
        assert_eq!(caches.access(1, 64, 4, Write), 1);
    }

    #[test]
    fn a_call_counts_each_of_its_lines_once() {
        let mut caches = Caches::default();
        let mut count = Count::default();
        for _ in 0..2 {
            caches.access(0, 0, 8, Read);
            caches.access(0, 8, 8, Write);
            caches.access(0, 64, 8, Read);
            caches.end_call(&mut count);
        }
        let expected = Count {
            calls: 2,
            lines: 4,
            written: 2,
            transfers: 0,
        };
        assert_eq!(count, expected);
    }
}
