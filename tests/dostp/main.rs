//! `staunch dostp` as people run it: nodes in network namespaces, joined by a bridge.
//!
//! It must never touch an interface of the host. It needs root; without, every test says so and is over.
#![forbid(unsafe_code)]

mod fabric;
mod fabric_udp;
mod lan;
mod stream;

use std::process::Output;

use lan::{Lan, Node};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_node_answers_and_is_known() {
    for backend in ["ring", "xdp-generic", "xdp-native", "udp"] {
        let Some(lan) = Lan::new(2) else { return };
        let _node = lan.serve(1, &["--backend", backend]);
        for arguments in
            [&["--size", "56"][..], &["--size", "16000", "--sum"], &["--size", "65000", "--wait", "sleep"]]
        {
            let ping = [
                "ping",
                "10.88.0.1",
                "--backend",
                backend,
                "-c",
                "3",
                "--interval",
                "1ms",
                "--timeout",
                "20s",
            ];
            let output = lan.dostp(2, &[&ping[..], arguments].concat());
            assert!(output.status.success(), "{}", text(&output));
            assert!(text(&output).contains("3 sent, 3 received, 0% loss"), "{}", text(&output));
            assert!(text(&output).contains(&format!("by {backend} on")), "{}", text(&output));
        }
        let peers = lan.looks(1, &["peers", "--json"]);
        assert_eq!(peers[0]["address"], "10.88.0.2");
        assert_eq!(peers[0]["stale"], false);
        let stats = lan.looks(1, &["stats", "--json"]);
        assert_eq!(stats["messages_received"], 9);
        let text = text(&lan.dostp_here(1, &["stats"]));
        assert!(text.contains("staunch_dostp_messages_received_total 9"), "{text}");
        assert!(text.contains("staunch_dostp_peers{state=\"fresh\"} 1"), "{text}");
    }
}

