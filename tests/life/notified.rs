//! What systemd hears, on a socket as it makes one.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::process::Signal;

use crate::house::{House, PATIENCE};

/// A socket that is notified, under a name of its own or as a file.
struct Ear(UnixDatagram);

impl Ear {
    fn abstract_one(name: &str) -> Self {
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        Self(UnixDatagram::bind_addr(&address).expect("a socket"))
    }

    /// Waits for the datagram that has this line, and gives all its lines.
    #[track_caller]
    fn hear(&self, line: &str) -> String {
        self.0.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut buffer = [0; 4096];
        loop {
            let length = self.0.recv(&mut buffer).unwrap_or_else(|error| panic!("no {line}: {error}"));
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.lines().any(|own| own.starts_with(line)) {
                return text;
            }
        }
    }
}

#[test]
fn every_turn_of_a_life_is_told() {
    let name = format!("staunch-life-{}", std::process::id());
    let ear = Ear::abstract_one(&name);
    let mut house = House::furnished(&["--workers", "2"], |command| {
        command.env("NOTIFY_SOCKET", format!("@{name}"));
    });
    assert_eq!(ear.hear("READY=1"), "READY=1\nSTATUS=Serving");
    house.signal(Signal::HUP);
    let reloading = ear.hear("RELOADING=1");
    let since = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).expect("a time");
    assert!(since.parse::<u64>().is_ok_and(|since| since > 0), "{reloading}");
    assert_eq!(ear.hear("READY=1"), "READY=1\nSTATUS=Serving");
    let second = house.upgrade();
    assert_eq!(ear.hear("MAINPID="), format!("MAINPID={second}\nSTATUS=Serving, after an upgrade"));
    assert_eq!(house.end(), Some(0));
    house.signal(Signal::TERM);
    assert_eq!(ear.hear("STOPPING=1"), "STOPPING=1\nSTATUS=Ending");
}

#[test]
fn the_watchdog_hears_of_workers_that_live() {
    let folder = crate::house::new_folder();
    let path = folder.join("notify");
    let ear = Ear(UnixDatagram::bind(&path).expect("a socket"));
    let mut command = crate::house::command(&folder, &staunch_tests::process::binary());
    command.args(["--workers", "3"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "40000");
    let mut house = House::of(folder, &mut command);
    ear.hear("READY=1");
    for _ in 0..5 {
        ear.hear("WATCHDOG=1");
    }
    // The next process is watched as well, whoever the first watchdog was meant for.
    house.upgrade();
    assert_eq!(house.end(), Some(0));
    ear.hear("WATCHDOG=1");
}
