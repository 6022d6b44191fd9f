//! Every rule of the guard, from both sides.
//!
//! It must never send anything.

use super::*;

const CABLE: u32 = 5;

fn cable() -> Facts {
    Facts {
        interface: "vc".to_owned(),
        link: Link {
            index: CABLE,
            kind: Some("veth".to_owned()),
            is_loopback: false,
            is_up: true,
            has_parent: false,
            address: Some([2, 0, 0, 0, 0, 2]),
            sent: 0,
            dropped: 0,
        },
        has_device: false,
        namespace: Namespace::Own,
        destination: "10.0.0.1:80".parse().unwrap(),
        sources: "10.9.0.0/16".parse().unwrap(),
        route: Some(Route { index: CABLE, is_local: false, is_unicast: true, has_gateway: false }),
    }
}

fn loopback() -> Facts {
    let mut facts = cable();
    facts.interface = "lo".to_owned();
    facts.link = Link { index: 1, kind: None, is_loopback: true, ..facts.link };
    facts.namespace = Namespace::Initial;
    facts.destination = "127.0.0.1:80".parse().unwrap();
    facts.sources = "127.9.0.0/16".parse().unwrap();
    facts.route = Some(Route { index: 1, is_local: true, is_unicast: true, has_gateway: false });
    facts
}

fn changed(mut facts: Facts, change: fn(&mut Facts)) -> Facts {
    change(&mut facts);
    facts
}

#[test]
fn what_obeys_is_allowed() {
    let to_ipv6 = |facts: &mut Facts| {
        facts.destination = "[::1]:80".parse().unwrap();
        facts.sources = "::1/128".parse().unwrap();
    };
    let dummy = |facts: &mut Facts| facts.link.kind = Some("dummy".to_owned());
    for facts in [
        cable(),
        changed(cable(), dummy),
        loopback(),
        changed(loopback(), |facts| facts.namespace = Namespace::Unknown),
        changed(loopback(), to_ipv6),
        changed(loopback(), |facts| facts.namespace = Namespace::Own),
    ] {
        assert_eq!(judge(&facts), Ok(()), "{facts:?}");
    }
}

#[test]
fn what_breaks_a_rule_is_refused_by_name() {
    type Case = (fn() -> Facts, fn(&mut Facts), &'static str);
    let cases: [Case; 19] = [
        (cable, |facts| facts.has_device = true, "`vc` is hardware"),
        (cable, |facts| facts.link.has_parent = true, "`vc` is hardware"),
        (loopback, |facts| facts.has_device = true, "`lo` is hardware"),
        (cable, |facts| facts.namespace = Namespace::Initial, "ip netns exec"),
        (cable, |facts| facts.namespace = Namespace::Unknown, "cannot be told"),
        (cable, |facts| facts.link.kind = None, "kind unknown"),
        (cable, |facts| facts.link.kind = Some("bridge".to_owned()), "kind bridge"),
        (cable, |facts| facts.link.kind = Some("vlan".to_owned()), "kind vlan"),
        (cable, |facts| facts.link.is_up = false, "ip link set vc up"),
        (cable, |facts| facts.route = None, "not right behind"),
        (cable, |facts| facts.route.as_mut().unwrap().index += 1, "not right behind"),
        (cable, |facts| facts.route.as_mut().unwrap().has_gateway = true, "not right behind"),
        (cable, |facts| facts.route.as_mut().unwrap().is_local = true, "not right behind"),
        (cable, |facts| facts.route.as_mut().unwrap().is_unicast = false, "not right behind"),
        (cable, |facts| facts.destination.set_port(0), "port 0"),
        (cable, |facts| facts.sources = "fd09::/64".parse().unwrap(), "not of one family"),
        (loopback, |facts| facts.destination = "10.0.0.1:80".parse().unwrap(), "loopback addresses only"),
        (loopback, |facts| facts.sources = "10.9.0.0/16".parse().unwrap(), "would not stay in `lo`"),
        (loopback, |facts| facts.link.is_loopback = false, "initial network namespace"),
    ];
    for (facts, change, said) in cases {
        let facts = changed(facts(), change);
        let refusal = judge(&facts).expect_err(said);
        assert!(refusal.contains(said), "{said}: {refusal}");
    }
}

#[test]
fn one_sign_of_the_initial_namespace_is_enough() {
    assert_eq!(tell(true, true, true), Namespace::Initial);
    assert_eq!(tell(true, false, true), Namespace::Initial);
    assert_eq!(tell(false, true, true), Namespace::Initial);
    assert_eq!(tell(false, false, true), Namespace::Own);
    assert_eq!(tell(false, false, false), Namespace::Unknown);
}
