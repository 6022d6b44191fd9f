//! Socket files: served, guarded, handed on and removed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use rustix::process::Signal;
use staunch_tests::process::{binary, finish, is_installed, serve};

use crate::conversation::get;
use crate::house::{self, House, SMALL, WAYS};
use crate::load::Load;

/// Asks by a file, with further fields: the head and the body of the answer.
fn ask(path: &Path, target: &str, fields: &str) -> std::io::Result<(String, Vec<u8>)> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(house::PATIENCE))?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or_else(|| std::io::Error::other("no answer"))? + 4;
    let body = answer.split_off(end);
    Ok((String::from_utf8_lossy(&answer).into_owned(), body))
}

fn status(path: &Path, target: &str, fields: &str) -> u16 {
    let (head, _) = ask(path, target, fields).expect("an answer");
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

/// A server at a file of its folder and at a port, with the settings of this text. `FOLDER` in it is the
/// folder.
fn house(io: &str, settings: &str) -> House {
    let folder = house::new_folder();
    let file = folder.join("settings.toml");
    write(&folder, io, settings);
    let mut command = Command::new(binary());
    command.arg("serve").arg("--config").arg(&file).args(["--workers", "3", "--pid-file"]);
    command.arg(folder.join("pid")).stdin(Stdio::null());
    House::of(folder, &mut command)
}

fn write(folder: &Path, io: &str, settings: &str) {
    let text = format!("root = 'FOLDER/site'\nio = '{io}'\npatience = 'off'\n{settings}");
    let text = text.replace("FOLDER", folder.to_str().expect("text"));
    fs::write(folder.join("settings.toml"), text).expect("settings");
}

const BOTH: &str = "listen = ['127.0.0.1:0', 'unix:FOLDER/http.sock']\n";

#[test]
fn a_file_is_served_until_the_end_and_across_upgrades() {
    for io in WAYS {
        let mut house = house(io, &format!("{BOTH}socket_mode = '0640'\naccess_log = 'FOLDER/log'\n"));
        let path = house.path("http.sock");
        let found = || fs::symlink_metadata(&path).expect("a file");
        assert_eq!(found().permissions().mode() & 0o777, 0o640);
        assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL, "{io}");
        let line = |house: &House| {
            let text = fs::read_to_string(house.path("log")).unwrap_or_default();
            text.starts_with("unix: - - [").then_some(())
        };
        house.until("a line of the log", line);
        if is_installed("curl") {
            let mut curl = Command::new("curl");
            curl.args([
                "-sS",
                "--http2-prior-knowledge",
                "-w",
                "%{http_version}",
                "http://localhost/small.txt",
            ]);
            let told = curl.arg("--unix-socket").arg(&path).output().expect("curl");
            assert_eq!(String::from_utf8_lossy(&told.stdout), "small\n2", "{io}: {told:?}");
        }
        let inode = found().ino();
        let (is_over, asked) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(SeqCst) {
                        assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL, "{io}");
                        asked.fetch_add(1, SeqCst);
                    }
                });
            }
            let mut before = house.first();
            for _ in 0..3 {
                let after = house.upgrade();
                house.until("the former process ends", |_| (!house::is_running(before)).then_some(()));
                before = after;
            }
            is_over.store(true, SeqCst);
        });
        assert!(asked.load(SeqCst) > 0);
        assert_eq!((house.end(), found().ino()), (Some(0), inode), "{io}: the same file");
        house.signal(Signal::TERM);
        house.until("the file is gone", |_| (!path.exists()).then_some(()));
    }
}

