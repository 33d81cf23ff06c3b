//! A wheel in a game loop: buffs that tick a number of times, and cooldowns of
//! spells. One thread owns the room and its wheels, a tick is a frame, and
//! nothing reads a clock. The same seed gives the same game; the program plays
//! it twice to show that.
//!
//! ```text
//! cargo run --release --example game_room
//! ```

use fastrand::Rng;
use tickwheel::wheel::{Expired, KeyedWheel};
use tickwheel::{Tick, TimerId, Wheel};

const FRAMES_PER_SECOND: u64 = 20;
const FRAMES: u64 = 30 * FRAMES_PER_SECOND;
const HEALTH: i32 = 60;

fn main() {
    let log = play(2_026);
    for line in log.iter().take(12) {
        println!("{line}");
    }
    println!("... {} lines in all; the last:", log.len());
    for line in &log[log.len().saturating_sub(3)..] {
        println!("{line}");
    }

    assert_eq!(log, play(2_026), "the same seed gave another game");
    println!("played again from the same seed: the same, line by line");
}

/// Plays a whole game and returns its log.
fn play(seed: u64) -> Vec<String> {
    let mut room = Room::new(seed);
    // A server would sleep here until the frame begins.
    for frame in 1..=FRAMES {
        room.frame(Tick(frame));
    }
    room.close();
    room.log
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Spell {
    Poison,
    Regeneration,
    Cleansing,
}

impl Spell {
    const ALL: [Spell; 3] = [Spell::Poison, Spell::Regeneration, Spell::Cleansing];

    fn cooldown(self) -> u64 {
        FRAMES_PER_SECOND
            * match self {
                Spell::Poison => 3,
                Spell::Regeneration => 5,
                Spell::Cleansing => 8,
            }
    }
}

/// A change of a player's health, `left` times more.
struct Buff {
    player: usize,
    spell: Spell,
    health: i32,
    period: u64,
    left: u64,
}

struct Player {
    name: &'static str,
    health: i32,
    buffs: Vec<TimerId>,
}

struct Room {
    players: Vec<Player>,
    buffs: Wheel<Buff>,
    /// The spells that are not ready, by player and spell.
    cooldowns: KeyedWheel<(usize, Spell), ()>,
    random: Rng,
    log: Vec<String>,
}

impl Room {
    fn new(seed: u64) -> Room {
        let player = |name| Player { name, health: HEALTH, buffs: Vec::new() };
        Room {
            players: ["Ada", "Bob", "Cleo", "Dan"].map(player).into(),
            buffs: Wheel::new(64),
            cooldowns: KeyedWheel::new(64),
            random: Rng::with_seed(seed),
            log: Vec::new(),
        }
    }

    /// Fires due timers in the order of their ticks, then lets players act.
    fn frame(&mut self, now: Tick) {
        while self.cooldowns.pop_due(now).is_some() {}
        while let Some(expired) = self.buffs.pop_due(now) {
            self.tick_buff(expired);
        }
        for player in 0..self.players.len() {
            // Each player presses a key about once a second.
            if self.players[player].health > 0 && self.random.u64(..FRAMES_PER_SECOND) == 0 {
                let spell = Spell::ALL[self.random.usize(..Spell::ALL.len())];
                self.cast(player, spell);
            }
        }
    }

    fn cast(&mut self, player: usize, spell: Spell) {
        let key = (player, spell);
        if let Some(ready) = self.cooldowns.deadline(&key) {
            let frames = ready.since(self.cooldowns.now());
            self.say(player, &format!("waits {frames} frames for {spell:?}"));
            return;
        }
        let ready = self.cooldowns.now().after(spell.cooldown());
        self.cooldowns.insert(key, ready, ());
        self.say(player, &format!("casts {spell:?}"));
        match spell {
            Spell::Poison => {
                let by = self.random.usize(1..self.players.len());
                let victim = (player + by) % self.players.len();
                self.add_buff(victim, spell, -4, FRAMES_PER_SECOND, 4);
            }
            Spell::Regeneration => self.add_buff(player, spell, 1, FRAMES_PER_SECOND / 2, 6),
            Spell::Cleansing => {
                let poisoned = |buff: &Buff| buff.spell == Spell::Poison;
                self.end_buffs(player, "is cleansed of", poisoned);
            }
        }
    }

    fn add_buff(&mut self, player: usize, spell: Spell, health: i32, period: u64, left: u64) {
        if self.players[player].health <= 0 {
            return;
        }
        let buff = Buff { player, spell, health, period, left };
        let id = self.buffs.schedule_after(period, buff);
        self.players[player].buffs.push(id);
        self.say(player, &format!("gets {spell:?}, {left} times"));
    }

    fn tick_buff(&mut self, mut expired: Expired<Buff>) {
        let id = expired.id();
        let buff = &mut expired.payload;
        buff.left -= 1;
        let player = &mut self.players[buff.player];
        player.health = (player.health + buff.health).min(HEALTH);
        let (who, spell, health) = (buff.player, buff.spell, player.health);
        if buff.left > 0 {
            // A period after the deadline, not after the service: a late frame
            // shifts no later tick.
            let next = expired.deadline.after(buff.period);
            assert!(self.buffs.rearm(expired, next).is_ok());
        } else {
            player.buffs.retain(|&other| other != id);
        }
        self.say(who, &format!("has {health} after {spell:?}"));
        if health <= 0 {
            self.end_buffs(who, "dies, and with it", |_| true);
        }
    }

    /// Cancels the buffs of a player for which `which` holds.
    fn end_buffs(&mut self, player: usize, what: &str, which: impl Fn(&Buff) -> bool) {
        let ids = std::mem::take(&mut self.players[player].buffs);
        let (ended, kept): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|&id| self.buffs.get(id).is_some_and(&which));
        self.players[player].buffs = kept;
        for id in ended {
            let Some(buff) = self.buffs.cancel(id) else {
                continue;
            };
            let (spell, left) = (buff.spell, buff.left);
            self.say(player, &format!("{what} {spell:?}, {left} times early"));
        }
    }

    /// Ends every buff.
    fn close(&mut self) {
        for player in 0..self.players.len() {
            self.end_buffs(player, "leaves, and with it", |_| true);
        }
        assert!(self.buffs.is_empty());
    }

    fn say(&mut self, player: usize, what: &str) {
        let (frame, name) = (self.buffs.now(), self.players[player].name);
        self.log.push(format!("frame {frame:>3}: {name} {what}"));
    }
}
