//! A thread that hears what other nodes announce.
//!
//! Nothing depends on it: a node asks the database every few seconds in any case. After each
//! connection it has the window loaded, because announcements may have been missed before.

use std::sync::Weak;
use std::thread;
use std::time::Duration;

use ::postgres::fallible_iterator::FallibleIterator;

use super::shared::Shared;
use crate::job::JobId;
use crate::store::{DueJob, News, StoreError};
use crate::wall::WallTime;

/// How often the thread looks whether its store is gone.
const LOOK: Duration = Duration::from_secs(1);
/// The pause before it connects again.
const PAUSE: Duration = Duration::from_millis(500);

/// Starts the thread, which ends within a second after the store.
pub(super) fn start(shared: Weak<Shared>) {
    let thread = thread::Builder::new().name("durable-listen".to_owned());
    // Without it the node hears of others a few seconds later.
    let _ = thread.spawn(move || {
        while shared.strong_count() > 0 {
            let _ = listen(&shared);
            thread::sleep(PAUSE);
        }
    });
}

/// Listens until the connection or the store ends.
fn listen(shared: &Weak<Shared>) -> Result<(), StoreError> {
    let Some(store) = shared.upgrade() else {
        return Ok(());
    };
    let mut client = store.connect(format!("LISTEN tickwheel_{}", store.schema))?;
    store.tell(News::Many);
    store.tell(News::Nodes);
    drop(store);
    while shared.strong_count() > 0 && !client.is_closed() {
        let heard = client.notifications().timeout_iter(LOOK).next();
        let (Ok(heard), Some(store)) = (heard, shared.upgrade()) else {
            break;
        };
        if let Some(heard) = heard {
            store.tell(news(heard.payload()));
        }
    }
    Ok(())
}

/// Reads an announcement. One that cannot be understood may say anything.
fn news(text: &str) -> News {
    let mut words = text.split(' ');
    match words.next() {
        Some("members") => News::Nodes,
        Some("placed") => {
            let jobs: Option<Vec<DueJob>> = words.map(due_job).collect();
            jobs.map_or(News::Many, News::Placed)
        }
        _ => News::Many,
    }
}

fn due_job(word: &str) -> Option<DueJob> {
    let numbers: Result<Vec<u64>, _> = word.split(':').map(str::parse).collect();
    let [number, born, version, due] = numbers.ok()?.try_into().ok()?;
    let time = WallTime::from_unix_micros;
    Some(DueJob {
        id: JobId::new(time(born), number),
        version,
        due: time(due),
        is_started: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_read() {
        let placed = news("placed 7:5:2:9");
        let time = WallTime::from_unix_micros;
        let job = DueJob {
            id: JobId::new(time(5), 7),
            version: 2,
            due: time(9),
            is_started: false,
        };
        assert_eq!(placed, News::Placed(vec![job]));
        assert_eq!(news("members"), News::Nodes);
        for strange in ["load", "", "placed 7:5", "placed x", "else"] {
            assert_eq!(news(strange), News::Many, "{strange}");
        }
    }
}
