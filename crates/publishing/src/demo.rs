//! The demonstration: a match of ninety minutes in five, and a board of quotes, all made up.
//!
//! It owns the story. It must never outlive the server that it is for: it ends when nobody answers any more.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

use super::topic_writer::{TopicValue, TopicWriter};

/// So often something happens.
const STEP: Duration = Duration::from_millis(250);
/// For so long a server that does not answer is asked again: it may be about to start.
const PATIENCE_STEPS: u32 = 40;
/// Steps of one minute of the match.
const STEPS_PER_MINUTE: u64 = 12;
/// Lines that are told with every update.
const LINES_MAX: usize = 8;

const TEAMS: [&str; 2] = ["Lock Rovers", "Weir United"];
const GOODS: [(&str, &str, f64); 8] = [
    ("oak", "Oak, sawn", 412.0),
    ("elm", "Elm, sawn", 288.5),
    ("iron", "Wrought iron", 96.4),
    ("rope", "Hemp rope", 54.2),
    ("tar", "Stockholm tar", 31.9),
    ("wheat", "Wheat, milled", 18.75),
    ("eel", "Eels, smoked", 64.0),
    ("salt", "Salt, by barge", 12.3),
];
const PHRASES: [&str; 6] = [
    "{} keep the ball in the reeds.",
    "A long pass of {} drifts out with the current.",
    "Corner for {}.",
    "{} knock at the gate; it holds.",
    "Free kick for {}, thirty paces out.",
    "The keeper of {} has to stretch.",
];

/// Publishes until the server is gone.
///
/// # Errors
/// The server does not take it.
pub(super) fn run(writer: &mut TopicWriter) -> Result<(), String> {
    let mut demo = Demo::new(now_ms());
    let mut refused = 0;
    loop {
        let updates = demo.step(now_ms());
        let sent = updates.into_iter().try_for_each(|(topic, value)| {
            writer.put(&topic, &TopicValue::of(value.to_string().into_bytes()))
        });
        refused = if sent.is_ok() { 0 } else { refused + 1 };
        if refused > PATIENCE_STEPS {
            return sent.map_err(|fault| fault.to_string());
        }
        // tidy: allow(clock): see above.
        std::thread::sleep(STEP);
    }
}

fn now_ms() -> u64 {
    // tidy: allow(clock): the publisher is a program of its own.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// What goes on.
struct Demo {
    random: Xoshiro256PlusPlus,
    step: u64,
    score: [u32; 2],
    possession: f64,
    lines: Vec<Value>,
    /// All lines since the kick-off.
    report: Vec<Value>,
    prices: [f64; GOODS.len()],
}

impl Demo {
    fn new(seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            random,
            step: 0,
            score: [0; 2],
            possession: 50.0,
            lines: Vec::new(),
            report: Vec::new(),
            prices: GOODS.map(|good| good.2),
        }
    }

    /// What is published next: topics and values.
    fn step(&mut self, now_ms: u64) -> Vec<(String, Value)> {
        let mut updates = Vec::new();
        let minute = self.step / STEPS_PER_MINUTE % 91;
        if self.step.is_multiple_of(91 * STEPS_PER_MINUTE) {
            (self.score, self.possession) = ([0; 2], 50.0);
            (self.lines, self.report) = (Vec::new(), Vec::new());
            self.say(0, "Kick-off at the lock.".to_owned(), false);
            updates.push(self.whole_report());
        }
        if self.step % STEPS_PER_MINUTE == STEPS_PER_MINUTE / 2 {
            self.play(minute);
            updates.push(self.whole_report());
        }
        if self.step.is_multiple_of(4) {
            self.possession = (self.possession + self.random.random_range(-3.0..3.0)).clamp(25.0, 75.0);
            updates.push(("match.1".to_owned(), self.match_now(minute, now_ms)));
        }
        let place = self.random.random_range(0..GOODS.len());
        updates.push(self.trade(place, now_ms));
        self.step += 1;
        updates
    }

    fn play(&mut self, minute: u64) {
        let side = usize::from(self.random.random_range(0.0..100.0) > self.possession);
        if self.random.random_range(0..18) == 0 {
            self.score[side] += 1;
            let [home, away] = self.score;
            return self.say(minute, format!("Goal! {} score, {home}:{away}.", TEAMS[side]), true);
        }
        let phrase = PHRASES[self.random.random_range(0..PHRASES.len())];
        self.say(minute, phrase.replace("{}", TEAMS[side]), false);
    }

    fn say(&mut self, minute: u64, text: String, is_goal: bool) {
        let line = json!({ "minute": minute, "text": text, "goal": is_goal });
        self.report.insert(0, line.clone());
        self.lines.insert(0, line);
        self.lines.truncate(LINES_MAX);
    }

    /// The document that pages poll: between two polls some lines are new, and all others as before.
    fn whole_report(&self) -> (String, Value) {
        let value = json!({ "teams": TEAMS, "score": self.score, "lines": self.report });
        ("report.1".to_owned(), value)
    }

    fn match_now(&self, minute: u64, now_ms: u64) -> Value {
        json!({
            "at": now_ms, "minute": minute, "teams": TEAMS, "score": self.score,
            "possession": self.possession.round(), "lines": self.lines,
        })
    }

    fn trade(&mut self, place: usize, now_ms: u64) -> (String, Value) {
        let (symbol, name, opening) = GOODS[place];
        let step = self.random.random_range(-0.004..0.004) + (opening - self.prices[place]) / opening * 0.01;
        self.prices[place] *= 1.0 + step;
        let round = |price: f64| (price * 100.0).round() / 100.0;
        let value = json!({
            "at": now_ms, "name": name, "price": round(self.prices[place]),
            "change": round((self.prices[place] / opening - 1.0) * 100.0),
        });
        (format!("quotes.{symbol}"), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_goes_from_kick_off_to_its_end_and_begins_anew() {
        let mut demo = Demo::new(7);
        let steps = 2 * 91 * STEPS_PER_MINUTE;
        let updates: Vec<_> = (0..steps).flat_map(|now_ms| demo.step(now_ms)).collect();
        let minutes: Vec<u64> = updates
            .iter()
            .filter(|(topic, _)| topic == "match.1")
            .map(|(_, value)| value["minute"].as_u64().unwrap())
            .collect();
        assert_eq!((minutes.first(), minutes.iter().max(), minutes.last()), (Some(&0), Some(&90), Some(&90)));
        assert_eq!(minutes.windows(2).filter(|two| two[1] < two[0]).count(), 1);
        for (symbol, _, opening) in GOODS {
            let topic = format!("quotes.{symbol}");
            let prices = updates.iter().filter(|(own, _)| *own == topic);
            assert!(
                prices
                    .map(|(_, value)| value["price"].as_f64().unwrap())
                    .all(|price| { (opening * 0.7..opening * 1.4).contains(&price) })
            );
        }
        assert!(updates.iter().any(|(_, value)| value["lines"][0]["goal"] == true));
    }
}
