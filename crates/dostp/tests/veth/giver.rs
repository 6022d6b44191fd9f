//! A node that gives rings to other processes of its host, as `staunch dostp serve --give-to` does.

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::JoinHandle;

use staunch_dostp::{Asked, Backend, Options, Socket};

use crate::world::{INTERFACE, World};

/// The port of the node's own socket.
const PORT: u16 = 7;

/// The node, until it is dropped.
pub(crate) struct Giver {
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Giver {
    /// Starts it at a node of the world.
    pub(crate) fn start(world: &World, node: usize) -> Self {
        let path = world.node_path(node);
        let listener = UnixListener::bind(&path).expect("a folder for scratch");
        let options =
            Options { backend: Some(Backend::Ring), takes_all_ports: false, ..Options::on(INTERFACE) };
        let socket = world.socket(node, PORT, options).expect("a socket");
        let thread = world.at(node, move || give(&listener, &socket));
        Self { path, thread: Some(thread) }
    }
}

impl Drop for Giver {
    fn drop(&mut self) {
        // A client that says nothing is the end.
        drop(UnixStream::connect(&self.path));
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        std::fs::remove_file(&self.path).ok();
    }
}

fn give(listener: &UnixListener, socket: &Socket) {
    while let Ok((client, _)) = listener.accept() {
        let asked = Asked::hear(&client).expect("a question");
        let Some(port) = asked.port_of_rings() else { return };
        socket.give_rings(&client, &asked, port).expect("who takes the answer");
    }
}
