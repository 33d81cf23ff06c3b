//! A shared value with weak references: the standard library's or, in a model, the same
//! with an atomic that the model's scheduler sees. (Loom's `Arc` has no weak references.)

#[cfg(any(loom, shuttle))]
pub(crate) use model::{CountedArc, WeakArc};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::{Arc as CountedArc, Weak as WeakArc};

#[cfg(any(loom, shuttle))]
mod model {
    use std::ops::Deref;
    use std::sync::{Arc, Weak};

    use crate::sync::primitives::{AtomicUsize, Ordering};

    /// The standard library's `Arc`. Each change of its count touches an atomic first:
    /// the scheduler may switch threads there, and orders them as the count does. It does
    /// not switch between the touch and the change.
    pub(crate) struct CountedArc<T> {
        /// Present until the drop.
        value: Option<Arc<T>>,
        touched: Arc<AtomicUsize>,
    }

    pub(crate) struct WeakArc<T> {
        value: Weak<T>,
        touched: Arc<AtomicUsize>,
    }

    impl<T> CountedArc<T> {
        pub(crate) fn new(value: T) -> CountedArc<T> {
            CountedArc {
                value: Some(Arc::new(value)),
                touched: Arc::new(AtomicUsize::new(0)),
            }
        }

        pub(crate) fn downgrade(this: &CountedArc<T>) -> WeakArc<T> {
            WeakArc {
                value: this.value.as_ref().map_or_else(Weak::new, Arc::downgrade),
                touched: Arc::clone(&this.touched),
            }
        }
    }

    impl<T> Deref for CountedArc<T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.value.as_ref().expect("present until the drop")
        }
    }

    impl<T> Clone for CountedArc<T> {
        fn clone(&self) -> CountedArc<T> {
            self.touched.fetch_add(1, Ordering::Relaxed);
            CountedArc {
                value: self.value.clone(),
                touched: Arc::clone(&self.touched),
            }
        }
    }

    impl<T> Drop for CountedArc<T> {
        fn drop(&mut self) {
            self.touched.fetch_add(1, Ordering::AcqRel);
            self.value = None;
        }
    }

    impl<T> WeakArc<T> {
        pub(crate) fn upgrade(&self) -> Option<CountedArc<T>> {
            self.touched.fetch_add(1, Ordering::Acquire);
            Some(CountedArc {
                value: Some(self.value.upgrade()?),
                touched: Arc::clone(&self.touched),
            })
        }
    }

    impl<T> Clone for WeakArc<T> {
        fn clone(&self) -> WeakArc<T> {
            WeakArc {
                value: self.value.clone(),
                touched: Arc::clone(&self.touched),
            }
        }
    }
}
