//! Timers that tokio itself drives, through their descriptor: no thread beside the
//! runtime's own, and no switch of threads when a sleep ends.
//!
//! ```text
//! cargo run -p tickwheel-await-examples --bin tokio_driver
//! ```

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::task::Waker;
    use std::time::{Duration, Instant};

    use tickwheel::Driver;
    use tickwheel::time::Timers;
    use tickwheel::wheel::Advance;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// The entries that one call touches at most, so that other tasks have their turn.
    const BUDGET: usize = 1_000;

    /// Wakes sleeps that are due, whenever the descriptor is readable. Ends after the
    /// shutdown of the timers.
    async fn drive(driver: Driver<Waker>) -> io::Result<()> {
        // SAFETY: the driver owns a valid descriptor, and keeps it until it is dropped.
        let driver = unsafe { AsyncFd::register_with_interest(driver, Interest::READABLE)? };
        loop {
            let mut readable = driver.readable().await?;
            readable.clear_ready();
            match driver.get_ref().process_due(BUDGET) {
                Advance::ShutDown => return Ok(()),
                Advance::More => tokio::task::yield_now().await,
                Advance::Done => {}
            }
        }
    }

    #[tokio::main(worker_threads = 2)]
    pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let (timers, driver) = Timers::builder().start_driven()?;
        let timers = timers.leak();
        let driving = tokio::spawn(drive(driver));

        let begin = Instant::now();
        let naps = (1..=1_000).map(|n| {
            let delay = Duration::from_millis(n % 100);
            tokio::spawn(async move {
                let begin = Instant::now();
                timers.sleep(delay).await;
                begin.elapsed() - delay
            })
        });
        let mut latest = Duration::ZERO;
        for nap in naps.collect::<Vec<_>>() {
            latest = latest.max(nap.await?);
        }
        println!("1,000 sleeps in {:?}, {latest:?} late at most", begin.elapsed());

        let limit = timers.timeout(Duration::from_millis(50), std::future::pending::<()>());
        assert!(limit.await.is_err());
        timers.shutdown();
        driving.await??;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("only Linux has a descriptor for timers");
}
