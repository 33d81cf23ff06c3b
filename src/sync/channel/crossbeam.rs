//! The messages of a channel, stored in crossbeam's channel.

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
        // The channel has room, by the contract of `Channel`, and is connected,
        // because both of its ends are here.
        let sent = self.sender.try_send(message);
        debug_assert!(sent.is_ok());
    }

    pub(super) fn pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }
}
