//! `staunch serve --fabric` in UDP: servers that only IP joins.

use staunch_tests::house::waiting::until;
use staunch_tests::process::finish;
use staunch_tests::tree::Tree;

use crate::fabric::{Site, end, upgrade};
use crate::lan::Lan;

/// The servers of all tests; the own address may stand in the list.
const NAMED: [&str; 4] = ["--fabric-backend", "udp", "--fabric-peers", "10.88.0.1,10.88.0.2,10.88.0.3"];

/// A server in UDP, with further arguments.
fn start<'a>(lan: &'a Lan, node: usize, arguments: &[&str]) -> Site<'a> {
    Site::start(lan, node, &[&NAMED, arguments].concat())
}

#[test]
fn servers_that_only_ip_joins_agree_by_udp() {
    let Some(lan) = Lan::routed(3) else { return };
    let first = start(&lan, 1, &[]);
    first.put("early", "nobody else was there");
    let second = start(&lan, 2, &[]);
    second.await_value("early", "nobody else was there");
    second.put("a", "1");
    first.await_value("a", "1");
    first.put("a", "2");
    second.await_value("a", "2");
    second.delete("early");
    until("the end of a topic at node 1", || first.value("early").is_none());
    // A value of many frames, and one that a publisher has left who is gone.
    let long = "long ".repeat(10_000);
    first.put("long", &long);
    second.await_value("long", &long);
    first.kill();
    let third = start(&lan, 3, &[]);
    third.await_value("a", "2");
    third.await_value("long", &long);
    let first = start(&lan, 1, &[]);
    first.await_value("a", "2");
    first.put("b", "of node 1");
    for other in [&second, &third] {
        other.await_value("b", "of node 1");
        until("both others are heard", || {
            other.page("/metrics").contains("staunch_fabric_nodes{state=\"heard\"} 2\n")
        });
    }
}

/// The network of these tests carries no frames of Ethernet, so what arrives there went by IP.
#[test]
fn a_routed_lan_carries_no_frames_of_ethernet() {
    let Some(lan) = Lan::routed(2) else { return };
    let ping = ["ping", "10.88.0.1", "-c", "12", "--interval", "400ms", "--timeout", "10ms", "--backend"];
    let _node = lan.serve(1, &["--backend", "ring"]);
    let said = lan.dostp(2, &[&ping[..], &["ring"]].concat());
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("100% loss"), "{said}");
}

#[test]
fn with_keys_strangers_publish_nothing_by_udp() {
    let Some(lan) = Lan::routed(3) else { return };
    let (right, wrong) = (lan.key("11"), lan.key("22"));
    for mode in ["mac", "aead"] {
        let keyed = |node, key: &str| start(&lan, node, &["--fabric-key-file", key, "--fabric-mode", mode]);
        let (first, second, stranger) = (keyed(1, &right), keyed(2, &right), keyed(3, &wrong));
        stranger.put("a", "forged");
        first.put("b", "true");
        second.await_value("b", "true");
        stranger.put("c", "forged");
        until("the stranger has told it", || stranger.count("updates_told") >= 2);
        // Figures are brought up to date after what had come: the second time what was told is among it.
        for _ in 0..2 {
            let dropped = || second.count("frame_auth") + second.count("frame_unknown");
            let before = dropped();
            until("frames of the stranger are dropped at node 2", || dropped() > before);
        }
        first.put("d", "later");
        second.await_value("d", "later");
        assert_eq!((second.value("a"), second.value("c"), stranger.value("b")), (None, None, None));
    }
}

#[test]
fn an_upgrade_hands_the_socket_of_udp_on() {
    let Some(lan) = Lan::routed(2) else { return };
    let folder = lan.folder_for_others();
    let program = lan.program_for_others(&folder);
    let pid_file = folder.join("pid");
    let own = ["--user", "nobody", "--pid-file", pid_file.to_str().expect("a path of ours")];
    let key = lan.key("11");
    let keyed = ["--fabric-key-file", &key];
    let first = Site::start_bare(&lan, 1, lan.program(1, &program), &[&NAMED[..], &own, &keyed].concat());
    let second = start(&lan, 2, &keyed);
    first.put("before", "1");
    second.await_value("before", "1");
    upgrade(&pid_file);
    second.put("meanwhile", "2");
    first.await_value("meanwhile", "2");
    until("it is published", || first.try_put("after", "3"));
    second.await_value("after", "3");
    end(&pid_file);
}

#[test]
fn an_interface_without_a_way_is_told_of_and_goes_on_by_udp() {
    let Some(lan) = Lan::routed(2) else { return };
    let (first, second) = (start(&lan, 1, &[]), start(&lan, 2, &[]));
    first.put("a", "1");
    second.await_value("a", "1");
    let trouble = || first.status()["fabric"]["trouble"].as_str().map(str::to_owned);
    lan.ip(1, "link set dv down");
    until("trouble at node 1", || trouble().is_some_and(|text| text.contains("unreachable")));
    second.put("a", "2");
    lan.ip(1, "link set dv up");
    lan.route(1);
    until("no trouble at node 1", || trouble().is_some_and(|text| text.is_empty()));
    first.await_value("a", "2");
}

#[test]
fn what_cannot_be_is_told_at_the_start() {
    let Some(lan) = Lan::routed(1) else { return };
    let tree = Tree::with(&[]).expect("a tree");
    let said = |arguments: &[&str]| {
        let mut command = lan.staunch(1);
        command.arg("serve").arg(tree.root()).args(["--listen", "10.88.0.1:0", "--fabric", "dv"]);
        let finished = finish(command.args(arguments));
        (finished.status.code(), finished.stderr)
    };
    let refused = |code: i32, arguments: &[&str], parts: &[&str]| {
        let (status, text) = said(arguments);
        assert_eq!(status, Some(code), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let udp = ["--fabric-backend", "udp"];
    refused(2, &udp, &["reach nobody who is not named", "fabric_peers"]);
    refused(2, &["--fabric-peers", "10.88.0.2"], &["servers are named", "udp"]);
    let named = |peers| [&udp[..], &["--fabric-peers", peers]].concat();
    refused(78, &named("10.88.0.2,10.89.0.2"), &["10.89.0.2 and 10.88.0.2 are the same to DOSTP"]);
    refused(78, &named("10.89.0.1"), &["10.89.0.1 and 10.88.0.1 are the same to DOSTP"]);
    refused(78, &named("10.88.0.1"), &["10.88.0.1 is this node's own address, and no other node is named"]);
    refused(2, &named("10.88.0.2,10.88.0.3,10.88.0.2"), &["10.88.0.2 is named twice"]);
    refused(78, &named("255.255.255.255"), &["255.255.255.255 is a broadcast address"]);
    refused(78, &named("10.88.0.0"), &["10.88.0.0 is no address of a node"]);
    let _first = start(&lan, 1, &[]);
    refused(78, &NAMED, &["another server of this host", "dv"]);
}