#[test]
fn who_does_not_answer_is_told_apart_from_who_is_not_there() {
    let Some(lan) = Lan::new(2) else { return };
    let output = lan.dostp(2, &["ping", "10.88.0.1", "-c", "12", "--interval", "400ms", "--timeout", "10ms"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("10.88.0.1 is not on this LAN"), "{}", text(&output));
    assert!(text(&output).contains("100% loss"), "{}", text(&output));
}

#[test]
fn what_is_missing_is_named_with_the_right_code() {
    let Some(lan) = Lan::new(1) else { return };
    let code = |arguments: &[&str]| {
        let output = lan.command(1, arguments).output().unwrap();
        (output.status.code(), text(&output))
    };
    let (status, said) = code(&["ping", "10.88.0.9", "--interface", "nothing"]);
    assert!(status == Some(78) && said.contains("there is no interface nothing\n"), "{said}");
    for backend in ["ring", "udp", "auto"] {
        let (status, said) = code(&["ping", "10.88.0.9", "--interface", "lo", "--backend", backend]);
        let is_named = said.contains("interface lo is a loopback interface, which reaches no other node");
        assert!(status == Some(78) && is_named, "{said}");
    }
    let (status, said) = code(&["peers", "--interface", "dv", "--control", "/nowhere/dostp.sock"]);
    assert!(status == Some(3) && said.contains("no node runs on dv"), "{said}");
    assert!(said.contains("staunch dostp serve") && !said.contains("os error"), "{said}");
    let (status, said) = code(&["ping", "10.88.0.9", "--interface", "dv", "--backend", "carrier-pigeon"]);
    assert!(status == Some(2) && said.contains("ring, xdp-generic, xdp-native, given, udp"), "{said}");
    let nobody = lan.as_nobody(1, &["ping", "10.88.0.9", "--interface", "dv", "--backend", "ring"]);
    assert_eq!(nobody.status.code(), Some(77), "{}", text(&nobody));
    assert!(text(&nobody).contains("CAP_NET_RAW"), "{}", text(&nobody));
    let nobody = lan.as_nobody(1, &["ping", "10.88.0.9", "--interface", "dv", "-c", "1", "--timeout", "1ms"]);
    assert!(text(&nobody).contains("by udp on dv; not by ring"), "{}", text(&nobody));
    let nobody = lan.as_nobody(1, &["ping", "10.88.0.9", "--interface", "dv", "--backend", "xdp-native"]);
    assert_eq!(nobody.status.code(), Some(77), "{}", text(&nobody));
    assert!(text(&nobody).contains("CAP_BPF"), "{}", text(&nobody));
}

#[test]
fn a_second_node_with_the_address_is_refused_and_the_first_goes_on() {
    let Some(lan) = Lan::new(2) else { return };
    let first = lan.serve(1, &[]);
    lan.wait_for_trial(1);
    let second = lan.serve_to_the_end(2, &["--address", "10.88.0.1"]);
    assert_eq!(second.status.code(), Some(1), "{}", text(&second));
    assert!(text(&second).contains("address 10.88.0.1 is held by"), "{}", text(&second));
    let output = lan.dostp(2, &["ping", "10.88.0.1", "-c", "1", "--timeout", "20s"]);
    assert!(output.status.success(), "{}", text(&output));
    drop(first);
}

#[test]
fn a_node_waits_for_its_interface_and_goes_on() {
    let Some(lan) = Lan::new(2) else { return };
    lan.ip(1, "link set dv down");
    let node = lan.serve_lazily(1, &[]);
    node.await_line("waiting for dv");
    lan.ip(1, "link set dv up");
    node.await_line("by ring on dv");
    lan.ping_until_answered(2);
    lan.ip(1, "link set dv down");
    node.await_line("waiting for dv");
    lan.ip(1, "link set dv up");
    lan.ping_until_answered(2);
}

#[test]
fn a_node_that_is_ended_says_so_and_leaves_nothing() {
    let Some(lan) = Lan::new(2) else { return };
    let other = lan.serve(2, &[]);
    let node = lan.serve(1, &[]);
    other.await_line("10.88.0.1 is there");
    assert_eq!(node.end(), Some(0));
    assert!(!lan.control(1).exists());
    let output = lan.dostp_here(1, &["peers"]);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn with_keys_only_those_who_have_the_secret_are_answered() {
    let Some(lan) = Lan::new(2) else { return };
    let (right, wrong) = (lan.key("11"), lan.key("22"));
    for mode in ["mac", "aead"] {
        let node = lan.serve(1, &["--key-file", &right, "--mode", mode]);
        let ping = ["ping", "10.88.0.1", "-c", "3", "--interval", "1ms"];
        let with = |key: &str, timeout| {
            lan.dostp(2, &[&ping[..], &["--mode", mode, "--key-file", key, "--timeout", timeout]].concat())
        };
        let output = with(&right, "20s");
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(with(&wrong, "50ms").status.code(), Some(1));
        let bare = lan.dostp(2, &[&ping[..], &["--timeout", "50ms"]].concat());
        assert_eq!(bare.status.code(), Some(1));
        let stats = lan.looks(1, &["stats", "--json"]);
        assert!(stats["dropped"]["auth"].as_u64().is_some_and(|count| count > 0), "{stats}");
        assert_eq!(stats["messages_received"], 3);
        node.end();
    }
    lan.open_to_others(&right);
    let output = lan.dostp(2, &["ping", "10.88.0.1", "--key-file", &right]);
    assert_eq!(output.status.code(), Some(78));
    assert!(text(&output).contains("chmod 600"), "{}", text(&output));
}

#[test]
fn bench_compares_with_udp() {
    for wait in ["spin", "adaptive", "sleep"] {
        let Some(lan) = Lan::new(2) else { return };
        let _node = lan.serve(1, &["--udp-echo", "5289", "--wait", wait]);
        let bench = ["bench", "10.88.0.1", "--rounds", "2", "--count", "20", "--size", "64,4096"];
        let output = lan.dostp(2, &[&bench[..], &["--wait", wait]].concat());
        assert!(output.status.success(), "{}", text(&output));
        let is_measured = |line: &&str| line.starts_with("64 ") || line.starts_with("4096 ");
        assert_eq!(text(&output).lines().filter(is_measured).count(), 2, "{}", text(&output));
    }
}

#[test]
fn bench_says_what_the_other_side_lacks() {
    let Some(lan) = Lan::new(2) else { return };
    let _node = lan.serve(1, &[]);
    let output = lan.dostp(2, &["bench", "10.88.0.1", "--rounds", "1", "--count", "5", "--size", "64"]);
    assert!(output.status.success(), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("does not answer UDP to port 5289, so nothing is compared"), "{said}");
    assert!(said.contains("staunch dostp serve --udp-echo 5289"), "{said}");
}

#[test]
fn nodes_of_two_namespaces_have_control_sockets_of_their_own() {
    let Some(lan) = Lan::new(2) else { return };
    let serve = ["serve", "--interface", "dv"];
    let _nodes = [1, 2].map(|node| {
        let started = Node::spawn(&mut lan.command(node, &serve));
        started.await_line(" on dv");
        started
    });
    lan.ping_until_answered(2);
    for (node, own, other) in [(1, "10.88.0.1", "10.88.0.2"), (2, "10.88.0.2", "10.88.0.1")] {
        let output = lan.dostp(node, &["peers"]);
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).starts_with(own) && text(&output).contains(other), "{}", text(&output));
    }
}

#[test]
fn a_node_that_is_to_look_all_the_time_does_not_sleep_between_messages() {
    let Some(lan) = Lan::new(2) else { return };
    let node = lan.serve(1, &["--udp-echo", "5289", "--wait", "spin"]);
    let before = node.sleeps();
    let bench = ["bench", "10.88.0.1", "--rounds", "1", "--count", "1000", "--size", "64"];
    let output = lan.dostp(2, &[&bench[..], &["--wait", "sleep"]].concat());
    assert!(output.status.success(), "{}", text(&output));
    // By DOSTP and by UDP a thousand each. A lock that the thread beside it holds may be waited for.
    let sleeps = node.sleeps() - before;
    assert!(sleeps < 200, "{sleeps} in 2000 round trips");
}

