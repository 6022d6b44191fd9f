//! Claims of ports and of the node's voice: what a stranger on the host, and a process that does nothing, can
//! do to the others.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::process::Uid;
use staunch_dostp::{Backend, Options};
use staunch_netio::host::interface::Interface;

use crate::world::{INTERFACE, PATIENCE, World, address};

/// A user without rights.
const NOBODY: u32 = 65_534;

/// Names of claims at node 1 that a user without rights has bound.
fn squat(world: &World, claims: &'static [&'static str]) -> Vec<UnixDatagram> {
    let squatting = world.at(1, move || {
        let index = Interface::find(INTERFACE).unwrap().index;
        let nobody = Uid::from_raw(NOBODY);
        // The thread's own, and it ends with this.
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let name = |claim: &str| format!("staunch-dostp/{index}/88b5/{claim}");
        let bind = |claim: &&str| {
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name(claim)).unwrap()).unwrap()
        };
        claims.iter().map(bind).collect()
    });
    squatting.join().unwrap()
}

#[test]
fn a_stranger_takes_neither_the_voice_nor_a_port() {
    let Some(world) = World::new(2, 1500) else { return };
    let _squats = squat(&world, &["voice", "voice/0", "port/2000", "port/2000/0"]);
    let options = || Options { backend: Some(Backend::Ring), ..Options::on(INTERFACE) };
    let first = world.socket(1, 2000, options()).unwrap();
    let stranger = format!("user {NOBODY} has a name of this node's claims, which does not count");
    assert_eq!(first.opened().remarks, [stranger.clone(), stranger]);
    // The port has one owner all the same.
    assert_eq!(world.socket(1, 2000, options()).unwrap_err().kind(), ErrorKind::AddrInUse);
    let second = world.open(1, 2001, Backend::Ring);
    assert!(second.opened().remarks.is_empty());
    // The node answers: its address is found.
    let asker = world.open(2, 0, Backend::Ring);
    asker.send_to(b"found", address(1, 2000)).unwrap();
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(first.receive().unwrap().payload, b"found");
}

#[test]
fn a_process_that_has_the_voice_and_is_mute_hides_no_other() {
    let Some(world) = World::new(2, 1500) else { return };
    let options = Options { backend: Some(Backend::Ring), is_kept_later: true, ..Options::on(INTERFACE) };
    // No thread reads the questions of this process, as if it were stopped.
    let _mute = world.socket(1, 2000, options).unwrap();
    let other = world.open(1, 2001, Backend::Ring);
    let asker = world.open(2, 0, Backend::Ring);
    asker.send_to(b"found", address(1, 2001)).unwrap();
    assert_eq!(other.receive().unwrap().payload, b"found");
}
