//! Tickets: sessions that go on after a reload, an upgrade and at another machine, and those that do not.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::house::waiting::until;
use staunch_tests::process::{finish, is_installed, serve_by};

use crate::session_file::{Sessions, change_ticket, ticket, visit};
use crate::world::{BACKENDS, House, Secured, start};

const VERSIONS: [&str; 2] = ["-tls1_2", "-tls1_3"];

fn house() -> House {
    let house = House::new();
    house.write_file("a", 10);
    house
}

/// A visit that keeps its session in a file named after the version.
#[track_caller]
fn first_visit(house: &House, address: SocketAddr, version: &str) {
    let sessions = Sessions { given: None, kept: Some(version) };
    assert!(!visit(house, address, version, sessions), "there is nothing to resume");
}

/// Whether the session of that version's file is resumed.
#[track_caller]
fn resumes(house: &House, address: SocketAddr, version: &str) -> bool {
    visit(house, address, version, Sessions { given: Some(version), kept: None })
}

fn pid(process: u32) -> Pid {
    Pid::from_raw(process.cast_signed()).expect("a process")
}

/// Processes that have taken over; they are ended with the test.
#[derive(Default)]
struct Successors(Vec<u32>);

impl Drop for Successors {
    fn drop(&mut self) {
        for process in &self.0 {
            let _ = kill_process(pid(*process), Signal::KILL);
        }
    }
}

impl Successors {
    /// Upgrades the process that serves, and waits until the next one alone does. `pid_file` has its number.
    fn upgrade(&mut self, first: u32, pid_file: &Path) {
        let before = self.0.last().copied().unwrap_or(first);
        kill_process(pid(before), Signal::USR2).expect("it lives");
        let serving = || said(pid_file).trim().parse::<u32>().ok().filter(|process| *process != before);
        until("the next process serves", || serving().is_some());
        self.0.extend(serving());
        until("the former process ends", || {
            let stat = said(Path::new(&format!("/proc/{before}/stat")));
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
        });
    }
}

#[test]
fn sessions_go_on_after_a_reload_and_after_upgrades() {
    if !is_installed("openssl") {
        return;
    }
    let house = house();
    for backend in BACKENDS {
        let log = house.path(&format!("error-{backend}.log"));
        let pid_file = house.path(&format!("{backend}.pid"));
        let flags = [("--error-log", &log), ("--pid-file", &pid_file)];
        let flags = flags.map(|(flag, file)| format!("{flag}={}", file.display()));
        let Some(secured) = house.serve(backend, &flags.each_ref().map(String::as_str)) else { continue };
        let first = secured.server.process_id();
        for version in VERSIONS {
            first_visit(&house, secured.address, version);
            assert!(resumes(&house, secured.address, version), "{backend} {version}: before");
        }
        kill_process(pid(first), Signal::HUP).expect("it lives");
        until("the reload", || said(&log).contains("the configuration was read again"));
        let mut successors = Successors::default();
        for upgrades in 0..3 {
            for version in VERSIONS {
                let is_resumed = resumes(&house, secured.address, version);
                assert!(is_resumed, "{backend} {version}: after a reload and {upgrades} upgrades");
            }
            successors.upgrade(first, &pid_file);
        }
        assert!(!said(&log).contains("keys of tickets"), "{}", said(&log));
    }
}

#[test]
fn row_05_forged_and_cut_tickets_get_a_full_handshake() {
    if !is_installed("openssl") {
        return;
    }
    let house = house();
    let secured = house.serve("epoll", &[]).expect("epoll is everywhere");
    for version in VERSIONS {
        first_visit(&house, secured.address, version);
        let length = ticket(&house, version).len();
        // The name of the key, the salt, what is sealed, the tag.
        for place in [0, 20, 60, length - 1] {
            change_ticket(&house, version, "forged", |ticket| {
                let mut ticket = ticket.to_vec();
                ticket[place] ^= 1;
                ticket
            });
            let forged = Sessions { given: Some("forged"), kept: None };
            assert!(!visit(&house, secured.address, version, forged), "{version}: byte {place}");
        }
        for cut in [1, 15, 16, 48, length - 1] {
            change_ticket(&house, version, "cut", |ticket| ticket[..cut].to_vec());
            let cut_short = Sessions { given: Some("cut"), kept: None };
            assert!(!visit(&house, secured.address, version, cut_short), "{version}: cut at {cut}");
        }
        assert!(resumes(&house, secured.address, version), "{version}: as it was");
    }
}

/// A folder with keys of tickets.
struct KeyFolder(PathBuf);

