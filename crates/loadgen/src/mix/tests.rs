//! What is drawn, against what was asked for. All seeds are fixed.

use super::*;
use crate::check::BodyCheck;
use crate::request::RequestPlan;
use crate::url::Url;

fn url() -> Url {
    "http://h/".parse().expect("a URL")
}

fn plan(weights: &[f64], choice: Choice) -> MixPlan {
    let entry =
        |(index, weight): (usize, &f64)| MixEntry { weight: *weight, ..MixEntry::get(format!("/{index}")) };
    MixPlan::of(&url(), weights.iter().enumerate().map(entry).collect(), choice)
}

/// Sum of the squared differences between what was drawn and what was expected, each by what was expected.
fn chi_square(plan: &MixPlan, weights: &[f64], seed: u64) -> f64 {
    const DRAWS: u32 = 200_000;
    let mut mix = Mix::new(plan, seed, 0).expect("a mix");
    let mut counts = vec![0u32; weights.len()];
    (0..DRAWS).for_each(|_| counts[mix.draw() as usize] += 1);
    let sum: f64 = weights.iter().sum();
    let term = |(count, weight): (&u32, &f64)| {
        let expected = weight / sum * f64::from(DRAWS);
        (f64::from(*count) - expected).powi(2) / expected
    };
    counts.iter().zip(weights).map(term).sum()
}

/// What chance exceeds once in a thousand, for so many entries (Wilson and Hilferty's approximation).
fn chi_square_max(entries: usize) -> f64 {
    let freedom = entries as f64 - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    freedom * (1.0 - spread + 3.0902 * spread.sqrt()).powi(3)
}

#[test]
fn weights_are_kept_to() {
    let webstone = MixPlan::webstone(&url());
    let weights: Vec<f64> = webstone.entries.iter().map(|entry| entry.weight).collect();
    let lists = [vec![1.0, 1.0], vec![0.1, 99.9], vec![1e-3, 1e3, 5e2], (1..200).map(f64::from).collect()];
    for seed in 0..10 {
        let found = chi_square(&webstone, &weights, seed);
        assert!(found < chi_square_max(5), "WebStone, seed {seed}: {found}");
        for weights in &lists[..] {
            let found = chi_square(&plan(weights, Choice::Weighted), weights, seed);
            // A weight of a millionth is drawn a few times or never: no normal distribution there.
            let limit = if weights.contains(&1e-3) { 40.0 } else { chi_square_max(weights.len()) };
            assert!(found < limit, "{weights:?}, seed {seed}: {found}");
        }
    }
    // The canary: other weights than those drawn by are noticed.
    assert!(chi_square(&plan(&[1.0, 1.0], Choice::Weighted), &[1.0, 1.1], 1) > chi_square_max(2));
}

#[test]
fn zipf_is_as_its_formula() {
    for exponent in [0.0, 0.6, 0.8, 1.0, 1.2, 2.0] {
        let weights: Vec<f64> = (1..=100).map(|place| 1.0 / f64::from(place).powf(exponent)).collect();
        let plan = plan(&[1.0; 100], Choice::Zipf { exponent });
        for seed in 0..5 {
            let found = chi_square(&plan, &weights, seed);
            assert!(found < chi_square_max(100), "exponent {exponent}, seed {seed}: {found}");
        }
    }
    let steeper: Vec<f64> = (1..=100).map(|place| 1.0 / f64::from(place).powf(0.85)).collect();
    let plan = plan(&[1.0; 100], Choice::Zipf { exponent: 0.8 });
    assert!(chi_square(&plan, &steeper, 1) > chi_square_max(100), "the canary");
}

