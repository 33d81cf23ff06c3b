//! Reading in the order of due times, page by page.

use super::*;

on_each_store!(
    due_jobs_come_in_order_from_the_beginning,
    lists_are_read_page_by_page,
    a_page_may_begin_behind_a_job_that_is_gone,
    a_kind_is_unhandled_however_late_its_jobs_are_due,
    a_page_is_bounded_in_bytes,
);

fn due_jobs_come_in_order_from_the_beginning<S: Store>(bench: &Bench<S>) {
    for due in [7, 3, 9, 3, 5] {
        bench.insert(mail(due));
    }
    let due = |before, most| -> Vec<u64> {
        let due = bench.store.due_before(bench.lease, &names(), at(before), most).unwrap();
        due.jobs.iter().map(|job| job.due.as_unix_micros()).collect()
    };
    assert_eq!(due(7, 9), [3, 3, 5], "before, and not at");
    assert_eq!(due(100, 4), [3, 3, 5, 7]);
    assert_eq!(due(3, 9), [0_u64; 0]);
    bench.change(Change::Pause { kind: "mail".to_owned(), is_paused: true });
    assert_eq!(due(100, 9), [0_u64; 0], "would fill the window");
}

fn lists_are_read_page_by_page<S: Store>(bench: &Bench<S>) {
    let jobs: Vec<_> = [5, 4, 4, 4, 6].map(|due| bench.insert(mail(due))).into();
    let (mut read, mut last) = (Vec::new(), None);
    loop {
        let page = bench.store.list(Page::new(List::Live, last.as_ref(), 2)).unwrap();
        let Some(end) = page.last() else { break };
        last = Some(end.clone());
        read.extend(page.into_iter().map(|job| job.id));
    }
    let expected = [1, 2, 3, 0, 4].map(|index: usize| jobs[index].id);
    assert_eq!(read, expected);
}

fn a_page_may_begin_behind_a_job_that_is_gone<S: Store>(bench: &Bench<S>) {
    let jobs = [3, 4, 5].map(|due| bench.insert(mail(due)));
    let first = bench.store.list(Page::new(List::Live, None, 1)).unwrap().remove(0);
    bench.change(Change::Cancel(first.id.into()));
    let rest = bench.store.list(Page::new(List::Live, Some(&first), 9)).unwrap();
    assert_eq!(rest.len(), 2);
    assert_eq!(rest[0].id, jobs[1].id);
}

fn a_kind_is_unhandled_however_late_its_jobs_are_due<S: Store>(bench: &Bench<S>) {
    bench.insert(mail(5));
    bench.insert(Job::new("other", "").at(WallTime::MAX));
    let unhandled = bench.store.unhandled().unwrap();
    assert_eq!(unhandled.iter().map(|(kind, _)| kind).collect::<Vec<_>>(), ["other"]);
}

/// Whoever reads page by page needs memory for one, however large the jobs are.
fn a_page_is_bounded_in_bytes<S: Store>(bench: &Bench<S>) {
    for due in [1, 2, 3, 4] {
        bench.insert(Job::new("mail", vec![7; 9 << 20]).at(at(due)));
    }
    let (mut pages, mut last) = (Vec::new(), None);
    loop {
        let page = bench.store.list(Page::new(List::Live, last.as_ref(), 9)).unwrap();
        let Some(end) = page.last() else { break };
        last = Some(end.clone());
        pages.push(page.len());
    }
    assert_eq!(pages, [2, 2]);
}
