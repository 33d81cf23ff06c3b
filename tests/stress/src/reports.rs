//! What the engine says about timers that have ended, compared with what the
//! threads saw.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tickwheel::{CloseReason, Closed, Reports, TimerId};

use crate::board::Known;
use crate::book::Book;
use crate::record::{End, Firings, Record};

/// A closed report without its payload.
pub struct Report {
    id: TimerId,
    firings: u64,
    reason: CloseReason,
}

/// Reads reports until the engine is shut down.
pub fn read_all<T>(closed: Reports<T>) -> Vec<Report> {
    closed.map(without_payload).collect()
}

/// Reads what came after the word of the shutdown.
pub fn read_rest<T>(closed: &Reports<T>, into: &mut Vec<Report>) {
    while let Ok(report) = closed.try_recv() {
        into.push(without_payload(report));
    }
}

fn without_payload<T>(closed: Closed<T>) -> Report {
    Report {
        id: closed.id,
        firings: closed.firings,
        reason: closed.reason,
    }
}

/// Everybody's timers by id.
pub struct Index(HashMap<TimerId, Arc<Record>>);

impl Index {
    pub fn of(known: &[Known]) -> Index {
        let entry = |known: &Known| (known.id, Arc::clone(&known.record));
        Index(known.iter().map(entry).collect())
    }

    pub fn enter_reports(&self, reports: &[Report], all_told: bool, book: &Book) {
        for report in reports {
            let Some(record) = self.0.get(&report.id) else {
                book.broke(format!("a report on nobody's timer {:?}", report.id));
                continue;
            };
            record.reports.fetch_add(1, Ordering::AcqRel);
            let delivered = u64::from(record.delivered.load(Ordering::Acquire));
            if report.firings != delivered || !agrees(report.reason, record, all_told) {
                let (reason, firings) = (report.reason, report.firings);
                book.broke(format!("reported {reason:?} after {firings}: {record:?}"));
            }
        }
    }

    /// Enters what a shutdown returned.
    pub fn enter_shut_down<T>(&self, closed: &[Closed<T>], book: &Book) {
        for closed in closed {
            match self.0.get(&closed.id) {
                Some(record) => record.ends(End::ShutDown, book),
                None => book.broke(format!("nobody's timer was shut down: {:?}", closed.id)),
            }
        }
    }
}

fn agrees(reason: CloseReason, record: &Record, all_told: bool) -> bool {
    match (reason, record.end()) {
        (CloseReason::Completed, End::Delivered) => true,
        (CloseReason::Cancelled, End::Cancelled) => true,
        (CloseReason::ShutDown, End::ShutDown) => true,
        // Dropping the last handle does not return the live timers.
        (CloseReason::ShutDown, _) => !all_told,
        // Ended while a worker held it: only the report says so.
        (_, End::No) => record.asked.firings != Firings::Once,
        (CloseReason::Failed, End::Delivered) => true,
        _ => false,
    }
}
