//! A closure of a type that the engine does not know, in five words.
//!
//! A closure of up to four words stands in the value itself, and thus in the entry of its
//! timer. A larger or over-aligned closure has a box. The fifth word points to the
//! functions for the closure's type.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

/// The number of words for a closure. With the pointer and the links of an entry, they
/// make a cache line.
const WORDS: usize = 4;

/// A closure that stands here, or the pointer to its box.
type Words = MaybeUninit<[usize; WORDS]>;

/// Makes the argument of a call, for the closures that look at it.
pub(super) type Make<'a, A> = &'a mut dyn FnMut() -> A;

/// A closure that is consumed by its call.
pub(super) trait RunOnce<A>: Send + Sized + 'static {
    fn run(self, argument: Make<'_, A>);
}

/// A closure that can be called any number of times.
pub(super) trait RunEach<A>: Send + Sized + 'static {
    fn run(&mut self, argument: Make<'_, A>);
}

/// A closure that may look at an `A`, or the empty place of one that was consumed.
pub(super) struct Closure<A: 'static> {
    words: Words,
    methods: &'static Methods<A>,
    /// A closure may not be shared by threads, and may break when it panics.
    _contains: PhantomData<Box<dyn Send>>,
}

/// The functions for one type of closure.
struct Methods<A: 'static> {
    /// # Safety
    /// The words hold a closure of this type. If the call consumes it, they hold none
    /// afterwards.
    run: unsafe fn(&mut Words, Make<'_, A>),
    /// `None` if there is nothing to drop.
    ///
    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    drop: Option<unsafe fn(&mut Words)>,
    kind: Kind,
    type_id: fn() -> TypeId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A call leaves the closure as it is.
    Lasting,
    /// A call consumes the closure.
    Consumed,
    /// There is no closure.
    Empty,
}

impl<A> Methods<A> {
    /// The functions for no closure.
    const EMPTY: &'static Methods<A> =
        &Methods { run: |_, _| (), drop: None, kind: Kind::Empty, type_id: TypeId::of::<()> };
}

/// The functions for the closures of type `C`.
struct Of<C>(C);

impl<C: Send + 'static> Of<C> {
    const IS_INLINE: bool =
        size_of::<C>() <= size_of::<Words>() && align_of::<C>() <= align_of::<Words>();

    const DROP: Option<unsafe fn(&mut Words)> =
        if Self::IS_INLINE && !std::mem::needs_drop::<C>() { None } else { Some(Self::drop) };

    fn store(closure: C) -> Words {
        let mut words = Words::uninit();
        if Self::IS_INLINE {
            // SAFETY: the closure fits into the words, by size and by alignment.
            unsafe { words.as_mut_ptr().cast::<C>().write(closure) }
        } else {
            let boxed = Box::into_raw(Box::new(closure));
            // SAFETY: a pointer fits into the words.
            unsafe { words.as_mut_ptr().cast::<*mut C>().write(boxed) }
        }
        words
    }

    /// # Safety
    /// The words hold a closure of this type.
    unsafe fn place(words: &mut Words) -> *mut C {
        if Self::IS_INLINE {
            return words.as_mut_ptr().cast();
        }
        // SAFETY: `store` wrote the pointer of a box.
        unsafe { *words.as_mut_ptr().cast::<*mut C>() }
    }

    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    unsafe fn take(words: &mut Words) -> C {
        // SAFETY: the caller promises it.
        let place = unsafe { Self::place(words) };
        if Self::IS_INLINE {
            // SAFETY: the closure is there, and the caller does not use it there again.
            return unsafe { place.read() };
        }
        // SAFETY: `store` made the box, and the caller does not use it again.
        *unsafe { Box::from_raw(place) }
    }

    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    unsafe fn drop(words: &mut Words) {
        // SAFETY: the caller promises it.
        let place = unsafe { Self::place(words) };
        if Self::IS_INLINE {
            // SAFETY: the closure is there, and the caller does not use it there again.
            unsafe { ptr::drop_in_place(place) }
        } else {
            // SAFETY: `store` made the box, and the caller does not use it again.
            drop(unsafe { Box::from_raw(place) });
        }
    }

    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    unsafe fn run_once<A>(words: &mut Words, argument: Make<'_, A>)
    where
        C: RunOnce<A>,
    {
        // SAFETY: the caller promises it.
        unsafe { Self::take(words) }.run(argument);
    }

    /// # Safety
    /// The words hold a closure of this type.
    unsafe fn run_each<A>(words: &mut Words, argument: Make<'_, A>)
    where
        C: RunEach<A>,
    {
        // SAFETY: the closure is there, and `words` is borrowed for the call.
        unsafe { &mut *Self::place(words) }.run(argument);
    }
}

impl<A> Closure<A> {
    #[inline]
    pub(super) fn once<C: RunOnce<A>>(closure: C) -> Closure<A> {
        Closure::new(
            closure,
            const {
                &Methods {
                    run: Of::<C>::run_once::<A>,
                    drop: Of::<C>::DROP,
                    kind: Kind::Consumed,
                    type_id: TypeId::of::<C>,
                }
            },
        )
    }

    #[inline]
    pub(super) fn each<C: RunEach<A>>(closure: C) -> Closure<A> {
        Closure::new(
            closure,
            const {
                &Methods {
                    run: Of::<C>::run_each::<A>,
                    drop: Of::<C>::DROP,
                    kind: Kind::Lasting,
                    type_id: TypeId::of::<C>,
                }
            },
        )
    }

    #[inline]
    fn new<C: Send + 'static>(closure: C, methods: &'static Methods<A>) -> Closure<A> {
        Closure { words: Of::store(closure), methods, _contains: PhantomData }
    }

    /// Calls the closure. Does nothing if a call has consumed it.
    pub(super) fn run(&mut self, argument: Make<'_, A>) {
        let run = self.methods.run;
        if self.methods.kind == Kind::Consumed {
            // Empty before the call, which may panic.
            self.methods = Methods::EMPTY;
        }
        // SAFETY: the words hold a closure of the type of these methods, or none if the
        // methods are those of no closure. From now on, they hold none if it is consumed.
        unsafe { run(&mut self.words, argument) };
    }

    /// Whether a call has consumed the closure.
    pub(super) fn is_empty(&self) -> bool {
        self.methods.kind == Kind::Empty
    }

    /// Returns the closure, which has not been consumed, or `None` if it is of another
    /// type.
    pub(super) fn into_inner<C: Send + 'static>(self) -> Option<C> {
        let is_of_it = (self.methods.type_id)() == TypeId::of::<C>();
        is_of_it.then(|| {
            let mut closure = ManuallyDrop::new(self);
            // SAFETY: the type is the one that the words were made from, and `closure` is
            // not dropped.
            unsafe { Of::<C>::take(&mut closure.words) }
        })
    }
}

impl<A> Drop for Closure<A> {
    #[inline]
    fn drop(&mut self) {
        if let Some(drop) = self.methods.drop {
            // SAFETY: the words hold a closure of the type of these methods, and are not
            // used again.
            unsafe { drop(&mut self.words) };
        }
    }
}
