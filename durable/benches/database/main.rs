//! Two nodes on one PostgreSQL database, beside the usual designs on the same server: the lag of
//! jobs at a steady rate, transactions for each job and while nothing happens, a lone job that
//! another process schedules, and the end of a node by SIGKILL.
//!
//!     durable/tests/postgres.sh cargo bench -p tickwheel-durable --features postgres --bench database
//!
//! Every contender has a database and two nodes of its own, which stay open during the whole run.
//! Rounds alternate between the contenders, and the table gives medians of the rounds. It takes
//! about four minutes. The last column says what a design promises less.
//!
//! `-- --rates 1000,5000` sets the jobs a second, `--secs` the length of a round, `--rounds` their
//! number, `--only` the contenders whose names contain a text, and `--json` prints an object for
//! each contender. The last line has the probe: how long a commit of one row takes. Handlers of
//! tickwheel-durable begin once such a commit has counted their attempt; those of the others begin
//! at once.

mod contender;
mod polling;
mod queue;
mod report;
mod rounds;
mod runs;
mod server;
mod sleeping;
mod tickwheel;

use std::time::Duration;

use crate::contender::Contender;
use crate::polling::Polling;
use crate::report::Rows;
use crate::rounds::World;
use crate::runs::spread;
use crate::server::Server;
use crate::sleeping::Sleeping;
use crate::tickwheel::Tickwheel;

fn contenders() -> [Box<dyn Contender>; 4] {
    let polling = |millis| Box::new(Polling::every(Duration::from_millis(millis)));
    [Box::new(Tickwheel), polling(1_000), polling(100), Box::new(Sleeping)]
}

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

fn numbers(name: &str, default: &str) -> Vec<u64> {
    let given = argument(name).unwrap_or_else(|| default.to_owned());
    let numbers = given.split(',').map(|number| number.parse());
    numbers.map(|number| number.expect("a number")).collect()
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let Ok(server) = std::env::var("TICKWHEEL_POSTGRES") else {
        println!("SKIPPED: durable/tests/postgres.sh starts the server");
        return;
    };
    let only = argument("--only").unwrap_or_default();
    let contenders = contenders().into_iter().filter(|contender| contender.name().contains(&only));
    let contenders: Vec<Box<dyn Contender>> = contenders.collect();
    let server = Server::new(server);
    if let Ok(name) = std::env::var(rounds::CHILD) {
        return rounds::child(&contenders, &name, &server);
    }
    let rows = measure(&contenders, server);
    if std::env::args().any(|argument| argument == "--json") {
        rows.print_json()
    } else {
        rows.print_table()
    }
}

fn measure(contenders: &[Box<dyn Contender>], mut server: Server) -> Rows {
    let (secs, rounds) = (numbers("--secs", "2")[0], numbers("--rounds", "3")[0]);
    let mut rows = Rows::new(contenders);
    let mut probe = server.probe();
    let mut worlds: Vec<World<'_>> =
        contenders.iter().map(|contender| World::open(contender.as_ref(), &mut server)).collect();
    let idle = rounds::idle(&worlds, &mut server);
    rows.add("idle, transactions a second for each node", &idle, 2);
    for rate in numbers("--rates", "1000,5000") {
        let lags = rounds::lags(&worlds, &mut server, &idle, (rate, secs, rounds));
        rows.add_lags(rate, &lags);
    }
    let lone = rounds::lone(&worlds, rounds);
    rows.add_spreads("a lone job of another process, ms from its commit", &lone);
    let ends = rounds::take_overs(&mut worlds, rounds);
    rows.add("most lag after a SIGKILL of a node, ms", &ends, 0);
    probe.extend(server.probe());
    rows.set_probe(spread(probe));
    worlds.into_iter().for_each(World::close);
    contenders.iter().for_each(|contender| server.drop_database(contender.name()));
    rows
}