impl KeyFolder {
    fn new(house: &House) -> Self {
        let folder = house.path("keys");
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// Writes a file of so many bytes, the first of which are its name, and moves it into the folder.
    fn write(&self, name: &str, length: usize, mode: u32) {
        let unfinished = self.0.join(format!(".{name}"));
        let mut bytes = name_of_key(name);
        bytes.extend((bytes.len()..length).map(|place| (place * 7) as u8));
        let mut file =
            OpenOptions::new().create(true).write(true).mode(mode).open(&unfinished).expect("a file");
        file.write_all(&bytes).expect("a file");
        fs::rename(unfinished, self.0.join(name)).expect("a file");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).expect("a file");
    }

    /// Settings of a server with these keys, and where its log is.
    fn settings(&self, house: &House, name: &str) -> PathBuf {
        let settings = house.path(&format!("{name}.toml"));
        let (root, pair) = (house.tree.root().display(), house.path("server").display().to_string());
        let text = format!(
            "root = \"{root}\"\ntls_listen = [\"127.0.0.1:0\"]\nticket_keys = \"{}\"\nerror_log = \"{}\"\n\
             pid_file = \"{}\"\n\
             tls = {{ certificate = \"{pair}.pem\", key = \"{pair}.key\" }}\n",
            self.0.display(),
            log_of(house, name).display(),
            pid_file_of(house, name).display()
        );
        fs::write(&settings, text).expect("a file");
        settings
    }

    fn serve(&self, house: &House, name: &str) -> Secured {
        start(&mut serve_by(&self.settings(house, name))).expect("a server")
    }
}

/// The first 16 bytes of a file.
fn name_of_key(name: &str) -> Vec<u8> {
    format!("{name:-<16}").into_bytes()
}

fn log_of(house: &House, name: &str) -> PathBuf {
    house.path(&format!("{name}.log"))
}

fn pid_file_of(house: &House, name: &str) -> PathBuf {
    house.path(&format!("{name}.pid"))
}

fn said(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_default()
}

fn count(house: &House, server: &str, text: &str) -> usize {
    said(&log_of(house, server)).matches(text).count()
}

#[test]
fn machines_with_one_folder_resume_each_others_sessions() {
    if !is_installed("openssl") {
        return;
    }
    const SERVERS: [&str; 2] = ["one", "other"];
    let house = house();
    let folder = KeyFolder::new(&house);
    folder.write("1", 80, 0o600);
    let [one, other] = SERVERS.map(|name| folder.serve(&house, name));
    let stranger = house.serve("epoll", &[]).expect("epoll is everywhere");
    for version in VERSIONS {
        first_visit(&house, one.address, version);
        assert!(resumes(&house, other.address, version) && !resumes(&house, stranger.address, version));
    }
    // Three keys are kept. A new one seals at once, and the oldest goes.
    for turn in 1..=3 {
        let name = (turn + 1).to_string();
        folder.write(&name, if turn == 2 { 48 } else { 80 }, 0o640);
        if turn == 3 {
            folder.remove("1");
        }
        until("both have the new key", || {
            let changed = "the keys of tickets have changed: the newest seals from now on";
            SERVERS.iter().all(|server| count(&house, server, changed) >= turn)
        });
        let kept = Sessions { given: None, kept: Some("new") };
        assert!(!visit(&house, one.address, "-tls1_3", kept));
        assert_eq!(ticket(&house, "new")[..16], name_of_key(&name));
        assert!(visit(&house, other.address, "-tls1_3", Sessions { given: Some("new"), kept: None }));
        for version in VERSIONS {
            if turn < 3 {
                assert!(resumes(&house, other.address, version), "{version}, turn {turn}");
            } else {
                until("the removed key opens no longer", || !resumes(&house, other.address, version));
            }
        }
    }
    // An upgrade reads the files.
    first_visit(&house, one.address, "-tls1_3");
    let mut successors = Successors::default();
    successors.upgrade(other.server.process_id(), &pid_file_of(&house, "other"));
    assert!(resumes(&house, other.address, "-tls1_3"));
}

#[test]
fn faulty_keys_are_named_and_the_server_does_not_start() {
    let house = House::new();
    let folder = KeyFolder::new(&house);
    let settings = folder.settings(&house, "faulty");
    let expect = |expected: &str| {
        for more in [&["--test-config"][..], &[]] {
            let finished = finish(serve_by(&settings).args(more));
            assert_eq!(finished.status.code(), Some(78), "{}", finished.stderr);
            assert!(finished.stderr.contains(expected), "{expected}: {}", finished.stderr);
        }
    };
    expect("keys: 0 files with ticket keys; there may be 1 to 16");
    folder.write("good", 80, 0o600);
    for (length, mode, fault) in [
        (79, 0o600, "a file of 80 bytes is expected (`openssl rand 80`), or one of 48"),
        (81, 0o600, "a file of 80 bytes is expected"),
        (0, 0o600, "a file of 80 bytes is expected"),
        (80, 0o604, "others can read or write it: chmod o-rw"),
        (80, 0o602, "others can read or write it: chmod o-rw"),
    ] {
        folder.write("bad", length, mode);
        fs::set_permissions(folder.0.join("bad"), Permissions::from_mode(mode)).expect("a file");
        expect(&format!("keys/bad: {fault}"));
    }
    folder.remove("bad");
    fs::copy(folder.0.join("good"), folder.0.join("again")).expect("a file");
    expect("its first 16 bytes, the key's name, are those of another file");
    folder.remove("again");
    fs::create_dir(folder.0.join("sub")).expect("a folder");
    expect("keys/sub: this is no file");
    fs::remove_dir(folder.0.join("sub")).expect("a folder");
    fs::set_permissions(&folder.0, Permissions::from_mode(0o777)).expect("a folder");
    expect("keys: others can write to this folder: chmod o-w");
    fs::remove_dir_all(&folder.0).expect("a folder");
    expect("keys: No such file or directory");
}

