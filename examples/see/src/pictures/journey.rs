//! One timer on its way through an engine.

use std::time::Duration;

use tickwheel::{Engine, Time, Timer};

use crate::draw::levels::{self, Row};
use crate::draw::pen::Ink;
use crate::pictures::Picture;
use crate::pictures::sheet::Sheet;

const DUE: u64 = 229;

/// Returns the levels, with a dot for the timer.
fn rows<T>(engine: &Engine<T>) -> Vec<Row> {
    let mut rows = levels::rows(&engine.inspect(2), None, engine.current_tick(), 2);
    let slots = rows.iter_mut().flat_map(|row| &mut row.slots);
    for slot in slots.filter(|slot| slot.timers > 0) {
        slot.names = Some("●".to_owned());
    }
    rows
}

fn draw<T>(sheet: &mut Sheet, engine: &Engine<T>, what: &str, text: &str, is_taken: bool) {
    let tick = engine.current_tick().0;
    sheet.caption(&format!("{what}, tick {tick} = {tick:03o}"), text);
    sheet.wheel(&rows(engine));
    let is_ready = !engine.queue(0).is_empty();
    let mut pen = sheet.lines(1);
    let dot = |is_here| {
        if is_here {
            ("●", Ink::Ready)
        } else {
            ("·", Ink::Faint)
        }
    };
    for (x, place, is_here) in [(10, "ready list", is_ready), (30, "worker", is_taken)] {
        pen.text(x, 0, place, Ink::Text);
        let (sign, ink) = dot(is_here);
        pen.text(x + place.len() as u16 + 1, 0, sign, ink);
    }
    let next = engine.inspect(0).shards[0].next_wakeup;
    let visit = next.map_or("no visit".to_owned(), |next| {
        format!("next visit at tick {}", next.0)
    });
    pen.text(44, 0, visit, Ink::Faint);
    sheet.gap();
}

pub(super) fn journey() -> Picture {
    let builder = Engine::builder().wheel_size(8).shards(1);
    let (engine, clock) = builder
        .start_virtual()
        .expect("an engine with these settings starts");
    let mut sheet = Sheet::new();
    // Another timer brings the ticker here at tick 1. Without it, the ticker would sleep
    // until tick 229, and both cascades would take place then.
    for due in [1, DUE] {
        let timer = Timer::after(Duration::from_millis(due), ());
        let scheduled = engine.schedule(timer);
        scheduled.expect("an engine without a bound accepts");
    }
    clock.advance_to(Time::from_millis(1));
    drop(engine.queue(0).try_recv().expect("the other timer is due"));
    draw(
        &mut sheet,
        &engine,
        "schedule",
        "due at 229 = 345: level 2, slot 3",
        false,
    );
    clock.advance_to(Time::from_millis(192));
    draw(
        &mut sheet,
        &engine,
        "cascade",
        "the turn of slot 3: to level 1, slot 4",
        false,
    );
    clock.advance_to(Time::from_millis(224));
    draw(
        &mut sheet,
        &engine,
        "cascade",
        "the turn of slot 4: to level 0, slot 5",
        false,
    );
    clock.advance_to(Time::from_millis(DUE));
    draw(
        &mut sheet,
        &engine,
        "expire",
        "to the ready list; a cancel still wins",
        false,
    );
    let taken = engine.queue(0).try_recv().expect("one timer is due");
    draw(
        &mut sheet,
        &engine,
        "take",
        "a worker has the payload; the entry is free",
        true,
    );
    drop(taken);
    Picture {
        name: "journey",
        title: "One timer's journey",
        description: "Three levels of eight slots at five moments. A timer that is due at tick 229 is \
            scheduled into level 2, cascades to level 1 and to level 0, expires into the ready \
            list, and is taken by a worker.",
        buffer: sheet.finish(),
    }
}
