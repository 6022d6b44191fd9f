//! HUP: the configuration is read again, and no connection notices; a bad one changes nothing.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::binary;

use crate::conversation::{Talk, get};
use crate::house::{self, House, SMALL, WAYS, WITHOUT_PATIENCE};
use crate::load::Load;

const DONE: &str = "the configuration was read again";
const REFUSED: &str = "the configuration stays as it was";

/// A server with a configuration file that says this, `ROOT` standing for its folder.
fn configured(io: &str, text: &str) -> House {
    let folder = house::new_folder();
    write(&folder, text);
    let mut command = Command::new(binary());
    command.args(["serve", "--io", io, "--workers", "2", "--config"]).arg(folder.join("conf.toml"));
    command.args(WITHOUT_PATIENCE).arg("--pid-file").arg(folder.join("pid"));
    House::of(folder, &mut command)
}

/// Replaces the file at once, as editors do: a reload that still goes on may be reading it.
fn write(folder: &Path, text: &str) {
    let text = text.replace("ROOT", &folder.to_string_lossy());
    fs::write(folder.join("conf.toml.next"), text).expect("a file");
    fs::rename(folder.join("conf.toml.next"), folder.join("conf.toml")).expect("a file of that name");
}

/// Changes the file, and waits for the word that says what came of it.
#[track_caller]
fn reload(house: &House, text: &str, word: &str) {
    write(&house.path(""), text);
    let before = house.said().matches(word).count();
    house.signal(Signal::HUP);
    house.until_said(word, before + 1);
}

#[test]
fn no_connection_is_closed() {
    for io in WAYS {
        let house = configured(io, "listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\n");
        let load = Load::closed(&house.url("/small.txt"), 32, "2s");
        let mut kept = Talk::with(house.address());
        for round in 0..20 {
            let headers =
                format!("headers = {{ X-Round = \"{round}\" }}\nkeep_alive = \"{}s\"\n", 20 + round);
            let text = format!("listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\n{headers}");
            write(&house.path(""), &text);
            fs::write(house.path("site/other.txt"), round.to_string()).expect("a file");
            house.signal(Signal::HUP);
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false), "{io}");
        }
        house.until_said(DONE, 1);
        load.expect_no_failure();
        assert!(!house.said().contains(REFUSED), "{}", house.said());
        kept.ask("/other.txt");
        let response = kept.hear();
        assert_eq!(response.value("X-Round").as_deref(), Some("19"), "{io}");
        assert_eq!(response.body, b"19", "{io}");
    }
}

#[test]
fn what_is_wrong_is_said_and_changes_nothing() {
    let good = "listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\n";
    let house = configured("auto", good);
    let mut kept = Talk::with(house.address());
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = stranger.local_addr().expect("an address");
    let cases = [
        ("listen = [".to_owned(), "conf.toml:1"),
        (format!("{good}keep_alife = \"3s\"\n"), "keep_alive"),
        (good.replace("ROOT/site", "ROOT/nowhere"), "nowhere does not exist"),
        (good.replace("127.0.0.1:0", &taken.to_string()), "another program already does"),
        (good.replace("127.0.0.1:0", "fd:web"), "no socket called web was handed over"),
    ];
    for (text, expected) in &cases {
        reload(&house, text, REFUSED);
        let said = house.said();
        let last = said.rsplit_once(REFUSED).expect("said").1;
        assert!(last.contains(expected), "{text}: {last}");
        assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false));
        assert_eq!(get(house.address(), "/small.txt"), SMALL);
    }
    drop(stranger);
    reload(&house, &format!("{good}io = \"epoll\"\nstatus = \"/s\"\n"), DONE);
    assert!(house.said().contains("only a restart or an upgrade changes status"), "{}", house.said());
    assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false));
}

