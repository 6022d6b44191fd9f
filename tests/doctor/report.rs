//! What is reported of each host, for people and for programs.

use std::fs;
use std::process::Command;

use serde_json::Value;
use staunch_tests::process;

use crate::recorded::{HOSTS, Host, folder};

fn json(host: &Host) -> Value {
    serde_json::from_str(&host.doctor(&["--json"]).stdout).expect("JSON")
}

/// `state | name | value | advice` of each finding.
fn lines(document: &Value) -> String {
    let text = |finding: &Value, key: &str| finding[key].as_str().expect("text").to_owned();
    let line = |finding: &Value| {
        let parts = ["state", "name", "value", "advice"].map(|key| text(finding, key));
        parts.join(" | ").trim_end_matches([' ', '|']).to_owned() + "\n"
    };
    document["findings"].as_array().expect("findings").iter().map(line).collect()
}

#[test]
fn each_recorded_host_is_judged_as_written_down() {
    for (name, _) in HOSTS {
        let found = lines(&json(&Host::new(name)));
        let path = folder().join(format!("{name}.expected"));
        if std::env::var_os("STAUNCH_WRITE_EXPECTED").is_some() {
            fs::write(&path, &found).expect("a file");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            found, expected,
            "{name}: if the new judgement is right, STAUNCH_WRITE_EXPECTED=1 keeps it"
        );
    }
}

/// A table that nothing is written into is not too small, whatever its size.
#[test]
fn a_table_of_connections_that_is_empty_is_no_advice() {
    let host = Host::new("big-server");
    host.write("proc/sys/net/netfilter/nf_conntrack_max", "65536\n");
    for (used, expected) in [("0\n", "ok"), ("1000\n", "advice")] {
        host.write("proc/sys/net/netfilter/nf_conntrack_count", used);
        let found = lines(&json(&host));
        let line = found.lines().find(|line| line.contains("nf_conntrack_max")).expect("a finding");
        assert!(line.starts_with(&format!("{expected} | ")), "{line}");
    }
}

#[test]
fn the_exit_code_says_whether_something_matters() {
    for (name, code) in HOSTS {
        let host = Host::new(name);
        for arguments in [&[][..], &["--json"]] {
            let finished = host.doctor(arguments);
            assert_eq!(finished.status.code(), Some(*code), "{name}\n{}{}", finished.stdout, finished.stderr);
        }
        let matters = json(&host)["summary"]["matters"].as_u64();
        assert_eq!(matters > Some(0), *code == 3, "{name}");
    }
}

#[test]
fn the_report_for_people_names_what_matters_with_reason_and_advice() {
    let finished = Host::new("ancient").doctor(&[]);
    for expected in [
        "matters  net.ipv4.tcp_tw_recycle",
        "Ended TIME-WAIT early by comparing",
        "-> 4096",
        "would set",
        "not on this host",
    ] {
        assert!(finished.stdout.contains(expected), "{expected}\n{}", finished.stdout);
    }
    assert!(finished.stdout.lines().all(|line| line.chars().count() <= 160), "{}", finished.stdout);
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let host = Host::new("ancient");
    assert!(!host.doctor(&[]).stdout.contains('\x1b'));
    if !process::is_installed("script") {
        return;
    }
    let on_terminal = |refused: bool| {
        let line = format!("{:?}", host.command()).replace('"', "");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
        if refused {
            command.env("NO_COLOR", "1");
        } else {
            command.env_remove("NO_COLOR");
        }
        let finished = process::finish(&mut command);
        assert!(finished.stdout.contains("tcp_tw_recycle"), "{}{}", finished.stdout, finished.stderr);
        finished.stdout.contains('\x1b')
    };
    assert!(on_terminal(false));
    assert!(!on_terminal(true));
}

#[test]
fn a_setting_is_explained_by_its_name_or_a_part_of_it() {
    let host = Host::new("ancient");
    let whole = host.doctor(&["--explain", "net.core.somaxconn"]);
    assert_eq!(whole.status.code(), Some(0));
    for expected in
        ["net.core.somaxconn\n", "does ", "right ", "matters, 128; better: 4096", "source  listen(2)"]
    {
        assert!(whole.stdout.contains(expected), "{expected}\n{}", whole.stdout);
    }
    assert_eq!(host.doctor(&["--explain", "somaxconn"]).stdout, whole.stdout);
    let card = host.doctor(&["--explain", "link"]).stdout;
    assert!(card.contains("eth0 matters, 100 Mbit/s, half"), "{card}");
    let none = host.doctor(&["--explain", "warp drive"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(none.stderr.contains("no setting has such a name"), "{}", none.stderr);
}

#[test]
fn no_content_of_a_file_makes_it_fall() {
    let numbers = "18446744073709551615 18446744073709551615 18446744073709551615\n";
    let label = "TcpExt: ListenOverflows\nTcpExt: 18446744073709551615\nTCP: tw 18446744073709551615\n\
                 cpu 1 1 18446744073709551615 18446744073709551615 1 1 1 18446744073709551615\n\
                 MemTotal: 18446744073709551615 kB\nSwapTotal: 18446744073709551615 kB\n\
                 SwapFree: 0 kB\n0::/../../..\n";
    for content in [
        "",
        "\n",
        "-1\n",
        "0\n",
        "18446744073709551615\n",
        numbers,
        label,
        "0 0 0\n",
        "1 0\n",
        "\u{fffd}x 99-1,",
    ] {
        let host = Host::new("ancient");
        for file in host.files() {
            fs::write(file, content).expect("a file");
        }
        let finished = host.doctor(&[]);
        let code = finished.status.code();
        assert!(matches!(code, Some(0 | 3)), "{content:?}: {code:?}\n{}", finished.stderr);
    }
}

#[test]
fn without_proc_it_says_so() {
    let host = Host::new("tiny-vm");
    fs::remove_dir_all(host.root().join("proc")).expect("a folder");
    let finished = host.doctor(&[]);
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("there is no /proc here"), "{}", finished.stderr);
}

#[test]
fn this_machine_is_judged_too() {
    let finished = process::finish(Command::new(process::binary()).args(["doctor", "--json"]));
    assert!(matches!(finished.status.code(), Some(0 | 3)), "{}", finished.stderr);
    let document: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let findings = document["findings"].as_array().expect("findings");
    let ring = findings.iter().find(|finding| finding["name"] == "io_uring").expect("io_uring");
    assert_eq!(ring["state"], "ok", "{ring}");
}

/// The doctor asks the kernel who listens; the shortest queues are named.
#[test]
fn a_short_backlog_is_named() {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let socket = staunch_netio::socket::listen(address, 1).expect("a listener");
    let address = staunch_netio::socket::local_address(&socket).expect("an address");
    let finished = process::finish(Command::new(process::binary()).args(["doctor", "--explain", "backlogs"]));
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let words = format!("{address} has 1 (a gate stands aside)");
    assert!(
        finished.stdout.contains(&words) && finished.stdout.contains("request_queue_size"),
        "{finished:?}"
    );
}
