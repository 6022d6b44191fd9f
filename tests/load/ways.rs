//! Where a generator can connect to: IPv4, IPv6, names, Unix sockets; and from where.

use staunch_tests::truth::{Address, Plan, Truth};

use crate::generator::{WAYS, count, ends, measure, truth};

fn truth_at(address: Address) -> Truth {
    Truth::start(Plan { address, ..Plan::default() }).expect("a truth server")
}

#[test]
fn ipv6_and_names() {
    let truth = truth_at("[::1]:0".parse().expect("an address"));
    for io in WAYS {
        let document = measure(&[&truth.url("/ok"), "-n", "8", "-c", "2", "--io", io]);
        assert_eq!(ends(&document), [("in_time", 8)], "{io}");
    }
    let truth = crate::generator::truth();
    let named = truth.url("/ok").replace("127.0.0.1", "localhost");
    assert_eq!(ends(&measure(&[&named, "-n", "8", "-c", "2"])), [("in_time", 8)]);
}

#[test]
fn unix_sockets() {
    let folder = staunch_tests::tree::Tree::new().expect("a folder");
    let path = folder.root().join("socket");
    let truth = truth_at(Address::Unix(path.clone()));
    for io in WAYS {
        let unix = path.to_str().expect("a path");
        let document = measure(&[
            "http://somewhere/echo",
            "--unix",
            unix,
            "-n",
            "8",
            "-c",
            "2",
            "--io",
            io,
            "--expect-body",
            "contains:Host: somewhere",
        ]);
        assert_eq!(ends(&document), [("in_time", 8)], "{io}");
    }
    assert_eq!(truth.finish().requests_total(), 8 * WAYS.len() as u64);
}

#[test]
fn sources_are_used_in_turn() {
    let truth = truth();
    for io in WAYS {
        let document = measure(&[
            &truth.url("/ok"),
            "-n",
            "8",
            "-c",
            "4",
            "--no-keep-alive",
            "--io",
            io,
            "--source",
            "127.0.0.5,127.0.0.6",
        ]);
        assert_eq!(ends(&document), [("in_time", 8)], "{io}");
    }
}

#[test]
fn a_source_that_is_not_ours_is_the_generators_fault() {
    let truth = truth();
    for io in WAYS {
        let finished = crate::generator::load(&[
            &truth.url("/ok"),
            "-d",
            "300ms",
            "-c",
            "1",
            "-t",
            "1",
            "--io",
            io,
            "--source",
            "192.0.2.1",
            "--json",
            "-",
            "--quiet",
        ]);
        let document = crate::generator::document(&finished.stdout);
        assert!(count(&document, "unsent") > 0, "{io}: {document:#}");
        assert_eq!(count(&document, "unsent"), count(&document, "offered"), "{io}: {document:#}");
        let warnings = document["warnings"].to_string();
        assert!(warnings.contains("SATURATED"), "{io}: {warnings}");
    }
}
