//! Commands that change jobs.

use std::time::Duration;

use serde_json::json;
use tickwheel_durable::store::{List, Target};
use tickwheel_durable::{Cancelled, JobId, Jobs, Revived, StoreError};

use crate::failure::Failure;
use crate::look::for_each;
use crate::open::Opened;
use crate::output::{Output, plain};

/// The answer for one job: a word for programs, a sentence for people, and whether all is well.
struct Said {
    word: &'static str,
    text: String,
    is_done: bool,
}

fn said(word: &'static str, text: impl Into<String>, is_done: bool) -> Said {
    let text = text.into();
    Said { word, text, is_done }
}

/// Prints the answers, each as soon as it is there. All changes are made, whether or not somebody
/// reads the answers.
fn tell(
    output: &mut Output,
    answers: impl IntoIterator<Item = Result<(String, Said), StoreError>>,
) -> Result<bool, Failure> {
    let (mut is_done, mut printed) = (true, Ok(()));
    for answer in answers {
        let (name, said) = answer?;
        let text = format!("{name}: {}", said.text);
        let object = || json!({"id": name, "result": said.word, "message": said.text});
        printed = printed.and_then(|()| output.line(&text, object)).and_then(|()| output.flush());
        is_done &= said.is_done;
    }
    printed?;
    Ok(is_done)
}

pub(crate) fn cancel(
    jobs: &Jobs,
    ids: &[JobId],
    keys: Option<&[String]>,
    output: &mut Output,
) -> Result<bool, Failure> {
    let by_id = ids.iter().map(|id| (id.to_string(), Target::Id(*id)));
    // Each `--key` has added two.
    let by_key = keys.unwrap_or_default().chunks(2).filter_map(|names| match names {
        [kind, key] => {
            let target = Target::from((kind.as_str(), key.as_str()));
            Some((plain(&format!("{kind} {key}")), target))
        }
        _ => None,
    });
    let cancel = |(name, target)| Ok((name, cancelled(&jobs.cancel(target)?)));
    tell(output, by_id.chain(by_key).map(cancel))
}

fn cancelled(answer: &Cancelled) -> Said {
    match answer {
        Cancelled::Cancelled(_) => said("cancelled", "cancelled", true),
        Cancelled::Running(_) => said(
            "running",
            "cancelled while it runs: the run is not stopped, and there will be no other",
            true,
        ),
        Cancelled::Gone => said("gone", "no waiting or running job", false),
    }
}

pub(crate) fn retry(
    jobs: &Opened,
    ids: &[JobId],
    after: Duration,
    output: &mut Output,
) -> Result<bool, Failure> {
    let due = jobs.now() + after;
    let retry = |id: &JobId| Ok((id.to_string(), revived(jobs.revive(*id, due)?)));
    tell(output, ids.iter().map(retry))
}

pub(crate) fn retry_all(
    jobs: &Opened,
    kind: Option<&str>,
    after: Duration,
    output: &mut Output,
) -> Result<bool, Failure> {
    let mut ids = Vec::new();
    for_each(jobs, List::Dead, kind, |job| {
        ids.push(job.id);
        Ok::<bool, StoreError>(true)
    })?;
    let is_done = retry(jobs, &ids, after, output)?;
    output.text(&format!("{} dead letters", ids.len()))?;
    output.flush()?;
    Ok(is_done)
}

fn revived(answer: Revived) -> Said {
    match answer {
        Revived::Revived => said("revived", "due again", true),
        Revived::KeyTaken(holder) => {
            let text = format!("job {holder} has its key meanwhile: cancel that one first");
            said("key_taken", text, false)
        }
        Revived::Gone => said("gone", "no dead letter", false),
    }
}

pub(crate) fn bury(jobs: &Jobs, ids: &[JobId], output: &mut Output) -> Result<bool, Failure> {
    let bury = |id: &JobId| {
        let answer = match jobs.bury(*id)? {
            Some(_) => said("buried", "removed", true),
            None => said("gone", "no dead letter", false),
        };
        Ok((id.to_string(), answer))
    };
    tell(output, ids.iter().map(bury))
}
