//! The library behind a small server of the standard library, and other programs as its clients: `openssl`,
//! `curl`, and Python's `ssl`. Each connection falls asleep after every receive and every send.
//!
//! A client that is not installed is said so and skipped; with `CI=true` it fails.
mod house;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use house::{House, Side, context, house, pair};
use staunch_tls::{Agreed, CertificatePair, CertificateStore, LocalAuthority, PairFault, TlsContext};

/// Bytes that are sealed at a time, as a worker would.
const PIECE_BYTES: usize = 65_536;

/// A server that answers `GET /COUNT` with so many bytes, and tells of every connection that ended.
struct Server {
    address: SocketAddr,
    ended: mpsc::Receiver<Account>,
}

/// What was seen of one connection.
struct Account {
    agreed: Option<Agreed>,
    fault: Option<String>,
    oddities: u32,
    is_end: bool,
}

impl Server {
    fn start(context: &Arc<TlsContext>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (tell, ended) = mpsc::channel();
        let context = Arc::clone(context);
        // The thread ends with the process: nothing of it outlives a test that matters.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (context, tell) = (Arc::clone(&context), tell.clone());
                thread::spawn(move || drop(tell.send(serve(stream, &context))));
            }
        });
        Self { address, ended }
    }

    fn account(&self) -> Account {
        self.ended.recv().expect("the server lives")
    }
}

fn serve(mut stream: TcpStream, context: &Arc<TlsContext>) -> Account {
    let mut side = Side::new(context);
    let mut buffer = [0; 4_096];
    let mut fault = None;
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        fault = side.receive(&buffer[..count]).err().map(|fault| fault.to_string());
        if fault.is_none() {
            answer(&mut side, &mut stream);
        }
        let output = std::mem::take(&mut side.output);
        if stream.write_all(&output).is_err() || fault.is_some() || side.is_end {
            break;
        }
    }
    if side.is_end && side.agreed.is_some() {
        side.close();
        let _ = stream.write_all(&side.output);
    }
    Account { agreed: side.agreed.take(), fault, oddities: side.oddities, is_end: side.is_end }
}

/// Answers every whole request. A line that begins with `update` asks for new keys instead.
fn answer(side: &mut Side, stream: &mut TcpStream) {
    while let Some(end) = side.plain.windows(4).position(|four| four == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&side.plain[..end]).into_owned();
        side.plain.drain(..end + 4);
        let path = head.split(' ').nth(1).unwrap_or("/0");
        if path == "/update" {
            side.change_key();
        }
        let length = path.trim_start_matches('/').parse().unwrap_or(0usize);
        side.seal(&[b"HTTP/1.1 200 OK\r\n", format!("content-length: {length}\r\n\r\n").as_bytes()]);
        let mut sent = 0;
        while sent < length {
            let piece: Vec<u8> = (sent..length.min(sent + PIECE_BYTES)).map(byte_of).collect();
            sent += piece.len();
            side.seal(&[&piece]);
            if stream.write_all(&std::mem::take(&mut side.output)).is_err() {
                return;
            }
        }
    }
}

/// The byte of a body in that place.
fn byte_of(place: usize) -> u8 {
    u8::try_from(place % 251).expect("below 251")
}

/// Whether a client is installed. Without it a test is skipped, or fails where nothing may be skipped.
fn has(program: &str) -> bool {
    let is_there = Command::new(program)
        .arg(if program == "openssl" { "version" } else { "--version" })
        .output()
        .is_ok();
    if !is_there {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "`{program}` is not installed");
        println!("skipped: `{program}` is not installed");
    }
    is_there
}