#[test]
fn faulty_keys_that_come_later_change_nothing() {
    if !is_installed("openssl") {
        return;
    }
    let house = house();
    let folder = KeyFolder::new(&house);
    folder.write("1", 80, 0o600);
    let server = folder.serve(&house, "later");
    let log = log_of(&house, "later");
    first_visit(&house, server.address, "-tls1_3");
    folder.write("2", 79, 0o600);
    until("the length is said", || {
        said(&log).contains("the keys of tickets stay as they were: ticket_keys: ")
            && said(&log).contains("keys/2: a file of 80 bytes is expected")
    });
    assert!(resumes(&house, server.address, "-tls1_3"));
    kill_process(pid(server.server.process_id()), Signal::HUP).expect("it lives");
    until("the reload is refused", || {
        said(&log).contains("the configuration stays as it was: ticket_keys: ")
    });
    assert!(resumes(&house, server.address, "-tls1_3"));
    folder.write("2", 80, 0o644);
    until("the rights are said", || said(&log).contains("keys/2: others can read or write it"));
    fs::set_permissions(folder.0.join("2"), Permissions::from_mode(0o600)).expect("a file");
    until("it is good now", || said(&log).contains("the keys of tickets have changed"));
    assert!(resumes(&house, server.address, "-tls1_3"), "the first key opens");
}

/// Another folder comes under the name of the first, or a link leads to it from then on.
#[test]
fn a_folder_of_keys_that_takes_the_place_of_another_is_noticed() {
    if !is_installed("openssl") {
        return;
    }
    let house = house();
    let within = |name: &str| KeyFolder(house.path("all").join(name));
    let folders @ [first, second] = &["first", "second"].map(within);
    for (folder, key) in folders.iter().zip(["1", "2"]) {
        fs::create_dir_all(&folder.0).expect("a folder");
        folder.write(key, 80, 0o600);
    }
    let (link, next) = (within("link"), within("next"));
    symlink("first", &link.0).expect("a link");
    let lead_on = || {
        symlink("second", &next.0).expect("a link");
        fs::rename(&next.0, &link.0).expect("a link");
    };
    let exchange = || {
        fs::rename(&first.0, within("gone").0).expect("a folder");
        fs::rename(&second.0, &first.0).expect("a folder");
    };
    let exchanges: [(&str, &KeyFolder, &dyn Fn()); 2] =
        [("led", &link, &lead_on), ("moved", first, &exchange)];
    for (name, folder, exchange) in exchanges {
        let server = folder.serve(&house, name);
        first_visit(&house, server.address, "-tls1_3");
        exchange();
        until("the key that is gone opens no longer", || !resumes(&house, server.address, "-tls1_3"));
        // From now on the other folder is looked after.
        let changed = || count(&house, name, "the keys of tickets have changed");
        let before = changed();
        folder.write(name, 80, 0o600);
        until("a new key is taken", || changed() > before);
        folder.remove(name);
    }
}

/// A client that comes with a ticket of ours is known to the line of an application, unless it comes by a
/// proxy.
#[test]
fn who_was_here_before_is_known_in_the_line_of_an_application() {
    if !is_installed("openssl") {
        return;
    }
    let house = house();
    let application = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = application.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for mut stream in application.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    for backend in BACKENDS {
        for (trusted, wanted) in [(false, "normal-known"), (true, "normal")] {
            let log = house.path(&format!("classes-{backend}-{trusted}.log"));
            let log_flag = format!("--access-log={}", log.display());
            let format = "--access-log-format=$upstream_class";
            let mut flags = vec!["--proxy", &address, &log_flag, format];
            if trusted {
                flags.extend(["--trusted-proxies", "127.0.0.1"]);
            }
            let Some(secured) = house.serve(backend, &flags) else { continue };
            for version in VERSIONS {
                first_visit(&house, secured.address, version);
                assert!(resumes(&house, secured.address, version), "{backend} {version}");
            }
            until("the lines of the log", || said(&log).lines().count() == 2 * VERSIONS.len());
            // Lines of several workers are in no order.
            let text = said(&log);
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, ["normal", "normal", wanted, wanted], "{backend} {trusted}");
        }
    }
}
