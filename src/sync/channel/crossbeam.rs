//! The messages of a channel, in crossbeam's.

use crossbeam_channel as cc;

pub(super) struct Messages<T> {
    sender: cc::Sender<T>,
    receiver: cc::Receiver<T>,
}

impl<T> Messages<T> {
    pub(super) fn new(capacity: usize) -> Messages<T> {
        let (sender, receiver) = cc::bounded(capacity);
        Messages { sender, receiver }
    }

    pub(super) fn push(&self, message: T) {
        // Never full, by the contract of `Channel`; never disconnected, because
        // both ends are here.
        let sent = self.sender.try_send(message);
        debug_assert!(sent.is_ok());
    }

    pub(super) fn pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}