/// A process that is confined cannot make a socket elsewhere: another one takes its place, and no request
/// fails.
#[test]
fn a_socket_beyond_the_fence_is_served_after_a_reload() {
    for io in WAYS {
        let mut house = house(io, BOTH);
        let (here, elsewhere) = (house.path("http.sock"), house::new_folder());
        let (folder, there) = (house.path(""), elsewhere.join("more.sock"));
        let more = |place: &Path| BOTH.replace("']", &format!("', 'unix:{}']", place.display()));
        let load = Load::closed(&house.url("/small.txt"), 8, "3s");
        // The folder is not there: nothing changes, and the reason is told.
        write(&folder, io, &more(&elsewhere.join("nowhere/more.sock")));
        let (code, said) = house.reload_by_command();
        house.upgraded();
        assert!(code == Some(1) && said.contains("nowhere"), "{io}: {code:?}: {said}");
        assert_eq!(house.process(), Some(house.first()), "{io}");
        write(&folder, io, &more(&there));
        let (code, said) = house.reload_by_command();
        house.upgraded();
        assert_eq!(code, Some(0), "{io}: {said}; {}", house.said());
        assert_ne!(house.process(), Some(house.first()), "{io}: behind it another process serves");
        for path in [&here, &there] {
            assert_eq!(ask(path, "/small.txt", "").expect("an answer").1, SMALL, "{io}");
        }
        assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}");
        load.expect_no_failure();
        write(&folder, io, BOTH);
        let (code, said) = house.reload_by_command();
        house.upgraded();
        assert_eq!(code, Some(0), "{io}: {said}");
        house.until("the further file is gone", |_| (!there.exists()).then_some(()));
        assert_eq!(ask(&here, "/small.txt", "").expect("an answer").1, SMALL, "{io}");
        fs::remove_dir_all(elsewhere).expect("a folder of ours");
    }
}

/// Engines want different things of a socket, so the file is made anew.
#[test]
fn an_upgrade_to_another_engine_loses_nobody() {
    let mut house = house("epoll", BOTH);
    let path = house.path("http.sock");
    let folder = path.parent().expect("a folder").to_owned();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL);
            }
        });
        for io in ["uring", "epoll"] {
            let before = house.process().expect("a process");
            write(&folder, io, BOTH);
            house.upgrade();
            house.until("the former process ends", |_| (!house::is_running(before)).then_some(()));
        }
        is_over.store(true, SeqCst);
    });
    assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL);
}

#[test]
fn a_name_is_taken_from_the_dead_alone() {
    let folder = house::new_folder();
    let path = folder.join("http.sock");
    let place = format!("unix:{}", path.display());
    let living = UnixListener::bind(&path).expect("a socket");
    let refused = finish(serve(&folder.join("site")).args(["--listen", &place]));
    assert!(refused.stderr.contains(&format!("cannot listen on {place}: another program already does")));
    drop(living);
    // A killed server leaves it so.
    assert!(path.exists());
    let mut command = house::command(&folder, &binary());
    let house = House::of(folder, command.args(["--listen", &place]));
    assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL);
    let other = house.path("site/small.txt");
    for (place, words) in [
        (format!("unix:{}", other.display()), "there is another file, which is no socket"),
        ("unix:/absent/http.sock".to_owned(), "its folder does not exist"),
        ("unix:http.sock".to_owned(), "write the whole name of a socket file"),
        ("/run/http.sock".to_owned(), "write unix:/run/http.sock for a socket file"),
    ] {
        let refused = finish(serve(&house.path("site")).args(["--listen", &place]));
        assert!(!refused.status.success() && refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert_eq!(fs::read(other).expect("a file"), SMALL);
}

/// Proxies at a file are believed if they are named; else all who come by it are one client.
#[test]
fn clients_behind_a_file_are_told_apart() {
    const RATE: &str = "client_rate = '1/h'\n[[path]]\nmatch = '/large.bin'\nallow = ['unix:']\n";
    for io in WAYS {
        let trusting = house(io, &format!("{BOTH}trusted_proxies = ['unix:']\n{RATE}"));
        let path = trusting.path("http.sock");
        let of = |client: &str| status(&path, "/small.txt", &format!("X-Forwarded-For: {client}\r\n"));
        assert_eq!([of("192.0.2.1"), of("192.0.2.2"), of("192.0.2.1")], [200, 200, 429], "{io}");
        let plain = house(io, &format!("{BOTH}{RATE}"));
        let path = plain.path("http.sock");
        assert_eq!(status(&path, "/large.bin", "X-Forwarded-For: 192.0.2.1\r\n"), 200, "{io}: allowed");
        assert_eq!(status(&path, "/small.txt", "X-Forwarded-For: 192.0.2.2\r\n"), 429, "{io}: one client");
        // A peer of TCP is another client, and not allowed there.
        assert_eq!(status_by_tcp(plain.address(), "/large.bin"), 403, "{io}");
    }
}

/// The status of an answer by TCP.
fn status_by_tcp(address: SocketAddr, target: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
    let mut start = [0; 12];
    stream.read_exact(&mut start).expect("an answer");
    String::from_utf8_lossy(&start[9..]).parse().expect("a status")
}

#[test]
fn a_reload_adds_and_removes_files() {
    for io in WAYS {
        // A file in the same folder, so that a confined process may make others there.
        let house = house(io, "listen = ['127.0.0.1:0', 'unix:FOLDER/first.sock']\n");
        let path = house.path("http.sock");
        let folder = path.parent().expect("a folder").to_owned();
        write(&folder, io, BOTH);
        house.signal(Signal::HUP);
        house.until("the file is served", |_| {
            ask(&path, "/small.txt", "").is_ok_and(|(_, body)| body == SMALL).then_some(())
        });
        write(&folder, io, "listen = ['127.0.0.1:0']\n");
        house.signal(Signal::HUP);
        house.until("the file is gone", |_| (!path.exists()).then_some(()));
        assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}");
    }
}

