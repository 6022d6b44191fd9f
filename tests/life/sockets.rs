//! Sockets that systemd has opened, by its own tool.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::{binary, is_installed};

use crate::conversation::get;
use crate::house::{self, House, SMALL, WAYS};

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
            let port = reserved_address().port();
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

/// A server on a socket that this process holds, as a manager of services does.
fn on_held(folder: PathBuf, listener: &TcpListener, io: &str) -> House {
    let mut command = Command::new("sh");
    // By way of standard input, whose number every shell can say; most can say none above 9.
    command.stdin(OwnedFd::from(listener.try_clone().expect("a second descriptor")));
    let hand_over = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null";
    command.args(["-c", hand_over]).arg(binary()).arg("serve");
    command.arg(folder.join("site")).args(["--io", io, "--workers", "2", "--listen", "fd:3", "--pid-file"]);
    command.arg(folder.join("pid"));
    House::of(folder, &mut command)
}

/// A client that connects while no server runs waits for the next one: the socket is not ours to shut.
#[test]
fn a_socket_of_others_stays_open() {
    for io in WAYS {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut house = on_held(house::new_folder(), &listener, io);
        assert_eq!(get(address, "/small.txt"), SMALL, "{io}");
        let last = house.upgrade();
        assert_eq!(house.end(), Some(0), "{io}");
        house.signal(Signal::TERM);
        house.until("the last process ends", |_| (!house::is_running(last)).then_some(()));
        let waiting = std::thread::spawn(move || get(address, "/small.txt"));
        let _next = on_held(house::new_folder(), &listener, io);
        assert_eq!(waiting.join().expect("an answer"), SMALL, "{io}");
    }
}
