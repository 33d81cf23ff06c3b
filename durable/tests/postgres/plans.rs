//! What statements read of large tables: about what they return, whatever lies beside it.

use super::*;

/// The rows of each sort. `ROWS=1000000` takes a minute.
fn rows() -> i64 {
    let rows = std::env::var("ROWS").map(|rows| rows.parse().expect("a number"));
    rows.unwrap_or(100_000)
}

/// A schema with jobs that are due, others that are due in a month, and dead letters. Statistics
/// are as old as the schema, as after a sudden flood.
fn flooded() -> Option<(Schema, PostgresStore, Lease)> {
    let schema = Schema::new()?;
    let store = schema.open();
    let lease = store.acquire("node", &kinds(), HOUR).unwrap().unwrap();
    assert!(store.renew(lease, HOUR).unwrap());
    let fill = format!(
        "ALTER TABLE {0}.jobs SET (autovacuum_enabled = off); ANALYZE {0}.jobs;
         INSERT INTO {0}.jobs (number, born, shard, due, dead, kind, payload)
         SELECT n, d.due, s.shard, d.due, d.dead, s.kind, ''
         FROM (SELECT n, n % 3 AS sort, nextval('{0}.numbers') AS number FROM generate_series(1, {1}) AS n) n,
             LATERAL (SELECT CASE sort WHEN 1 THEN {0}.now_micros() + 2592000000000 ELSE n END, sort = 2)
                 AS d (due, dead), {0}.shards s
         WHERE s.part = n.number % 16",
        schema.name,
        rows() * 3
    );
    schema.client().batch_execute(&fill).unwrap();
    Some((schema, store, lease))
}

/// Returns how many buffers a statement reads at least, and how many rows it returns. The first time,
/// and while other tests create tables, the server reads its catalogue, too.
fn cost(client: &mut postgres::Client, schema: &Schema, text: &str) -> (i64, i64) {
    let text = text.replace("{schema}", &schema.name);
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS) {text}");
    let plans = (0..5).map(|_| client.query(&explain, &[]).unwrap());
    let (buffers, rows) = plans.map(|plan| read(&plan)).min().unwrap();
    println!("{buffers:6} buffers, {rows:5} rows: {text}");
    (buffers, rows)
}

fn read(plan: &[postgres::Row]) -> (i64, i64) {
    let lines: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let number = |line: &str, word: &str| {
        let at = line.find(word).map(|at| &line[at + word.len()..]);
        let digits = at.unwrap_or("0").split(|c: char| !c.is_ascii_digit());
        digits.into_iter().next().unwrap().parse::<i64>().unwrap()
    };
    let rows = number(lines[0].split("actual").nth(1).unwrap(), "rows=");
    let buffers = lines.iter().find(|line| line.contains("Buffers:"));
    let buffers = buffers.map_or(0, |line| number(line, "hit=") + number(line, "read="));
    (buffers, rows)
}

#[test]
fn a_statement_reads_about_what_it_returns() {
    let Some((schema, _store, lease)) = flooded() else {
        return;
    };
    let (mut client, fence) = (schema.client(), lease.fence);
    let mut cost =
        |text: &str| cost(&mut client, &schema, &text.replace("{fence}", &fence.to_string()));
    let (buffers, _) = cost("SELECT * FROM {schema}.renew({fence}, 60000000)");
    assert!(buffers < 20, "{buffers} for a renewal");
    let (buffers, _) = cost("SELECT * FROM {schema}.balance({fence})");
    assert!(buffers < 2_000, "{buffers} for a balance");
    let (buffers, rows) = cost(
        "SELECT * FROM {schema}.due_before({fence}, ARRAY['note'], {schema}.now_micros() + 60000000, 8192)",
    );
    assert!((4_096..=8_192).contains(&rows), "{rows}");
    assert!(buffers < 3 * rows, "{buffers} for a load of {rows}");
    let (buffers, _) = cost("SELECT * FROM {schema}.unhandled()");
    assert!(buffers < 200, "{buffers}");

    // A node before which all jobs are far away finds nothing.
    let (buffers, rows) =
        cost("SELECT * FROM {schema}.due_before({fence}, ARRAY['note'], 0, 8192)");
    assert!(rows == 0 && buffers < 500, "{buffers} of an idle node");
}

/// Starts and ends a thousand jobs of the flood, and loads the next ones.
#[test]
fn a_backlog_costs_what_is_done_of_it() {
    let Some((_schema, store, lease)) = flooded() else {
        return;
    };
    let fence = lease.fence;
    let begin = Instant::now();
    let mut done = 0;
    while done < 5_000 {
        let due = store.due_before(lease, &names(), SystemClock.now(), 1_000).unwrap();
        assert!(due.until.is_some() && due.jobs.is_sorted_by_key(|job| job.due));
        let start = |job: &DueJob| Change::Start { id: job.id, version: job.version, fence };
        let end = |job: &DueJob| Change::Finish {
            id: job.id,
            version: job.version,
            fence,
            recurrence: None,
            then: Then::End,
        };
        let started = store.commit(&due.jobs.iter().map(start).collect::<Vec<_>>()).unwrap();
        assert!(started.iter().all(|answer| matches!(answer, Answer::Started { .. })));
        let ended = store.commit(&due.jobs.iter().map(end).collect::<Vec<_>>()).unwrap();
        assert!(ended.iter().all(|answer| matches!(answer, Answer::Removed(_))));
        done += due.jobs.len();
    }
    let took = begin.elapsed();
    println!("{done} of {} jobs in {took:?}", rows());
    assert!(took < SECOND * 60, "{took:?}");
}
