//! Several addresses of IPv6, in a network of its own: a prefix is one client.
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use staunch_tests::house::waiting::until;

use super::caller::{Caller, ENGINES, ip, serve};

const INSIDE: &str = "STAUNCH_TEST_NAMESPACE";
const ADDRESSES: [&str; 4] =
    ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1:ffff::3", "2001:db8:0:2::1"];

#[test]
fn addresses_of_one_prefix_are_one_client() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let test = std::env::current_exe().expect("the path of this test");
    let mut setup = String::from("ip link set lo up");
    for address in ADDRESSES {
        setup.push_str(&format!(" && ip -6 address add {address}/128 dev lo nodad"));
    }
    let allowed = Command::new("unshare")
        .args(["--map-root-user", "--net", "sh", "-c", &setup])
        .output()
        .is_ok_and(|output| output.status.success());
    if !allowed {
        let continuous = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!continuous, "no network namespace with IPv6 may be made");
        return println!("skipped: no network namespace with IPv6 may be made");
    }
    let name = "namespace::addresses_of_one_prefix_are_one_client";
    let line = format!("{setup} && exec \"$0\" --exact {name} --nocapture");
    let output = Command::new("unshare")
        .args(["--map-root-user", "--net", "sh", "-c", &line])
        .arg(test)
        .env(INSIDE, "1")
        .output()
        .expect("unshare");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{said}");
}

/// The kernel puts the routes of new addresses in place when it finds the time.
fn is_reachable(address: &str) -> bool {
    let Ok(listener) = TcpListener::bind((address, 0)) else { return false };
    TcpStream::connect(listener.local_addr().expect("it is bound")).is_ok()
}

fn inside() {
    until("all addresses are there", || ADDRESSES.iter().all(|address| is_reachable(address)));
    for io in ENGINES {
        for (bits, expected) in
            [("64", [200, 429, 429, 200]), ("128", [200; 4]), ("48", [200, 429, 429, 429])]
        {
            let arguments = ["--io", io, "--client-connections", "1", "--client-prefix-ipv6", bits];
            let served = serve("[2001:db8:0:2::1]:0", &arguments);
            let call = |source| Caller::from(ip(source), served.address());
            let mut callers = ADDRESSES.map(call);
            let statuses = callers.each_mut().map(Caller::status);
            assert_eq!(statuses, expected, "{io}, a prefix of {bits}");
        }
    }
}