/// A reload that runs out of descriptors, at whichever step, leaves everything as it was.
#[test]
fn a_reload_without_descriptors_changes_nothing() {
    let text = |listen: &[SocketAddr], name: &str| {
        let listen: Vec<String> = listen.iter().map(|address| format!("\"{address}\"")).collect();
        format!(
            "listen = [{}]\nroot = \"ROOT/site\"\nheaders = {{ X-Name = \"{name}\" }}\n\
             access_log = \"ROOT/{name}.log\"\nerror_log = \"ROOT/{name}.errors\"\nsandbox = \"off\"\n",
            listen.join(", ")
        )
    };
    for io in WAYS {
        let (first, second) = (reserved_address(), reserved_address());
        let house = configured(io, &text(&[first], "old"));
        let mut kept = Talk::with(first);
        assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false), "{io}");
        let said = |name: &str| fs::read_to_string(house.path(name)).unwrap_or_default();
        // Signals are obeyed once every worker accepts.
        house.signal(Signal::HUP);
        house.until("it is complete", |_| said("old.errors").contains(DONE).then_some(()));
        let process = Pid::from_raw(house.first().cast_signed());
        let limit = prlimit(process, Resource::Nofile, getrlimit(Resource::Nofile)).expect("a limit");
        write(&house.path(""), &text(&[first, second], "new"));
        let mut refusals = 0;
        let highest = fs::read_dir(format!("/proc/{}/fd", house.first()))
            .expect("descriptors")
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok())
            .max()
            .expect("a descriptor");
        // From none free on, one more each time, until it succeeds.
        for current in 3..highest + 40 {
            prlimit(process, Resource::Nofile, Rlimit { current: Some(current), ..limit }).expect("a limit");
            house.signal(Signal::HUP);
            house.until("it says what came of it", |_| {
                let refused = said("old.errors").matches(REFUSED).count() > refusals;
                (refused || said("new.errors").contains(DONE)).then_some(())
            });
            // The connection was there before: it needs no descriptor.
            kept.ask("/small.txt");
            let name = kept.hear().value("X-Name");
            let is_new = said("new.errors").contains(DONE);
            assert_eq!(name.as_deref(), Some(if is_new { "new" } else { "old" }), "{io}, {current}");
            assert_eq!(TcpStream::connect(second).is_ok(), is_new, "{io}, {current}");
            if is_new {
                break;
            }
            assert_eq!(said("new.log"), "", "{io}, {current}");
            refusals = said("old.errors").matches(REFUSED).count();
        }
        assert!(refusals > 3 && said("new.errors").contains(DONE), "{io}: {refusals} refusals");
        prlimit(process, Resource::Nofile, limit).expect("a limit");
        assert_eq!(get(second, "/small.txt"), SMALL, "{io}");
    }
}

#[test]
fn addresses_come_and_go() {
    for io in WAYS {
        let first = reserved_address();
        let listening = |addresses: &[SocketAddr]| {
            let addresses: Vec<String> = addresses.iter().map(|address| format!("\"{address}\"")).collect();
            format!("listen = [{}]\nroot = \"ROOT/site\"\n", addresses.join(", "))
        };
        let house = configured(io, &listening(&[first]));
        let mut kept = Talk::with(first);
        assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false));
        let load = Load::closed(&house.url("/small.txt"), 16, "1500ms");
        let second = reserved_address();
        reload(&house, &listening(&[first, second]), DONE);
        for _ in 0..10 {
            assert_eq!(get(second, "/small.txt"), SMALL, "{io}");
        }
        load.expect_no_failure();
        reload(&house, &listening(&[second]), DONE);
        house.until("nobody listens at the first", |_| TcpStream::connect(first).err());
        assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false), "{io}: the connection lives on");
        assert_eq!(get(second, "/small.txt"), SMALL, "{io}");
        reload(&house, &listening(&[first, second]), DONE);
        assert_eq!(get(first, "/small.txt"), SMALL, "{io}: it is back");
    }
}

#[test]
fn another_folder_is_served() {
    for io in WAYS {
        let text = "listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\n";
        let house = configured(io, text);
        fs::create_dir(house.path("new")).expect("a folder");
        fs::write(house.path("new/small.txt"), "new\n").expect("a file");
        let mut kept = Talk::with(house.address());
        let mut slow = Talk::with(house.address());
        assert_eq!(kept.get("/small.txt").0, SMALL, "{io}");
        slow.ask("/large.bin");
        assert!(slow.0.fill(house::PATIENCE));
        reload(&house, &text.replace("/site", "/new"), DONE);
        assert_eq!(kept.get("/small.txt").0, b"new\n", "{io}");
        assert_eq!(slow.hear().body.len(), house::LARGE_BYTES, "{io}: what was begun is finished");
    }
}

