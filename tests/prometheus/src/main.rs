//! What `tests/dashboards.sh` needs: an exposition, the dashboards' queries as rules and as
//! lines, and a server for Prometheus to scrape.

use std::env;
use std::error::Error;

use tickwheel_prometheus::exposition::{rendered, snapshot, status};
use tickwheel_prometheus::queries::{as_rules, of_all};
use tickwheel_prometheus::serve::serve;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["exposition"] => {
            let publish = || {
                snapshot().publish();
                status().publish();
            };
            print!("{}", rendered(publish, false));
        }
        ["rules"] => print!("{}", as_rules(&of_all())),
        ["queries"] => of_all().iter().for_each(|(_, query)| println!("{query}")),
        ["serve", address] => serve(address)?,
        _ => return Err("give `exposition`, `rules`, `queries`, or `serve` and an address".into()),
    }
    Ok(())
}