/// A file that systemd has made is taken over, handed on, and left where it is.
#[test]
fn a_file_of_others_stays() {
    if !is_installed("systemd-socket-activate") {
        return;
    }
    let folder = house::new_folder();
    let path = folder.join("http.sock");
    let mut activate = Command::new("systemd-socket-activate");
    activate.arg("--listen").arg(&path).args(["--fdname", "web", "-E", "STAUNCH_BINARY"]);
    const HANDED: &str = "listen = ['fd:web', '127.0.0.1:0']\n";
    write(&folder, "epoll", HANDED);
    activate.arg(binary()).arg("serve").arg("--config").arg(folder.join("settings.toml"));
    activate.args(["--workers", "2", "--pid-file"]).arg(folder.join("pid")).stdin(Stdio::null());
    let settings = folder.clone();
    let first = path.clone();
    let waiting = std::thread::spawn(move || {
        let start = std::time::Instant::now();
        // The first connection starts the server, which answers it.
        while !first.exists() {
            assert!(start.elapsed() < house::PATIENCE, "nobody listens");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        loop {
            match ask(&first, "/small.txt", "") {
                Ok((_, body)) => return body,
                Err(error) => assert!(start.elapsed() < house::PATIENCE, "{error}"),
            }
        }
    });
    let mut house = House::of(folder, &mut activate);
    assert_eq!(waiting.join().expect("an answer"), SMALL);
    let last = house.upgrade();
    assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL);
    assert_eq!(house.end(), Some(0));
    // Another engine needs a socket of its own, which the name would never lead to.
    write(&settings, "uring", HANDED);
    house.signal(Signal::USR2);
    house.until_said("restart instead of an upgrade", 1);
    assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL);
    house.signal(Signal::TERM);
    house.until("the last process ends", |_| (!house::is_running(last)).then_some(()));
    assert!(path.exists());
}

/// The names of socket files in the folder of a house.
fn sockets_in(house: &House) -> Vec<String> {
    let entries = fs::read_dir(house.path("")).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let mut names: Vec<String> = names.filter(|name| name.contains(".sock")).collect();
    names.sort();
    names
}

/// The former process passes away when it has handed over.
fn upgrade(house: &mut House) {
    let before = house.process().expect("a process");
    house.upgrade();
    house.until("the former process ends", |_| (!house::is_running(before)).then_some(()));
}

#[test]
fn a_name_that_others_removed_or_took_is_no_reason_to_fail() {
    for io in WAYS {
        let mut house = house(io, BOTH);
        let path = house.path("http.sock");
        fs::remove_file(&path).expect("a file");
        upgrade(&mut house);
        let _stranger = UnixListener::bind(&path).expect("a socket");
        upgrade(&mut house);
        assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}");
        let last = house.process().expect("a process");
        house.signal(Signal::TERM);
        house.until("the last process ends", |_| (!house::is_running(last)).then_some(()));
        assert_eq!(sockets_in(&house), ["http.sock"], "{io}: the stranger's");
    }
}

