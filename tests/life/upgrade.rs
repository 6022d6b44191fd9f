//! USR2: another process takes over the sockets, and no request fails; or it cannot, and nothing changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::{binary, write_program};

use crate::conversation::{Talk, get};
use crate::house::{self, House, LARGE_BYTES, SMALL, WAYS};
use crate::load::Load;

#[test]
fn ten_upgrades_under_load_fail_no_request() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--workers", "2"]);
        let load = Load::closed(&house.url("/small.txt"), 32, "4s");
        let mut before = house.first();
        for round in 0..10 {
            let after = house.upgrade();
            house.until("the former process ends", |_| (!house::is_running(before)).then_some(()));
            assert_eq!(house.addresses().len(), round + 2);
            before = after;
        }
        assert_eq!(house.end(), Some(0), "{io}: the first one ended well");
        load.expect_no_failure();
        assert!(house.addresses().iter().all(|address| *address == house.address()), "{io}: the same port");
        house.signal(Signal::TERM);
        house.until("the last one ends", |_| (!house::is_running(before)).then_some(()));
        assert!(!house.path("pid").exists());
    }
}

/// Kept connections stay with the former process until they have asked once more or their time is over.
#[test]
fn connections_end_with_an_answer() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--keep-alive", "2s"]);
        let mut kept = Talk::with(house.address());
        assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false));
        let mut idle = Talk::with(house.address());
        assert_eq!(idle.get("/small.txt"), (SMALL.to_vec(), false));
        let mut slow = Talk::with(house.address());
        slow.ask("/large.bin");
        assert!(slow.0.fill(house::PATIENCE));
        house.upgrade();
        house.until_said("serves now; this one ends when its connections do", 1);
        assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), true), "{io}");
        assert_eq!(slow.hear().body.len(), LARGE_BYTES, "{io}");
        assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}: by the new one");
        idle.ends();
        assert_eq!(house.end(), Some(0), "{io}");
    }
}

/// The former process goes on with what is under way for `upgrade_timeout`, not for the time that a stop
/// leaves.
#[test]
fn an_answer_under_way_outlasts_the_time_of_a_stop() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--drain-timeout", "100ms"]);
        let mut slow = Talk::with(house.address());
        slow.ask("/large.bin");
        assert!(slow.0.fill(house::PATIENCE));
        house.upgrade();
        house.until_said("serves now; this one ends when its connections do", 1);
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(slow.hear().body.len(), LARGE_BYTES, "{io}");
        assert_eq!(house.end(), Some(0), "{io}");
    }
}

/// What stands in for a broken program is run by the shell, which a confined server may not run.
const WITH_SHELL: [&str; 2] = ["--sandbox", "off"];

/// A copy of the program in a folder of the test, to be broken.
fn own_copy(folder: &Path) -> PathBuf {
    let program = folder.join("server");
    write_program(&program, &read(&binary()), 0o755);
    program
}

/// Puts something else in the program's place, as a package does: the running one keeps its own.
fn replace(program: &Path, with: &[u8], mode: u32) {
    let beside = program.with_extension("new");
    write_program(&beside, with, mode);
    fs::rename(&beside, program).expect("a replacement");
}

fn read(program: &Path) -> Vec<u8> {
    fs::read(program).expect("the program")
}

#[test]
fn a_program_that_does_not_serve_changes_nothing() {
    for io in WAYS {
        let folder = house::new_folder();
        let program = own_copy(&folder);
        let mut house =
            House::of(folder.clone(), house::command(&folder, &program).args(WITH_SHELL).args(["--io", io]));
        let load = Load::closed(&house.url("/small.txt"), 8, "2s");
        let cases: [(&[u8], u32, &str); 4] = [
            (b"#!/bin/sh\nexit 7\n", 0o755, ": it ended (exit status: 7)"),
            (b"#!/bin/sh\nkill -SEGV $$\n", 0o755, ": it ended (signal: 11 (SIGSEGV)"),
            (b"no program\n", 0o755, "Exec format error"),
            (b"#!/bin/sh\n", 0o644, "Permission denied"),
        ];
        for (index, (bytes, mode, why)) in cases.into_iter().enumerate() {
            replace(&program, bytes, mode);
            house.signal(Signal::USR2);
            house.until_said("the upgrade failed, this process goes on", index + 1);
            let said = house.said();
            assert!(said.lines().last().is_some_and(|line| line.contains(why)), "{io}: {why}: {said}");
            assert_eq!(house.process(), Some(house.first()), "{io}");
        }
        fs::remove_file(&program).expect("the program");
        house.signal(Signal::USR2);
        house.until_said("No such file or directory", 1);
        replace(&program, &read(&binary()), 0o755);
        house.upgrade();
        assert_eq!(house.end(), Some(0), "{io}");
        load.expect_no_failure();
    }
}