#[test]
fn bench_counts_what_arrives_one_way() {
    let bench = ["bench", "10.88.0.1", "--one-way", "--rounds", "2"];
    let ways = [("ring", "sleep"), ("ring", "spin"), ("xdp-generic", "spin"), ("xdp-native", "spin")];
    for (backend, wait) in ways {
        let Some(lan) = Lan::new(2) else { return };
        let way = ["--backend", backend, "--wait", wait];
        let node = lan.serve(1, &[&["--discard", "--udp-echo", "5289"], &way[..]].concat());
        let sizes = ["--duration", "50ms", "--size", "1,2000"];
        let output = lan.dostp(2, &[&bench[..], &way, &sizes].concat());
        assert!(output.status.success(), "{}", text(&output));
        for size in ["1 ", "2000 "] {
            let said = text(&output);
            let line = said.lines().find(|line| line.starts_with(size)).unwrap_or_else(|| panic!("{said}"));
            let rates: Vec<f64> = line.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();
            let [_, sent, received, udp_sent, udp_received, _] = rates[..] else { panic!("{line}") };
            assert!(
                0.0 < received && received <= sent && 0.0 < udp_received && udp_received <= udp_sent,
                "{line}"
            );
        }
        assert_eq!(node.end(), Some(0));
        let output = lan.dostp(2, &bench);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output);
        assert!(
            said.contains("DOSTP: 10.88.0.1 is not on this LAN") || said.contains("DOSTP: no answer of"),
            "{said}"
        );
    }
}

#[test]
fn bench_chooses_the_fastest_backend_and_the_choice_is_kept() {
    let Some(lan) = Lan::new(2) else { return };
    let _node = lan.serve(1, &[]);
    let file = lan.scratch("choice");
    let choice = ["--choice-file", &file];
    let short = ["--rounds", "2", "--count", "20"];
    let output = lan.dostp(2, &[&["bench", "10.88.0.1", "--choose"][..], &short, &choice].concat());
    assert!(output.status.success(), "{}", text(&output));
    for backend in ["ring", "xdp-generic", "xdp-native"] {
        let measured = |line: &str| line.starts_with(backend) && line.contains(" us");
        assert!(text(&output).lines().any(measured), "{}", text(&output));
    }
    let chosen = std::fs::read_to_string(&file).unwrap();
    assert!(text(&output).contains(&format!("{} is the fastest", chosen.trim())), "{}", text(&output));
    let ping = [&["ping", "10.88.0.1", "-c", "1", "--timeout", "20s"][..], &choice].concat();
    std::fs::write(&file, "xdp-generic\n").unwrap();
    assert!(text(&lan.dostp(2, &ping)).contains("by xdp-generic on dv"));
    // A process that has the interface's one place keeps it, and the next one says why it went another way.
    let _owner = lan.serve(2, &["--backend", "xdp-native"]);
    let output = text(&lan.dostp(2, &ping));
    assert!(output.contains("by ring on dv; not by xdp-generic: its queue"), "{output}");
    std::fs::write(&file, "pigeon\n").unwrap();
    let output = lan.dostp(2, &ping);
    assert_eq!(output.status.code(), Some(78));
    assert!(text(&output).contains("no backend is called `pigeon`"), "{}", text(&output));
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn who_has_no_right_is_given_rings_by_a_node_that_has_it() {
    let Some(lan) = Lan::new(2) else { return };
    let _other = lan.serve(2, &[]);
    let control = lan.control(1);
    let ping = ["ping", "10.88.0.2", "--interface", "dv", "-c", "3", "--interval", "1ms", "--timeout", "20s"];
    let given = ["--backend", "given", "--node", control.to_str().unwrap()];
    let ask = || lan.as_nobody(1, &[&ping[..], &given].concat());
    let node = lan.serve(1, &[]);
    let refused = ask();
    assert_eq!(refused.status.code(), Some(77), "{}", text(&refused));
    assert!(text(&refused).contains("--give-to GROUP"), "{}", text(&refused));
    node.end();
    let node = lan.serve(1, &["--give-to", "65534"]);
    let output = ask();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("by given on dv"), "{}", text(&output));
    // What was given stays, whatever becomes of the giver; and the others still ask it.
    assert_eq!(lan.looks(1, &["peers", "--json"])[0]["address"], "10.88.0.2");
    node.end();
    let lost = ask();
    assert_eq!(lost.status.code(), Some(78), "{}", text(&lost));
    let unknown = lan.serve_to_the_end(1, &["--give-to", "nosuchgroup"]);
    assert!(text(&unknown).contains("there is no group nosuchgroup"), "{}", text(&unknown));
}
