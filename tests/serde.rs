//! The feature `serde`: ids, ticks, times and ledgers there and back.

#![cfg(not(any(loom, shuttle)))]

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tickwheel::{Engine, Ledger, Tick, Time, Timer, TimerId, Wheel};

/// The JSON of a value, which becomes the same value again.
fn json<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value);
    let tree = serde_json::to_value(value).unwrap();
    assert_eq!(serde_json::from_value::<T>(tree).unwrap(), *value);
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
    let at = Time::from_millis(3);
    let text = json(&Message::Cancel { id, at });
    assert!(text.contains("\"at\":3000000"), "{text}");
}

#[test]
fn text_that_is_no_id_is_an_error_that_says_so() {
    let error = |text| {
        serde_json::from_str::<TimerId>(text)
            .unwrap_err()
            .to_string()
    };
    assert!(error("\"0\"").starts_with("no timer has this id"));
    assert!(error("\"-1\"").starts_with("invalid digit"));
    assert!(error("\"\"").starts_with("cannot parse"));
    let too_large = format!("\"{}0\"", u128::MAX);
    assert!(error(&too_large).starts_with("number too large"));
    assert!(error("7").contains("a timer id, as a decimal number in a string"));
}

#[test]
fn ticks_and_times_are_numbers_and_a_ledger_is_its_fields() {
    assert_eq!(json(&Tick::MAX), u64::MAX.to_string());
    assert_eq!(json(&Time::from_nanos(7)), "7");
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    engine
        .schedule(Timer::after(std::time::Duration::MAX, ()))
        .unwrap();
    let ledger = engine.ledger();
    let text = json::<Ledger>(&ledger);
    assert!(text.starts_with("{\"accepted\":1,\"live\":1,"), "{text}");
}