#[test]
fn in_order_and_alone() {
    let mut mix = Mix::new(&plan(&[1.0; 3], Choice::InOrder), 1, 0).expect("a mix");
    assert_eq!((0..7).map(|_| mix.draw()).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    for choice in [Choice::InOrder, Choice::Weighted, Choice::Zipf { exponent: 1.0 }] {
        let mut mix = Mix::new(&plan(&[1.0], choice), 1, 0).expect("a mix");
        assert!((0..7).all(|_| mix.draw() == 0), "{choice:?}");
    }
}

#[test]
fn a_seed_and_a_thread_draw_the_same_again_and_others_draw_otherwise() {
    let mut plan = plan(&[1.0, 2.0, 3.0], Choice::Weighted);
    plan.entries[1].request.target = "/{{thread}}/{{connection}}/{{unix_ms}}/{{random 1 1000000}}".to_owned();
    let drawn = |seed, thread| {
        let mut mix = Mix::new(&plan, seed, thread).expect("a mix");
        let mut outgoing = Outgoing::default();
        let mut entries = Vec::new();
        for serial in 0..100 {
            entries.push(mix.draw());
            mix.write(entries[serial as usize], serial, 5, 6, &mut outgoing);
        }
        (entries, outgoing.contents().0.to_vec())
    };
    assert_eq!(drawn(1, 2), drawn(1, 2));
    assert_ne!(drawn(1, 2).0, drawn(1, 3).0);
    assert_ne!(drawn(1, 2).0, drawn(2, 2).0);
    assert!(String::from_utf8_lossy(&drawn(1, 2).1).contains("GET /2/5/6/"));
}

#[test]
fn what_is_known_of_an_entry() {
    let mut plan = plan(&[1.0; 3], Choice::InOrder);
    plan.keep_alive = false;
    plan.entries[1].request.method = "HEAD".to_owned();
    plan.entries[2].request.target = "/{{serial}}".to_owned();
    plan.entries[2].check.body = BodyCheck::Length(3);
    let mix = Mix::new(&plan, 1, 0).expect("a mix");
    assert_eq!([0, 1, 2].map(|entry| mix.asked_by_head(entry)), [false, true, false]);
    assert_eq!([0, 1, 2].map(|entry| mix.is_static(entry)), [true, true, false]);
    let length_bytes = "GET /0 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".len();
    assert_eq!([0, 2].map(|entry| mix.length_bytes(entry)), [Some(length_bytes), None]);
    assert_eq!(mix.check(2).body, BodyCheck::Length(3));
    let single = MixPlan::single(&"http://[::1]:8/a?b".parse().expect("a URL"));
    assert_eq!((single.authority.as_str(), single.entries.len()), ("[::1]:8", 1));
    assert_eq!(single.entries[0].request, RequestPlan::get("/a?b"));
}

#[test]
fn faults() {
    let fault = |plan: &MixPlan| Mix::new(plan, 1, 0).expect_err("a fault").to_string();
    assert_eq!(fault(&plan(&[], Choice::InOrder)), "a mix has at least one request and at most 2^32, not 0");
    let sentence = |how: &str| format!("weights have no meaning when requests are chosen {how}");
    assert_eq!(fault(&plan(&[1.0, 2.0], Choice::InOrder)), sentence("in order"));
    assert_eq!(fault(&plan(&[1.0, 2.0], Choice::Zipf { exponent: 1.0 })), sentence("by Zipf's law"));
    for exponent in [-0.1, f64::NAN, f64::INFINITY] {
        let sentence = format!("the exponent {exponent} of Zipf's law is not 0 or above");
        assert_eq!(fault(&plan(&[1.0, 1.0], Choice::Zipf { exponent })), sentence);
    }
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let sentence = format!("the weight {weight} of /1 is not above 0");
        assert_eq!(fault(&plan(&[1.0, weight], Choice::Weighted)), sentence);
    }
    let huge = plan(&[f64::MAX, 1.0], Choice::Weighted);
    assert_eq!(fault(&huge), "the weights are too large to be added up");
    let mut head = plan(&[1.0], Choice::InOrder);
    head.entries[0].request.method = "HEAD".to_owned();
    head.entries[0].check.body = BodyCheck::Length(1);
    assert_eq!(fault(&head), "HEAD /0: an answer to HEAD has no body to be checked");
    let mut bad = plan(&[1.0, 1.0], Choice::InOrder);
    bad.entries[1].request.target = "/\n".to_owned();
    assert_eq!(fault(&bad), "GET /\\n: `/\\n`: a control character cannot stand in a path");
}
