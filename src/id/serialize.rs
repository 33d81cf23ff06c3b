//! For the feature `serde`: an id as the number that it converts to.
//!
//! Text formats get the number as a string. JSON readers round large numbers, and
//! serde itself cannot buffer a `u128`, as tagged enums and flattened structs need.

use core::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::TimerId;

/// The number of [`u128::from`]: in decimal in a string if the format is human-readable,
/// as a `u128` otherwise.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl Serialize for TimerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = u128::from(*self);
        match serializer.is_human_readable() {
            true => serializer.collect_str(&number),
            false => serializer.serialize_u128(number),
        }
    }
}

/// Fails if no id has the number. Any other id is harmless: see [`TimerId`].
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl<'de> Deserialize<'de> for TimerId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimerId, D::Error> {
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_str(Decimal),
            false => {
                let number = u128::deserialize(deserializer)?;
                TimerId::try_from(number).map_err(D::Error::custom)
            }
        }
    }
}

struct Decimal;

impl Visitor<'_> for Decimal {
    type Value = TimerId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timer id, as a decimal number in a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TimerId, E> {
        let number = text.parse::<u128>().map_err(E::custom)?;
        TimerId::try_from(number).map_err(E::custom)
    }
}
