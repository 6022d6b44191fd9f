//! SYN to addresses that are not this host's: they pass, take no credits, and are counted as such.
//!
//! It must never send a frame to an interface: the program is shown them.

use staunch_gate::layout::{Counters, Outcome};
use staunch_gate::observation::Orders;
use staunch_gate::program::{Attach, Prefix, Trial};

use crate::packet::packet;
use crate::trial::{self, DROP, ONE_PLACE, PASS, PORTS, action, give};

/// Where frames made from words go to.
const IPV4: [u8; 4] = [198, 51, 100, 1];
const IPV6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// Everything that may be shed, in its dresses.
const SYN: [&str; 12] = [
    "ipv4 tcp",
    "ipv4 options=4 tcp mss",
    "vlan ipv4 tcp",
    "vlans=4 ipv4 tcp port=443",
    "ipv4 part=0x2000 tcp",
    "ipv4 part=0x2000 length=28 tcp pad=60",
    "ipv6 tcp",
    "qinq vlan ipv6 tcp",
    "ipv6 hop tcp",
    "ipv6 fragment-header tcp",
    "ipv6 fragment-header=1 tcp",
    "ipv6 hops=8 tcp port=443",
];

fn with(addresses: &[&str], change: impl FnOnce(&mut Attach<'_>)) -> Option<Trial> {
    let addresses: Vec<Prefix> = addresses.iter().map(|text| text.parse().expect("a prefix")).collect();
    let mut attach = Attach { ports: &PORTS, addresses: &addresses, ..Attach::default() };
    change(&mut attach);
    trial::load(&attach, &ONE_PLACE)
}

/// A frame as given, but to the address with another last byte.
fn to_a_neighbour(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let of = |wanted: &[u8]| frame.windows(wanted.len()).position(|bytes| bytes == wanted);
    let at = of(&IPV6).map_or_else(|| of(&IPV4).expect("an address") + 3, |at| at + 15);
    frame[at] = 2;
    frame
}

fn counts(trial: &Trial) -> Counters {
    trial.counters().expect("counters")
}

#[test]
fn only_what_is_to_this_host_is_shed() {
    let Some(mut trial) = with(&["198.51.100.1", "2001:db8::1"], |_| {}) else { return };
    give(&mut trial, &trial::shed());
    for (words, number) in SYN.iter().zip(1..) {
        let own = packet(words);
        assert_eq!(action(&mut trial, &own), DROP, "{words}");
        assert_eq!(action(&mut trial, &to_a_neighbour(&own)), PASS, "{words}, to another host");
        let counted = counts(&trial);
        assert_eq!((counted.elsewhere, counted.with(Outcome::Credit)), (number, number), "{words}");
        assert_eq!(counted.frames(), 2 * number, "{words}");
    }
}

#[test]
fn whole_prefixes_may_be_this_hosts() {
    let Some(mut trial) = with(&["198.51.100.0/31", "2001:db8::/127", "192.0.2.0/24"], |_| {}) else {
        return;
    };
    give(&mut trial, &trial::shed());
    for words in SYN {
        assert_eq!(action(&mut trial, &packet(words)), DROP, "{words}");
        assert_eq!(action(&mut trial, &to_a_neighbour(&packet(words))), PASS, "{words}");
    }
}

#[test]
fn who_goes_elsewhere_takes_nothing() {
    let Some(mut trial) = with(&["198.51.100.1"], |_| {}) else { return };
    let orders = Orders { verify: true, window: 1, prefix_limit: 2, ..trial::ration([0, 0, 2]) };
    give(&mut trial, &orders);
    let own = packet("ipv4 tcp mss");
    for _ in 0..20 {
        assert_eq!(action(&mut trial, &to_a_neighbour(&own)), PASS);
    }
    assert_eq!([0; 3].map(|_| action(&mut trial, &own)), [PASS, PASS, DROP]);
    let counted = counts(&trial);
    assert_eq!((counted.elsewhere, counted.prefixes, counted.syn(2)), (20, 1, 3));
}

#[test]
fn who_never_comes_in_may_go_elsewhere() {
    let deny: Vec<Prefix> = vec!["192.0.2.0/24".parse().unwrap(), "2001:db8:7::/48".parse().unwrap()];
    let addresses: Vec<Prefix> = ["198.51.100.1", "2001:db8::1"].map(|text| text.parse().unwrap()).into();
    let attach = Attach { ports: &PORTS, addresses: &addresses, deny: &deny, ..Attach::default() };
    let Some(mut trial) = trial::load(&attach, &ONE_PLACE) else { return };
    give(&mut trial, &Orders::default());
    // Of what is wrapped too often it is not read who it is to.
    let wrapped = ["ipv6 hops=9 tcp", "vlans=5 ipv4 tcp"].map(|words| (words, DROP));
    for (words, elsewhere) in SYN.iter().map(|words| (*words, PASS)).chain(wrapped) {
        assert_eq!(action(&mut trial, &packet(words)), DROP, "{words}");
        assert_eq!(action(&mut trial, &to_a_neighbour(&packet(words))), elsewhere, "{words}");
    }
}

#[test]
fn nobody_elsewhere_is_answered() {
    let Some(mut trial) =
        with(&["198.51.100.1"], |attach| attach.reject = staunch_gate::program::Reject::Reset)
    else {
        return;
    };
    give(&mut trial, &trial::shed());
    let frame = to_a_neighbour(&packet("ipv4 tcp mss"));
    let judged = trial.judge(&frame).expect("a judgement");
    assert_eq!((judged.action, &judged.frame), (PASS, &frame));
}
