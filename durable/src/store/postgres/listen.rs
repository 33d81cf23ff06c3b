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
            if let Some(store) = shared.upgrade() {
                store.member().is_listening = false;
            }
            thread::sleep(PAUSE);
        }
    });
}

/// Listens until the connection or the store ends.
fn listen(shared: &Weak<Shared>) -> Result<(), StoreError> {
    let Some(store) = shared.upgrade() else {
        return Ok(());
    };
    let mut client = store.connect(&format!("LISTEN tickwheel_{}", store.schema))?;
    {
        let mut member = store.member();
        (member.is_listening, member.is_stale) = (true, true);
    }
    store.tell(News::Many);
    store.tell(News::Nodes);
    drop(store);
    while shared.strong_count() > 0 && !client.is_closed() {
        let heard = client.notifications().timeout_iter(LOOK).next();
        let (Ok(heard), Some(store)) = (heard, shared.upgrade()) else {
            break;
        };
        if let Some(heard) = heard {
            let has = |shard| store.member().has.contains(&shard);
            let news = news(heard.payload(), has);
            store.member().is_stale |= news == News::Nodes;
            store.tell(news);
        }
    }
    Ok(())
}

/// Reads an announcement. One that cannot be understood may say anything.
fn news(text: &str, has: impl Fn(u64) -> bool) -> News {
    let mut words = text.split(' ');
    match words.next() {
        Some("members") => News::Nodes,
        Some("placed") => {
            let jobs: Option<Vec<(DueJob, u64)>> = words.map(due_job).collect();
            let here = |jobs: Vec<_>| jobs.into_iter().filter(|(_, shard)| has(*shard));
            let here = |jobs| here(jobs).map(|(job, _)| job).collect();
            jobs.map_or(News::Many, |jobs| News::Placed(here(jobs)))
        }
        _ => News::Many,
    }
}

/// Reads a job and its shard.
fn due_job(word: &str) -> Option<(DueJob, u64)> {
    let numbers: Result<Vec<u64>, _> = word.split(':').map(str::parse).collect();
    let [number, born, version, due, shard] = numbers.ok()?.try_into().ok()?;
    let time = WallTime::from_unix_micros;
    let job = DueJob {
        id: JobId::new(time(born), number),
        version,
        due: time(due),
        is_interrupted: false,
        is_here: true,
    };
    Some((job, shard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_read() {
        let news = |text| news(text, |shard| shard == 3);
        let placed = news("placed 7:5:2:9:3 8:5:2:9:4");
        let time = WallTime::from_unix_micros;
        let job = DueJob {
            id: JobId::new(time(5), 7),
            version: 2,
            due: time(9),
            is_interrupted: false,
            is_here: true,
        };
        assert_eq!(placed, News::Placed(vec![job]));
        assert_eq!(news("members"), News::Nodes);
        for strange in ["load", "", "placed 7:5:2:9", "placed x", "else"] {
            assert_eq!(news(strange), News::Many, "{strange}");
        }
    }
}
