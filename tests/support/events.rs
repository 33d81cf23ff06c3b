//! A subscriber of the crate `tracing` that keeps events as lines. The tests of `durable` use it
//! too.

use std::fmt::{Debug, Write};
use std::panic::panic_any;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// The events of some targets: `LEVEL message field=value …`, those within a span behind
/// `span field=value …: `.
#[derive(Clone)]
pub(crate) struct Told {
    targets: &'static [&'static str],
    /// A field whose value differs from run to run, and is left out.
    hidden: &'static str,
    /// Listens only to threads of this name, if there is one.
    only: Option<&'static str>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    lines: Vec<String>,
    /// The spans that were created, and those that are entered, by their number.
    spans: Vec<String>,
    entered: Vec<u64>,
}

impl Told {
    pub(crate) fn new(targets: &'static [&'static str], hidden: &'static str) -> Told {
        Told { targets, hidden, only: None, state: Arc::default() }
    }

    /// Listens only to threads of this name.
    #[allow(dead_code, reason = "not every test has threads")]
    pub(crate) fn only(mut self, thread: &'static str) -> Told {
        self.only = Some(thread);
        self
    }

    /// Returns the events of the calling thread while `act` runs.
    pub(crate) fn here(self, act: impl FnOnce()) -> Vec<String> {
        // Beside a single subscriber, `tracing` asks that of the thread which first meets an event,
        // and keeps the answer: none, if that thread has none.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(Told::new(&[], "")));
        with_default(self.clone(), act);
        self.take()
    }

    /// Takes the events so far.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.state().lines)
    }

    /// Returns the number of spans so far.
    #[allow(dead_code, reason = "not every crate promises that there are none")]
    pub(crate) fn spans(&self) -> usize {
        self.state().spans.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn line(&self) -> Line {
        Line { hidden: self.hidden, message: String::new(), fields: String::new() }
    }
}

impl Subscriber for Told {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.targets.contains(&metadata.target())
    }

    fn event(&self, event: &Event<'_>) {
        if self.only.is_some() && self.only != thread::current().name() {
            return;
        }
        let mut line = self.line();
        event.record(&mut line);
        let mut state = self.state();
        let span = state.entered.last();
        let span = span.map(|&span| format!("{}: ", state.spans[span as usize - 1]));
        let level = event.metadata().level();
        let span = span.unwrap_or_default();
        let told = format!("{span}{level} {}{}", line.message, line.fields);
        state.lines.push(told);
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = self.line();
        span.record(&mut line);
        let spans = &mut self.state().spans;
        spans.push(format!("{}{}", span.metadata().name(), line.fields));
        Id::from_u64(spans.len() as u64)
    }

    fn enter(&self, span: &Id) {
        self.state().entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let entered = self.state().entered.pop();
        assert_eq!(entered, Some(span.into_u64()));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}
}

struct Line {
    hidden: &'static str,
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.message, "{value:?}").unwrap(),
            name if name == self.hidden => {}
            name => write!(self.fields, " {name}={value:?}").unwrap(),
        }
    }
}

/// A subscriber that panics at each event, with what panics in its drop.
pub(crate) struct Panics;

pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose, in a drop");
    }
}

impl Subscriber for Panics {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, _: &Event<'_>) {
        panic_any(Bomb)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn enter(&self, _: &Id) {
        panic_any(Bomb)
    }

    fn exit(&self, _: &Id) {}

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}
}
