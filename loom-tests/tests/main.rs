//! All models in one program, because each program would compile the engine anew.

#![cfg(loom)]

#[path = "../programs/threads.rs"]
mod threads;

mod awaited;
mod bounds;
mod callback;
mod channel;
mod driver;
mod expiry;
mod lock;
mod name;
mod payload;
mod rearm;
mod recv_async;
mod repeat;
mod reports;
mod shutdown;
mod sleep;
mod take;
mod task;
mod template;
mod unstarted;
mod users_cache;
mod users_pool;
mod users_retry;
mod wait;
mod workers;
