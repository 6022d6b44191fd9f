//! A file that changes, told as the difference to what clients have; Debian's `zstd` puts it together.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use staunch_dictionary::{Hash, apply};
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, finish, is_installed, serve_by};
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;

/// A server of one folder, in which each file is a dictionary for its later versions.
struct World {
    tree: Tree,
    settings: Tree,
}

impl World {
    fn new() -> Self {
        let (tree, settings) = (Tree::new().expect("a folder"), Tree::new().expect("a folder"));
        let text =
            format!("root = \"{}\"\n[[path]]\nmatch = \"/*\"\ndictionary = true\n", tree.root().display());
        fs::write(settings.root().join("staunch.toml"), text).expect("a file of ours");
        Self { tree, settings }
    }

    fn serve(&self, io: &str) -> Server {
        let mut command = serve_by(&self.settings.root().join("staunch.toml"));
        Server::spawn(command.args(["--io", io, "--admin", "127.0.0.1:0"])).expect("a server")
    }

    /// The file becomes another at once.
    fn write(&self, text: &str) {
        let next = self.settings.root().join("next");
        fs::write(&next, text).expect("a file of ours");
        fs::rename(next, self.tree.root().join("page.html")).expect("a file of ours");
    }
}

/// A page of some kilobytes.
fn page(sentence: &str) -> String {
    let lines = (0..200_u32).map(|line| format!("<p>{} of {line}</p>\n", line.wrapping_mul(2_654_435_761)));
    lines.chain([format!("<p>{sentence}</p>\n")]).collect()
}

fn ask(address: SocketAddr, path: &str, lines: &str) -> Response {
    let mut stream = TcpStream::connect(address).expect("a server listens");
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n");
    stream.write_all(head.as_bytes()).expect("it is read");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    Response::read(&bytes, false).expect("an answer").expect("a whole one").0
}

/// The answer to a client that has this text.
fn ask_having(address: SocketAddr, text: &str) -> Response {
    let hash = Hash::of(text.as_bytes()).to_field();
    ask(address, "/page.html", &format!("Available-Dictionary: {hash}\r\nAccept-Encoding: br, dcz\r\n"))
}

fn is_difference(response: &Response) -> bool {
    response.value("content-encoding").as_deref() == Some("dcz")
}

/// The difference between two texts, once the server tells it.
fn difference(address: SocketAddr, before: &str, now: &str) -> Vec<u8> {
    let mut told = None;
    until("the difference", || {
        let response = ask_having(address, before);
        let leads = is_difference(&response)
            && apply(before.as_bytes(), &response.body, now.len()).as_deref() == Some(now.as_bytes());
        told = leads.then_some(response.body);
        leads
    });
    told.expect("the last answer")
}

fn metric(admin: SocketAddr, name: &str) -> u64 {
    let text = String::from_utf8(ask(admin, "/metrics", "").body).expect("text");
    let line = format!("staunch_dictionary_{name}_total{{kind=\"file\"}} ");
    let value = text.lines().find_map(|found| found.strip_prefix(&line));
    value.unwrap_or_else(|| panic!("no {line} in {text}")).parse().expect("a number")
}

#[test]
fn a_changed_file_is_told_as_the_difference_until_the_server_is_another() {
    for io in ["epoll", "uring"] {
        let world = World::new();
        let (first, second) = (page("first"), page("second"));
        world.write(&first);
        let server = world.serve(io);
        let admin = server.admin_address();
        let answer = ask(server.address(), "/page.html", "");
        assert_eq!(answer.value("use-as-dictionary").as_deref(), Some("match=\"/page.html\""), "{io}");
        world.write(&second);
        let told = difference(server.address(), &first, &second);
        assert!(told.len() < 200, "{io}: {} bytes", told.len());
        // Others get what they got before.
        let usual = ask(server.address(), "/page.html", "");
        assert!(usual.body == second.as_bytes() && !usual.has("content-encoding"), "{io}");
        assert!(!is_difference(&ask_having(server.address(), "what never was")), "{io}");
        assert!(metric(admin, "answered") >= 1 && metric(admin, "saved_bytes") > 100, "{io}");
        assert!(metric(admin, "unknown") >= 1 && metric(admin, "asked") > metric(admin, "answered"), "{io}");
        drop(server);
        // Another process does not know what was before it.
        let server = world.serve(io);
        assert_eq!(
            difference(server.address(), &second, &second)[8..40],
            *Hash::of(second.as_bytes()).as_bytes()
        );
        let answer = ask_having(server.address(), &first);
        assert!(!is_difference(&answer) && answer.status == 200, "{io}");
    }
}

#[test]
fn the_tool_of_zstandard_puts_it_together() {
    if !is_installed("zstd") {
        return;
    }
    let world = World::new();
    let (first, second) = (page("first"), page("second"));
    world.write(&first);
    let server = world.serve("epoll");
    ask(server.address(), "/page.html", "");
    world.write(&second);
    let told = difference(server.address(), &first, &second);
    let [before, file] = ["before", "told.dcz"].map(|name| world.settings.root().join(name));
    fs::write(&before, &first).expect("a file of ours");
    fs::write(&file, told).expect("a file of ours");
    let mut command = Command::new("zstd");
    command.args(["--decompress", "--stdout", "--patch-from"]).arg(&before).arg(&file);
    let finished = finish(&mut command);
    assert!(finished.status.success(), "{}", finished.stderr);
    assert_eq!(finished.stdout, second);
}
