//! `staunch reload`, `stop`, `upgrade`, `status`: what they find, what they say, and what they leave alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::{Finished, binary, finish};

use crate::conversation::get;
use crate::house::{self, House, SMALL, WAYS, is_running};

/// Runs `staunch COMMAND FLAG VALUE`.
fn tell(command: &[&str], flag: &str, value: &Path) -> Finished {
    finish(Command::new(binary()).args(command).arg(flag).arg(value).env_remove("STAUNCH_CONFIG"))
}

fn configured(io: &str, text: &str) -> House {
    let folder = house::new_folder();
    let text = text.replace("ROOT", &folder.to_string_lossy());
    fs::write(folder.join("conf.toml"), text).expect("a file");
    let mut command = Command::new(binary());
    command.args(["serve", "--io", io, "--workers", "1", "--config"]).arg(folder.join("conf.toml"));
    House::of(folder, &mut command)
}

const SETTINGS: &str = "listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\npid_file = \"ROOT/pid\"\n";

#[test]
fn a_server_is_reloaded_upgraded_and_stopped_by_its_settings() {
    for io in WAYS {
        let mut house = configured(io, SETTINGS);
        let first = house.process().expect("a process");
        let settings = house.path("conf.toml");
        let status = tell(&["status"], "-c", &settings);
        assert_eq!(status.status.code(), Some(0), "{}", status.stderr);
        assert!(status.stdout.contains(&format!("running: PID {first}")), "{}", status.stdout);

        let reloaded = tell(&["reload"], "-c", &settings);
        assert_eq!(reloaded.status.code(), Some(0), "{}", reloaded.stderr);
        house.until_said("the configuration was read again", 1);

        let upgraded = tell(&["upgrade"], "-c", &settings);
        house.upgraded();
        let second = house.process().expect("a process");
        assert_eq!(upgraded.status.code(), Some(0), "{}", upgraded.stderr);
        assert_ne!(first, second);
        assert!(upgraded.stdout.contains(&format!("process {second} serves now")), "{}", upgraded.stdout);
        assert_eq!(get(house.address(), "/small.txt"), SMALL);

        let stopped = tell(&["stop"], "-c", &settings);
        assert_eq!(stopped.status.code(), Some(0), "{}", stopped.stderr);
        assert!(!is_running(second), "it has ended when the command says so");
        assert_eq!(tell(&["status"], "-c", &settings).status.code(), Some(3));
        let again = tell(&["stop"], "-c", &settings);
        assert_eq!(again.status.code(), Some(1));
        assert!(again.stderr.contains("no server runs: there is no PID file"), "{}", again.stderr);
    }
}

#[test]
fn a_faulty_configuration_is_not_sent() {
    let house = configured("auto", SETTINGS);
    let settings = house.path("conf.toml");
    let right = fs::read_to_string(&settings).expect("a text");
    fs::write(&settings, format!("{right}keep_alive = \"long\"\n")).expect("a file");
    let refused = tell(&["reload"], "-c", &settings);
    assert_eq!(refused.status.code(), Some(78));
    assert!(refused.stderr.contains("conf.toml:4"), "{}", refused.stderr);
    assert_eq!(get(house.address(), "/small.txt"), SMALL);
    assert!(!house.said().contains("the configuration"), "no signal was sent: {}", house.said());
}

#[test]
fn a_process_that_is_no_server_gets_no_signal() {
    let folder = house::new_folder();
    let mut other = Command::new("sleep").arg("1000").spawn().expect("sleep");
    let pid_file = folder.join("pid");
    for (text, words) in [
        (other.id().to_string(), "which is no `staunch serve`"),
        ("4194305".to_owned(), "which has ended"),
        ("a word".to_owned(), "is no PID file"),
    ] {
        fs::write(&pid_file, text).expect("a file");
        for command in ["reload", "stop", "upgrade"] {
            let told = tell(&[command], "--pid-file", &pid_file);
            assert_eq!(told.status.code(), Some(1), "{command}");
            assert!(told.stderr.contains(words), "{command}: {}", told.stderr);
        }
        let status = tell(&["status"], "--pid-file", &pid_file);
        assert_eq!(status.status.code(), Some(3));
    }
    assert!(is_running(other.id()), "it was left alone");
    other.kill().and_then(|()| other.wait()).expect("a child of ours");
    fs::remove_dir_all(folder).expect("a folder");
}

#[test]
fn the_admin_address_names_a_server_too() {
    let port = reserved_address();
    let house = configured("auto", &format!("{SETTINGS}admin = \"{port}\"\n"));
    let address = port.to_string();
    let status = house.until("the admin address answers", |_| {
        let status = tell(&["status", "--json"], "--admin", Path::new(&address));
        (status.status.code() == Some(0)).then_some(status.stdout)
    });
    assert!(status.starts_with("{\"running\":true,\"pid\":"), "{status}");
    assert!(status.contains("\"connections\":"), "{status}");
    let stopped = tell(&["stop", "--now"], "--admin", Path::new(&address));
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.stderr);
}

/// A socket file names it as an address does, and is gone when the server is.
#[test]
fn a_socket_file_names_a_server_too() {
    let mut house = configured("auto", &format!("{SETTINGS}admin = \"ROOT/admin\"\n"));
    let socket = house.path("admin");
    house.until("the socket answers", |_| {
        (tell(&["status"], "--admin", &socket).status.code() == Some(0)).then_some(())
    });
    let top = tell(&["top", "--once"], "--admin", &socket);
    assert_eq!(top.status.code(), Some(0), "{}", top.stderr);
    let reloaded = tell(&["reload"], "--admin", &socket);
    assert_eq!(reloaded.status.code(), Some(0), "{}", reloaded.stderr);
    assert!(reloaded.stdout.contains("the configuration was read again"), "{}", reloaded.stdout);
    let settings = house.path("conf.toml");
    let right = fs::read_to_string(&settings).expect("a text");
    fs::write(&settings, right.replace("/site", "/nowhere")).expect("a file");
    let refused = tell(&["reload"], "--admin", &socket);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("nowhere does not exist"), "{}", refused.stderr);
    fs::write(&settings, right).expect("a file");
    let first = house.process();
    let upgraded = tell(&["upgrade"], "--admin", &socket);
    assert_eq!(upgraded.status.code(), Some(0), "{}", upgraded.stderr);
    house.until("it has written its number", |house| (house.process() != first).then_some(()));
    house.upgraded();
    let second = house.process().expect("a process");
    let stopped = tell(&["stop", "--now"], "--admin", &socket);
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.stderr);
    assert!(!is_running(second));
    assert!(!socket.exists(), "nothing is left behind");
}

#[test]
fn without_a_name_the_command_says_how_to_give_one() {
    let house = configured("auto", SETTINGS);
    let nameless = house.path("nameless.toml");
    fs::write(&nameless, format!("root = {:?}\n", house.path("site"))).expect("a file");
    let told = tell(&["reload"], "-c", &nameless);
    assert_eq!(told.status.code(), Some(2));
    assert!(told.stderr.contains("sets neither `pid_file` nor `admin`"), "{}", told.stderr);
    assert!(told.stderr.contains("--pid-file FILE"), "{}", told.stderr);
}
