//! Frames that come by a node's interface and are not for it: of a VLAN, or for another host while the
//! interface listens to all.

use staunch_dostp::{Backend, Flags, Header, Kind, Link, Node, Own, Settings};
use staunch_netio::host::interface::Interface;
use staunch_netio::host::packet::PacketSender;

use crate::ETHERNET;
use crate::world::{INTERFACE, World, until};

/// The frames of a node that begins, and then sends a message to port 2000 of node 1: payloads of the link.
fn said_by(address: u16) -> [Vec<u8>; 2] {
    let own = Own { address, link: link(address), boot: 7, mtu: 1500 };
    let mut node = Node::new(Settings::new(own, [1; 16]));
    node.start(0);
    let mut hello = Vec::new();
    node.poll_control(0, &mut hello).expect("a HELLO");
    let header = Header {
        kind: Kind::Data,
        flags: Flags::WHOLE,
        source: address,
        destination: 1,
        source_port: 2000,
        destination_port: 2000,
        message_id: 1,
        length: 0,
        sequence: 0,
    };
    [hello, header.encode(0).to_vec()]
}

fn link(address: u16) -> Link {
    Link([2, 0, 0, 0, 9, address as u8])
}

/// Sends what a node at this address would say, from node 2 to this link address, with this tag if there is
/// one.
fn say(world: &World, address: u16, to: [u8; 6], tag: Option<u16>) {
    let sending = world.at(2, move || {
        let sender = PacketSender::by_link(Interface::find(INTERFACE).unwrap().index).unwrap();
        for payload in said_by(address) {
            let tag = tag.map_or(vec![], |tag| [&[0x81, 0][..], &tag.to_be_bytes()].concat());
            let frame = [&to[..], &link(address).0, &tag, &[0x88, 0xb5], &payload].concat();
            assert_eq!(sender.send(&frame, frame.len()).unwrap(), 1);
        }
    });
    sending.join().unwrap();
}

#[test]
fn frames_of_vlans_and_for_other_hosts_are_not_heard() {
    for backend in ETHERNET {
        let Some(world) = World::new(2, 1500) else { return };
        println!("backend {backend}");
        world.ip(1, &format!("link set {INTERFACE} promisc on"));
        if !world.add_vlan(1, 21) {
            println!("this kernel has no VLANs: none of them has an interface");
        }
        let socket = world.open(1, 2000, backend);
        let own = socket.own().link.0;
        // A VLAN without an interface, one with, another host, and a tag that tells a priority alone.
        say(&world, 20, own, Some(20));
        say(&world, 21, own, Some(21));
        say(&world, 22, [2, 0x11, 0x22, 0x33, 0x44, 0x55], None);
        say(&world, 23, own, Some(5 << 13));
        say(&world, 24, own, None);
        let mut senders = Vec::new();
        while senders.last() != Some(&24) {
            senders.push(socket.receive().expect("a message").from.ip().octets()[3]);
        }
        if backend == Backend::Ring {
            assert_eq!(senders, [23, 24]);
            until("the last one is known", || socket.peers().iter().any(|(_, peer)| peer.address == 24));
            let known: Vec<u16> = socket.peers().iter().map(|(_, peer)| peer.address).collect();
            assert_eq!(known, [23, 24]);
        } else {
            // Where the tag stands beside the frame, AF_XDP does not see it.
            assert!(!senders.contains(&22), "{senders:?}");
        }
    }
}