/// A folder with the authority's certificate, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, authority: &LocalAuthority) -> Self {
        let path = std::env::temp_dir().join(format!("staunch-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        std::fs::write(path.join("authority.pem"), authority.certificate_pem()).expect("a file");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// `openssl s_client` that asks for `localhost` and trusts the authority in the folder.
fn start_s_client(server: &Server, folder: &Folder, arguments: &[&str]) -> Child {
    Command::new("openssl")
        .args(["s_client", "-connect", &server.address.to_string(), "-servername", "localhost"])
        .args(["-CAfile", &folder.file("authority.pem")])
        .args(["-verify_return_error", "-verify_hostname", "localhost"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl")
}

/// `openssl s_client` that sends one request and ends.
fn s_client(server: &Server, folder: &Folder, arguments: &[&str]) -> String {
    let mut client = start_s_client(server, folder, arguments);
    // The client may have ended already, if it was refused.
    let _ = client.stdin.take().expect("a pipe").write_all(b"GET /10 HTTP/1.1\r\n\r\n");
    text(&client.wait_with_output().expect("it ends"))
}

/// Chain and key of RSA for `localhost`, signed by the authority in the folder.
fn rsa_pair(folder: &Folder, authority: &LocalAuthority, bits: u32, digest: &str) -> (Vec<u8>, Vec<u8>) {
    std::fs::write(folder.file("root.key"), authority.key_pem().as_bytes()).expect("a file");
    std::fs::write(folder.file("names.cnf"), "subjectAltName=DNS:localhost\n").expect("a file");
    let run = |arguments: &str| {
        let output = Command::new("openssl").args(arguments.split(' ')).current_dir(&folder.0).output();
        let output = output.expect("openssl");
        assert!(output.status.success(), "{}", text(&output));
    };
    run(&format!("req -new -newkey rsa:{bits} -nodes -subj /CN=localhost -keyout rsa.key -out rsa.csr"));
    run(&format!(
        "x509 -req -in rsa.csr -CA authority.pem -CAkey root.key -days 30 -extfile names.cnf -{digest} \
         -out rsa.pem"
    ));
    let read = |name| std::fs::read(folder.file(name)).expect("a file");
    (read("rsa.pem"), read("rsa.key"))
}

/// A house with a certificate of RSA beside that of ECDSA.
fn house_with_rsa(folder_name: &str) -> (House, Folder) {
    let mut house = house();
    let folder = Folder::new(folder_name, &house.authority);
    let (chain, key) = rsa_pair(&folder, &house.authority, 2_048, "sha256");
    let rsa = Arc::new(CertificatePair::read(&chain, &key).expect("a good pair"));
    house.store = Arc::new(CertificateStore::new(&[pair(&house.authority, &["localhost"]), rsa], false));
    house.context = context(&house.store);
    (house, folder)
}

#[test]
fn row_10_weak_pairs_are_refused() {
    if !has("openssl") {
        return;
    }
    let authority = house().authority;
    let folder = Folder::new("weak", &authority);
    let weak = [
        (1_024, "sha256", PairFault::WeakKey(1, 1_024)),
        (2_040, "sha256", PairFault::WeakKey(1, 2_040)),
        (2_048, "sha1", PairFault::WeakSignature(1)),
    ];
    for (bits, digest, expected) in weak {
        let (chain, key) = rsa_pair(&folder, &authority, bits, digest);
        assert_eq!(CertificatePair::read(&chain, &key).err(), Some(expected));
    }
}

#[test]
fn openssl_speaks_every_suite_and_group() {
    if !has("openssl") {
        return;
    }
    let (house, folder) = house_with_rsa("suites");
    let server = Server::start(&house.context);
    let suites = [
        ("-ciphersuites", "TLS_AES_128_GCM_SHA256", 0x1301),
        ("-ciphersuites", "TLS_AES_256_GCM_SHA384", 0x1302),
        ("-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", 0x1303),
        ("-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256", 0xc02b),
        ("-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384", 0xc02c),
        ("-cipher", "ECDHE-RSA-AES128-GCM-SHA256", 0xc02f),
        ("-cipher", "ECDHE-RSA-AES256-GCM-SHA384", 0xc030),
        ("-cipher", "ECDHE-RSA-CHACHA20-POLY1305", 0xcca8),
        ("-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305", 0xcca9),
    ];
    for (option, suite, number) in suites {
        let version = if option == "-cipher" { "-tls1_2" } else { "-tls1_3" };
        let said = s_client(&server, &folder, &[version, option, suite, "-alpn", "http/1.1"]);
        let account = server.account();
        let agreed = account.agreed.unwrap_or_else(|| panic!("{suite}: {said}"));
        assert!(said.contains("Verify return code: 0 (ok)"), "{suite}: {said}");
        assert!(said.contains("ALPN protocol: http/1.1"), "{said}");
        assert_eq!((agreed.suite_number, agreed.protocol), (number, Some(&b"http/1.1"[..])), "{suite}");
        assert_eq!((account.fault, account.is_end), (None, true), "{suite}");
    }
    for (group, number) in [("X25519", 29), ("P-256", 23), ("P-384", 24)] {
        let said = s_client(&server, &folder, &["-groups", group]);
        let agreed = server.account().agreed.unwrap_or_else(|| panic!("{group}: {said}"));
        assert_eq!(agreed.group_number, Some(number));
    }
}

#[test]
fn row_02_openssl_is_refused_with_what_is_old() {
    if !has("openssl") {
        return;
    }
    let (house, folder) = house_with_rsa("old");
    let server = Server::start(&house.context);
    let old: [(&[&str], &str); 5] = [
        (&["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "protocol version"),
        (&["-tls1", "-cipher", "ALL:@SECLEVEL=0"], "protocol version"),
        (&["-tls1_2", "-cipher", "AES128-GCM-SHA256"], "handshake failure"),
        (&["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA"], "handshake failure"),
        (&["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"], "handshake failure"),
    ];
    for (arguments, expected) in old {
        let said = s_client(&server, &folder, arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        let account = server.account();
        assert!(account.agreed.is_none() && account.fault.is_some(), "{arguments:?}");
    }
    let said = s_client(&server, &folder, &["-servername", "unknown.local"]);
    assert!(said.contains("unrecognized name"), "{said}");
}

#[test]
fn openssl_resumes() {
    if !has("openssl") {
        return;
    }
    let (house, folder) = house_with_rsa("resumes");
    let server = Server::start(&house.context);
    for version in ["-tls1_2", "-tls1_3"] {
        let session = folder.file(&format!("session{version}"));
        // TLS 1.3 gives tickets after the handshake, so the client has to read on.
        let mut client = Talk::start(&server, &folder, &[version, "-sess_out", &session]);
        client.say("GET /3 HTTP/1.1\r\n\r\n");
        client.hear("content-length: 3");
        client.end();
        assert!(!server.account().agreed.expect("open").is_resumed);
        let said = s_client(&server, &folder, &[version, "-sess_in", &session]);
        assert!(server.account().agreed.expect("open").is_resumed, "{version}: {said}");
        assert!(said.contains("Reused"), "{version}: {said}");
    }
}

/// `openssl s_client` that is talked with line by line.
struct Talk {
    client: Child,
    heard: BufReader<ChildStdout>,
    /// Where it says which command it understood.
    echo: BufReader<ChildStderr>,
}

impl Talk {
    fn start(server: &Server, folder: &Folder, arguments: &[&str]) -> Self {
        let mut client = start_s_client(server, folder, arguments);
        let heard = BufReader::new(client.stdout.take().expect("a pipe"));
        let echo = BufReader::new(client.stderr.take().expect("a pipe"));
        let mut talk = Self { client, heard, echo };
        // Standard input is read for commands once the handshake was reported.
        talk.hear("Verify return code");
        talk
    }

    fn say(&mut self, line: &str) {
        self.client.stdin.as_mut().expect("a pipe").write_all(line.as_bytes()).expect("it listens");
    }

    /// Reads until a line of its output has this.
    fn hear(&mut self, wanted: &str) {
        read_until(&mut self.heard, wanted);
    }

    /// Gives a command of one letter, and waits until it was understood.
    fn command(&mut self, letter: &str, echo: &str) {
        self.say(letter);
        read_until(&mut self.echo, echo);
    }

    fn end(mut self) {
        self.say("Q\n");
        self.client.wait().expect("it ends");
    }
}

fn read_until(source: &mut impl BufRead, wanted: &str) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = source.read_until(b'\n', &mut line).expect("it speaks");
        assert!(count > 0, "the client ended before `{wanted}`");
        if String::from_utf8_lossy(&line).contains(wanted) {
            return;
        }
    }
}

#[test]
fn openssl_changes_keys_both_ways() {
    if !has("openssl") {
        return;
    }
    let house = house();
    let folder = Folder::new("updates", &house.authority);
    let server = Server::start(&house.context);
    let mut client = Talk::start(&server, &folder, &["-tls1_3"]);
    for (command, path) in [("k\n", "/1000"), ("K\n", "/2000"), ("k\n", "/update"), ("K\n", "/update")] {
        client.command(command, "KEYUPDATE");
        client.say(&format!("GET {path} HTTP/1.1\r\n\r\n"));
        client.hear("content-length");
    }
    client.say("GET /5 HTTP/1.1\r\n\r\n");
    client.hear("content-length: 5");
    client.end();
    let account = server.account();
    // Four of the client's own. That which we ask for first is one with the client's next, the second stands
    // alone.
    assert_eq!((account.fault, account.oddities), (None, 5));
}

#[test]
fn row_03_openssl_renegotiates_in_vain() {
    if !has("openssl") {
        return;
    }
    let house = house();
    let folder = Folder::new("renegotiates", &house.authority);
    let server = Server::start(&house.context);
    let mut client = Talk::start(&server, &folder, &["-tls1_2"]);
    client.command("R\n", "RENEGOTIATING");
    client.client.wait().expect("the client gives up");
    let account = server.account();
    assert!(account.agreed.is_some() && account.oddities <= 1);
}

#[test]
fn curl_gets_a_huge_body() {
    if !has("curl") {
        return;
    }
    const LENGTH: usize = 30_000_000;
    let house = house();
    let folder = Folder::new("curl", &house.authority);
    let server = Server::start(&house.context);
    for version in [["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3", "--tls-max", "1.3"]] {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--http1.1", "--cacert", &folder.file("authority.pem")])
            .args(version)
            .arg(format!("https://localhost:{}/{LENGTH}", server.address.port()))
            .output()
            .expect("curl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout.len(), LENGTH);
        assert!(output.stdout.iter().enumerate().all(|(place, byte)| *byte == byte_of(place)));
        assert_eq!(server.account().fault, None);
    }
}

/// A client that sends and receives through memory, so that it may cut its own bytes anywhere.
const PYTHON: &str = r#"
import socket, ssl, sys
port, authority, piece, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
context = ssl.create_default_context(cafile=authority)
context.set_alpn_protocols(["h2", "http/1.1"])
stream = socket.create_connection(("127.0.0.1", port))
stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1" if piece % 2 else "localhost")
def flush():
    data = outgoing.read()
    for start in range(0, len(data), piece):
        stream.sendall(data[start:start + piece])
def do(work):
    while True:
        try:
            result = work()
            flush()
            return result
        except ssl.SSLWantReadError:
            flush()
            data = stream.recv(65536)
            incoming.write(data) if data else incoming.write_eof()
do(tls.do_handshake)
assert tls.selected_alpn_protocol() == "h2"
for length in (0, 1, 16384, 16385, count):
    do(lambda: tls.write(b"GET /%d HTTP/1.1\r\n\r\n" % length))
    got = b""
    while b"\r\n\r\n" not in got:
        got += do(lambda: tls.read(65536))
    got = got.split(b"\r\n\r\n", 1)[1]
    while len(got) < length:
        got += do(lambda: tls.read(65536))
    assert got == bytes(place % 251 for place in range(length)), length
do(tls.unwrap)
print("good", tls.version())
"#;

#[test]
fn python_cuts_its_records_anywhere() {
    if !has("python3") {
        return;
    }
    let house = house();
    let folder = Folder::new("python", &house.authority);
    let server = Server::start(&house.context);
    for piece in [1, 2, 5, 6, 17, 100, 1_000] {
        let output = Command::new("python3")
            .args(["-c", PYTHON, &server.address.port().to_string(), &folder.file("authority.pem")])
            .args([piece.to_string(), 300_000.to_string()])
            .output()
            .expect("python3");
        assert!(text(&output).contains("good TLSv1.3"), "pieces of {piece}: {}", text(&output));
        let account = server.account();
        assert_eq!((account.fault, account.is_end), (None, true), "pieces of {piece}");
    }
}