#[test]
fn an_upgrade_gives_the_mode_anew_and_removes_what_is_not_wanted() {
    for io in WAYS {
        let mut house = house(io, &format!("{BOTH}socket_mode = '0660'\n"));
        let path = house.path("http.sock");
        write(&house.path(""), io, &format!("{BOTH}socket_mode = '0600'\n"));
        upgrade(&mut house);
        assert_eq!(fs::symlink_metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL, "{io}");
        write(&house.path(""), io, "listen = ['127.0.0.1:0']\n");
        upgrade(&mut house);
        assert_eq!(sockets_in(&house), [""; 0], "{io}");
    }
}

/// Each stop comes after a file was bound.
#[test]
fn a_start_a_reload_and_an_upgrade_that_fail_leave_nothing() {
    const MORE: &str = "listen = ['127.0.0.1:0', 'unix:FOLDER/http.sock', 'unix:FOLDER/more.sock', \
                        'unix:/absent/http.sock']\n";
    let house = house("epoll", BOTH);
    let path = house.path("http.sock");
    let inode = fs::symlink_metadata(&path).expect("a file").ino();
    let place = format!("unix:{}", house.path("other.sock").display());
    let words = ["--listen", &place, "--pid-file", "/absent/pid"];
    assert!(!finish(serve(&house.path("site")).args(words)).status.success());
    write(&house.path(""), "epoll", MORE);
    house.signal(Signal::HUP);
    house.until_said("the configuration stays as it was", 1);
    for (failed, io) in ["epoll", "uring"].into_iter().enumerate() {
        write(&house.path(""), io, MORE);
        house.signal(Signal::USR2);
        house.until_said("the upgrade failed, this process goes on", failed + 1);
    }
    assert_eq!(sockets_in(&house), ["http.sock"]);
    assert_eq!(fs::symlink_metadata(&path).expect("a file").ino(), inode);
    assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL);
}

/// A process whom nobody would find does not take over, and gives back the names that it had taken.
#[test]
fn an_upgrade_that_cannot_take_every_name_takes_none() {
    const TWO: &str = "listen = ['127.0.0.1:0', 'unix:FOLDER/http.sock', 'unix:FOLDER/more.sock']\n";
    let house = house("epoll", TWO);
    let [first, second] = [house.path("http.sock"), house.path("more.sock")];
    let inode = fs::symlink_metadata(&first).expect("a file").ino();
    fs::remove_file(&second).expect("a file");
    fs::write(&second, "a file").expect("a file");
    write(&house.path(""), "uring", TWO);
    house.signal(Signal::USR2);
    house.until_said("the upgrade failed, this process goes on", 1);
    assert!(house.said().contains("there is another file, which is no socket"), "{}", house.said());
    assert_eq!(sockets_in(&house), ["http.sock", "more.sock"]);
    assert_eq!(fs::symlink_metadata(&first).expect("a file").ino(), inode);
    assert_eq!(ask(&first, "/small.txt", "").expect("an answer").1, SMALL);
    assert_eq!(fs::read(&second).expect("a file"), b"a file");
}

/// Started as root, it serves as another user, who removes the file at the end.
#[test]
fn a_file_is_its_users() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = house::new_folder();
    let nobody = 65534;
    std::os::unix::fs::chown(&folder, Some(nobody), Some(nobody)).expect("our own folder");
    write(&folder, "auto", &format!("{BOTH}user = 'nobody'\nsocket_mode = '0660'\n"));
    let mut command = Command::new(binary());
    command.arg("serve").arg("--config").arg(folder.join("settings.toml")).arg("--pid-file");
    command.arg(folder.join("pid")).stdin(Stdio::null());
    let mut house = House::of(folder, &mut command);
    let path = house.path("http.sock");
    let found = fs::symlink_metadata(&path).expect("a file");
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (nobody, nobody, 0o660));
    upgrade(&mut house);
    assert_eq!(ask(&path, "/small.txt", "").expect("an answer").1, SMALL);
    house.signal(Signal::TERM);
    house.until("the file is gone", |_| (!path.exists()).then_some(()));
}
