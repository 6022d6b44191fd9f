//! The process beside the server: it ends with the server, and goes on over an upgrade.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::world::{NAME, World, text, until};

/// Numbers of the processes that look after this store.
fn agents(world: &World) -> Vec<String> {
    let folder = world.path("state/acme").display().to_string();
    let is_agent = |process: &str| {
        let words = fs::read(Path::new("/proc").join(process).join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains("certificate-agent") && words.contains(&folder)
    };
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.parse::<u32>().is_ok() && is_agent(name)).collect()
}

#[test]
fn the_agent_ends_with_the_server_also_if_that_is_killed() {
    let Some(world) = World::new() else { return };
    let server = world.serve(&[]).expect("a server");
    until("it has an agent", || agents(&world).len() == 1);
    // Killed, as by the kernel.
    drop(server);
    until("the agent has ended", || agents(&world).is_empty());
}

#[test]
fn an_upgraded_server_goes_on_with_the_agent() {
    let Some(world) = World::with_authority() else { return };
    let pid_file = world.path("server.pid");
    let flag = format!("--pid-file={}", pid_file.display());
    let mut server = world.serve(&[&flag]).expect("a server");
    world.await_certificate();
    let (before, agent) = (world.serial(), agents(&world));
    let first = server.process_id();
    kill_process(Pid::from_raw(first.cast_signed()).expect("a process"), Signal::USR2).expect("it lives");
    assert!(server.end().is_some_and(|status| status.success()), "{}", world.log());
    let second = fs::read_to_string(&pid_file).expect("a PID file").trim().parse::<i32>().expect("a number");
    assert_ne!(second, first.cast_signed());
    assert_eq!((world.visit().stdout, world.serial()), (b"content".to_vec(), before.clone()));
    assert_eq!(text(&world.certificates(&["renew", NAME])), format!("{NAME}: renewed\n"));
    until("the new one is served", || world.serial() != before);
    assert_eq!(agents(&world), agent);
    kill_process(Pid::from_raw(second).expect("a process"), Signal::TERM).expect("it lives");
    until("both have ended", || agents(&world).is_empty());
}

/// The agent alone speaks with the Internet: it is confined before its first message, and gets its
/// certificate all the same.
#[test]
fn the_agent_has_a_fence_of_its_own() {
    let Some(world) = World::with_authority() else { return };
    let _server = world.serve(&[]).expect("a server");
    world.await_certificate();
    let agents = agents(&world);
    assert_eq!(agents.len(), 1);
    let status = fs::read_to_string(format!("/proc/{}/status", agents[0])).expect("a status");
    for line in ["Seccomp:\t2", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{status}");
    }
    assert!(!world.log().contains("not wholly confined"), "{}", world.log());
}