/// As after an upgrade of a package: another file stands in the program's place.
#[test]
fn a_replaced_program_takes_over() {
    let folder = house::new_folder();
    let program = own_copy(&folder);
    let mut house = House::of(folder.clone(), &mut house::command(&folder, &program));
    replace(&program, &read(&binary()), 0o755);
    let second = house.upgrade();
    assert_eq!(house.end(), Some(0));
    assert_eq!(get(house.address(), "/small.txt"), SMALL);
    let runs = fs::read_link(format!("/proc/{second}/exe")).expect("a program");
    assert_eq!(runs, program, "the one that replaced the first");
}

/// Connections that come one by one while processes change are all answered: none waits for a wake-up that a
/// leaving process has used up.
#[test]
fn lone_connections_are_answered() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--workers", "2", "--keep-alive", "1s"]);
        for _ in 0..10 {
            let process = house.process().expect("a process");
            house.signal(Signal::USR2);
            while house.process() == Some(process) || house::is_running(process) {
                assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}");
            }
            house.upgraded();
        }
    }
}

/// A second wish while one is under way is refused; the end of the server is the end of the upgrade.
#[test]
fn one_upgrade_at_a_time() {
    let folder = house::new_folder();
    let program = own_copy(&folder);
    let mut house = House::of(folder.clone(), house::command(&folder, &program).args(WITH_SHELL));
    replace(&program, b"#!/bin/sh\nexec sleep 1000\n", 0o755);
    house.signal(Signal::USR2);
    house.until_said("upgrading: ", 1);
    house.signal(Signal::USR2);
    house.until_said("an upgrade is under way: the signal is ignored", 1);
    house.signal(Signal::HUP);
    house.until_said("an upgrade is under way: the signal is ignored", 2);
    assert_eq!(get(house.address(), "/small.txt"), SMALL);
    house.signal(Signal::TERM);
    house.until_said("the server is ended before it serves (signal: 9 (SIGKILL))", 1);
    assert_eq!(house.end(), Some(0));
}

/// The process that takes over does not need the former one any more.
#[test]
fn the_former_process_may_be_killed() {
    for io in WAYS {
        let mut house = House::new(&["--io", io]);
        let mut kept = Talk::with(house.address());
        assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false));
        let first = house.first();
        let second = house.upgrade();
        house::send(first, Signal::KILL);
        assert_eq!(house.end(), None);
        assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}");
        assert_eq!(house.process(), Some(second));
        let third = house.upgrade();
        assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}");
        assert_ne!(third, second);
    }
}

/// Root listens at the admin address, and the next process, which is no longer root, does so beside it.
#[test]
fn the_admin_address_passes_from_user_to_user() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can become another user");
    }
    for io in WAYS {
        let admin = reserved_address();
        let folder = house::new_folder();
        std::os::unix::fs::chown(&folder, Some(65534), None).expect("our own folder");
        let mut command = house::command(&folder, &binary());
        command.args(["--io", io, "--user", "nobody", "--admin", &admin.to_string(), "--admin-hosts", "a"]);
        let mut house = House::of(folder, &mut command);
        let first = house.first();
        let second = house.upgrade();
        house.until("the first one ends", |_| (!house::is_running(first)).then_some(()));
        assert_eq!(get(admin, "/healthz"), b"ok\n", "{io}: by the second");
        let third = house.upgrade();
        assert_ne!(third, second);
    }
}

/// The manager of a service tells all its processes to end: the former one hears that for the first time.
#[test]
fn the_former_process_may_be_told_to_end() {
    for io in WAYS {
        let mut house = House::new(&["--io", io]);
        let mut slow = Talk::with(house.address());
        slow.ask("/large.bin");
        while slow.0.received().is_empty() {
            assert!(slow.0.fill(house::PATIENCE));
        }
        let first = house.first();
        house.upgrade();
        house::send(first, Signal::TERM);
        house.until_said("ending: answers under way", 1);
        assert_eq!(slow.hear().body.len(), LARGE_BYTES, "{io}");
        slow.ends();
    }
}