/// An upgrade takes on what only a restart changes, even another way to the network.
#[test]
fn an_upgrade_takes_on_everything() {
    for (before, after) in [("uring", "epoll"), ("epoll", "uring")] {
        let text = format!(
            "listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\nio = \"{before}\"\nworkers = 1\n\
             keep_alive = \"1s\"\n"
        );
        let folder = house::new_folder();
        write(&folder, &text);
        let mut command = Command::new(binary());
        command.args(["serve", "--config"]).arg(folder.join("conf.toml"));
        command.arg("--pid-file").arg(folder.join("pid"));
        let mut house = House::of(folder, &mut command);
        let load = Load::closed(&house.url("/small.txt"), 16, "2s");
        let text = text.replace(before, after).replace("workers = 1", "workers = 3");
        write(&house.path(""), &text);
        house.upgrade();
        assert_eq!(house.end(), Some(0));
        assert_eq!(get(house.address(), "/small.txt"), SMALL);
        write(&house.path(""), &text.replace("workers = 3", "workers = 2"));
        house.upgrade();
        assert_eq!(get(house.address(), "/small.txt"), SMALL);
        load.expect_no_failure();
        let out = fs::read_to_string(house.path("out")).expect("its output");
        assert!(out.contains("workers      3, on") && out.contains("workers      2, on"), "{out}");
    }
}

/// A process that is confined cannot open a folder elsewhere: another one takes its place, and no request
/// fails.
#[test]
fn a_folder_beyond_the_fence_is_served_after_a_reload() {
    for io in WAYS {
        let text = "listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\n";
        let mut house = configured(io, text);
        let elsewhere = [house::new_folder(), house::new_folder()];
        let load = Load::closed(&house.url("/small.txt"), 16, "3s");
        for (number, folder) in elsewhere.iter().enumerate() {
            fs::write(folder.join("site/small.txt"), format!("new{number}\n")).expect("a file");
            write(&house.path(""), &text.replace("ROOT", &folder.to_string_lossy()));
            let (code, said) = house.reload_by_command();
            house.upgraded();
            assert_eq!(code, Some(0), "{io}: {said}; {}", house.said());
            assert_eq!(get(house.address(), "/small.txt"), format!("new{number}\n").as_bytes(), "{io}");
        }
        load.expect_no_failure();
        // A new log elsewhere is as far away as a folder.
        let log = elsewhere[0].join("logs");
        fs::create_dir(&log).expect("a folder");
        let settings = text.replace("ROOT", &elsewhere[1].to_string_lossy());
        write(&house.path(""), &format!("{settings}access_log = \"{}/access.log\"\n", log.display()));
        let (code, said) = house.reload_by_command();
        house.upgraded();
        assert_eq!(code, Some(0), "{io}: {said}; {}", house.said());
        assert_eq!(get(house.address(), "/small.txt"), b"new1\n", "{io}");
        house.until("the request is in the log", |_| {
            fs::read_to_string(log.join("access.log")).ok().filter(|text| text.contains("/small.txt"))
        });
        elsewhere.iter().for_each(|folder| fs::remove_dir_all(folder).expect("a folder of ours"));
    }
}

/// What cannot be is told by the command, with its reason, and the server goes on as it was.
#[test]
fn a_reload_that_is_refused_is_told() {
    let text = "listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\n";
    let mut house = configured("auto", text);
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = stranger.local_addr().expect("an address").to_string();
    let elsewhere = house::new_folder();
    let beyond = text.replace("ROOT", &elsewhere.to_string_lossy());
    for (text, expected) in [
        (text.replace("ROOT/site", "ROOT/nowhere"), "nowhere does not exist"),
        // Here it is the next process that cannot, and says why.
        (beyond.replace("127.0.0.1:0", &taken), "another program already does"),
    ] {
        write(&house.path(""), &text);
        let (code, said) = house.reload_by_command();
        house.upgraded();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        assert_eq!(get(house.address(), "/small.txt"), SMALL);
        assert_eq!(house.process(), Some(house.first()));
    }
    // And then it can be again.
    write(&house.path(""), text);
    assert_eq!(house.reload_by_command().0, Some(0), "{}", house.said());
    fs::remove_dir_all(elsewhere).expect("a folder of ours");
}
