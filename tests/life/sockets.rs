//! Sockets that systemd has opened, by its own tool.

use std::process::{Command, Stdio};

use crate::conversation::get;
use crate::house::{self, House, SMALL, WAYS};
use staunch_tests::process::{binary, is_installed};

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// `systemd-socket-activate` with a listener, running a command on the first connection.
fn activated(port: u16, name: &str, command: &Command) -> Command {
    let mut activate = Command::new("systemd-socket-activate");
    activate.args(["--listen", &format!("127.0.0.1:{port}"), "--fdname", name, "-E", "STAUNCH_BINARY"]);
    activate.arg(command.get_program()).args(command.get_args());
    activate
}

/// Both by address and by name, with several workers on the one socket; and it can be handed on.
#[test]
fn a_socket_is_taken_over() {
    if !is_installed("systemd-socket-activate") {
        return;
    }
    for io in WAYS {
        for listen in ["fd:web", "fd:3", "address"] {
            let port = free_port();
            let address = format!("127.0.0.1:{port}");
            let listen = if listen == "address" { &address } else { listen };
            let folder = house::new_folder();
            let mut command = Command::new(binary());
            command.arg("serve").arg(folder.join("site")).args(["--io", io, "--workers", "3"]);
            command.args(["--listen", listen, "--pid-file"]).arg(folder.join("pid"));
            let mut activate = activated(port, "web", &command);
            activate.stdin(Stdio::null());
            let waiting = std::thread::spawn(move || {
                // The first connection starts the server, which answers it: nothing was lost.
                let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
                let start = std::time::Instant::now();
                while std::net::TcpStream::connect(address).is_err() {
                    assert!(start.elapsed() < house::PATIENCE, "nobody listens");
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                get(address, "/small.txt")
            });
            let mut house = House::of(folder, &mut activate);
            assert_eq!(waiting.join().expect("an answer"), SMALL, "{io}, {listen}");
            assert_eq!(house.address().port(), port);
            for _ in 0..20 {
                assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}, {listen}");
            }
            house.upgrade();
            assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}, {listen}: after an upgrade");
            assert_eq!(house.end(), Some(0));
        }
    }
}
