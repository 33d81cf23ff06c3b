//! Cells for payloads that stand outside of their entries, and the spare cells
//! that do not belong to any entry yet.

use alloc::alloc::{Layout, alloc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::black_box;
use core::mem::MaybeUninit;

use super::memory::ReserveError;

/// The memory of one payload.
pub(super) type Cell<T> = Box<MaybeUninit<T>>;

/// The number of cells freed at a time, limited because the caller may hold a lock.
const MOST_CELLS_TRIMMED: usize = 256;

/// The cells that do not belong to any entry.
pub(super) struct SpareCells<T>(Vec<Cell<T>>);

impl<T> SpareCells<T> {
    pub(super) fn new() -> SpareCells<T> {
        SpareCells(Vec::new())
    }

    /// Takes a spare cell, or a new one if there is none.
    pub(super) fn take(&mut self) -> Cell<T> {
        self.0.pop().unwrap_or_else(Box::new_uninit)
    }

    /// Ensures that there are at least `count` spare cells.
    ///
    /// Requests the memory of all cells in one piece before it allocates a cell. A
    /// system that promises more memory than it has would end the process later.
    pub(super) fn try_reserve(&mut self, count: usize) -> Result<(), ReserveError> {
        let missing = count.saturating_sub(self.0.len());
        Layout::array::<T>(missing).map_err(|_| ReserveError::TooMany)?;
        let mut probe = Vec::<T>::new();
        reserve_exact(&mut probe, missing)?;
        drop(black_box(probe));
        reserve_exact(&mut self.0, missing)?;
        for _ in 0..missing {
            self.0.push(try_new_cell().ok_or(ReserveError::NoMemory)?);
        }
        Ok(())
    }

    /// Frees up to a fixed number of cells. Returns whether there were fewer.
    pub(super) fn trim_some(&mut self) -> bool {
        let are_all = self.0.len() < MOST_CELLS_TRIMMED;
        self.0
            .truncate(self.0.len().saturating_sub(MOST_CELLS_TRIMMED));
        if are_all {
            self.0 = Vec::new();
        }
        are_all
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn reserve_exact<C>(cells: &mut Vec<C>, count: usize) -> Result<(), ReserveError> {
    let room = cells.try_reserve_exact(count);
    room.map_err(|_| ReserveError::NoMemory)
}

fn try_new_cell<T>() -> Option<Cell<T>> {
    if size_of::<T>() == 0 {
        return Some(Box::new_uninit());
    }
    // SAFETY: the layout is not of size zero.
    let cell: *mut MaybeUninit<T> = unsafe { alloc(Layout::new::<T>()) }.cast();
    // SAFETY: a pointer that is not null was allocated with the layout of the
    // box, and the box does not need an initialised value.
    (!cell.is_null()).then(|| unsafe { Box::from_raw(cell) })
}
