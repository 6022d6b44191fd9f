//! What a host survives.

use crate::command::{model, near, number, said};

#[test]
fn loads_that_are_survived_are_those_the_model_says() {
    let host = ["--mu1", "200k/s", "--mu2", "1800/s", "--backlog", "128"];
    let document = said(&[&["size", "--keep", "90%,50%"], &host[..]].concat());
    for (gate, at) in ["without_gate", "with_gate"].into_iter().flat_map(|gate| [(gate, 0), (gate, 1)]) {
        let side = &document[gate];
        let kept = &side["kept"][at];
        let wanted = number(kept, "/share") * number(side, "/peak_per_s");
        let limit = number(kept, "/requests_per_s");
        let goodput = |offered: f64| {
            let offered = format!("{offered:.0}/s");
            let document = said(&[&["predict", "--offered", &offered], &host[..]].concat());
            number(&document["rows"][0], &format!("/{gate}/goodput_per_s"))
        };
        assert!(goodput(limit * 0.99) >= wanted && goodput(limit * 1.01) < wanted, "{gate} {at}: {limit}");
    }
}

#[test]
fn a_gate_survives_more_and_a_larger_share_less() {
    let document = said(&["size", "--mu2", "18k/s", "--keep", "95%,50%,5%"]);
    for of in ["requests_per_s", "syn_per_s"] {
        let limit = |gate: &str, at: usize| number(&document[gate]["kept"][at], &format!("/{of}"));
        for at in 0..3 {
            assert!(limit("with_gate", at) > limit("without_gate", at), "{of} {at}");
        }
        for gate in ["without_gate", "with_gate"] {
            assert!(limit(gate, 0) <= limit(gate, 1) && limit(gate, 1) <= limit(gate, 2), "{of} {gate}");
        }
    }
    // Nine tenths of the capacity stand beside the flood.
    near(number(&document, "/beside_per_s"), 0.9 / (1.0 / 18_000.0 + 1.0 / 200_000.0), 1e-9);
}

#[test]
fn what_is_beyond_every_link_is_said_so() {
    // Reception that costs nothing to speak of, and a short queue: no offered load is too much.
    let words = ["size", "--mu1", "1000M/s", "--mu2", "100/s", "--backlog", "4", "--keep", "50%"];
    let finished = model(&words);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(finished.stdout.contains("more than 150M"), "{}", finished.stdout);
    assert!(said(&words)["without_gate"]["kept"][0]["requests_per_s"].is_null());
}
