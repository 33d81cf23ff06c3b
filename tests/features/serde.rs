//! Ids, ticks, times and ledgers there and back.

use std::fmt::Debug;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tickwheel::{Engine, Tick, Time, Timer, TimerId, Wheel};

/// The JSON of a value, which becomes the same value again, as its CBOR does.
fn json<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value);
    let mut binary = Vec::new();
    ciborium::into_writer(value, &mut binary).unwrap();
    assert_eq!(ciborium::from_reader::<T, _>(&*binary).unwrap(), *value);
    text
}

#[test]
fn an_id_is_its_number_in_a_string() {
    let mut wheel = Wheel::new(64);
    let id = wheel.schedule_at(Tick(5), "lease");
    let text = json(&id);
    assert_eq!(text, format!("\"{}\"", u128::from(id)));
    let read: TimerId = serde_json::from_str(&text).unwrap();
    assert_eq!(wheel.cancel(read), Some("lease"));
    let last = TimerId::try_from(u128::MAX).unwrap();
    assert_eq!(json(&last), format!("\"{}\"", u128::MAX));
}

/// Serde buffers the fields of such an enum.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind")]
enum Message {
    Cancel { id: TimerId, at: Time },
}

#[test]
fn an_id_can_stand_in_a_tagged_enum() {
    let id = TimerId::try_from(u128::MAX).unwrap();
    let text = json(&Message::Cancel { id, at: Time::from_millis(3) });
    assert!(text.contains("\"at\":3000000"), "{text}");
}

#[test]
fn text_that_is_no_id_is_an_error_that_says_so() {
    let too_large = format!("\"{}0\"", u128::MAX);
    for (text, error) in [
        ("\"0\"", "no timer has this id"),
        ("\"-1\"", "invalid digit"),
        ("\"\"", "cannot parse"),
        (&too_large, "number too large"),
        ("7", "a timer id, as a decimal number in a string"),
    ] {
        let read = serde_json::from_str::<TimerId>(text);
        let said = read.unwrap_err().to_string();
        assert!(said.contains(error), "{said}");
    }
}

#[test]
fn ticks_and_times_are_numbers_and_a_ledger_is_its_fields() {
    assert_eq!(json(&Tick::MAX), u64::MAX.to_string());
    assert_eq!(json(&Time::from_nanos(7)), "7");
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    engine.schedule(Timer::after(Duration::MAX, ())).unwrap();
    let text = json(&engine.ledger());
    assert!(text.starts_with("{\"accepted\":1,\"live\":1,"), "{text}");
}
