//! Changes while a server runs, though no event tells of it, and sites that are not as they were opened:
//! all of it is seen without a signal, and one site's fault is no other's.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::{binary, finish, is_installed};

use crate::conversation::Talk;
use crate::house::{self, House, WITHOUT_PATIENCE};

/// A server by a file that says this, `ROOT` standing for its folder; `wrap` are words in front of the
/// command.
fn configured(folder: &Path, text: &str, wrap: &[&str]) -> House {
    let text = text.replace("ROOT", &folder.to_string_lossy());
    fs::write(folder.join("conf.toml"), text).expect("a file");
    let mut words: Vec<std::ffi::OsString> = wrap.iter().map(Into::into).collect();
    words.push(binary().into());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(["serve", "--workers", "1", "--config"]).arg(folder.join("conf.toml"));
    command.args(WITHOUT_PATIENCE).arg("--pid-file").arg(folder.join("pid"));
    House::of(folder.to_path_buf(), &mut command)
}

const ONE: &str = "listen = [\"127.0.0.1:0\"]\nroot = \"ROOT/site\"\n";

/// What is answered to a request with these further fields, on a connection of its own: status and body.
#[track_caller]
fn ask(address: SocketAddr, path: &str, fields: &str) -> (u16, Vec<u8>) {
    let mut talk = Talk::with(address);
    talk.0.send(format!("GET {path} HTTP/1.1\r\n{fields}\r\n").as_bytes());
    let response = talk.hear();
    (response.status, response.body)
}

const LOCALHOST: &str = "Host: localhost\r\n";

/// Asks again and again until this is answered.
#[track_caller]
fn until_answered(house: &House, path: &str, expected: &[u8]) {
    let is_it = |house: &House| ask(house.address(), path, LOCALHOST) == (200, expected.to_vec());
    house.until("the new content is answered", |house| is_it(house).then_some(()));
}

/// A file that is mounted into the root changes where nobody listens (containers do so with single files).
#[test]
fn a_mounted_file_is_seen_to_change() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: mounting needs root");
    }
    if !is_installed("unshare") || !is_installed("mount") {
        return;
    }
    let folder = house::new_folder();
    fs::create_dir(folder.join("other")).expect("a folder");
    fs::write(folder.join("other/env.js"), "one\n").expect("a file");
    fs::write(folder.join("site/env.js"), "").expect("a file");
    let site = folder.display().to_string();
    let mount = format!("mount --bind {site}/other/env.js {site}/site/env.js && exec \"$0\" \"$@\"");
    let house = configured(&folder, ONE, &["unshare", "--mount", "sh", "-c", &mount]);
    for text in ["one\n", "two\n", "three\n"] {
        fs::write(folder.join("other/env.js"), text).expect("in place");
        until_answered(&house, "/env.js", text.as_bytes());
    }
}

/// A write through a shared mapping gives no event.
#[test]
fn a_change_through_a_mapping_is_seen() {
    if !is_installed("python3") {
        return;
    }
    let folder = house::new_folder();
    fs::write(folder.join("site/page.txt"), "aaaa\n").expect("a file");
    let house = configured(&folder, ONE, &[]);
    until_answered(&house, "/page.txt", b"aaaa\n");
    let script =
        "import mmap,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nm[0:4]=b'bbbb'\nm.flush()\n";
    let mut python = Command::new("python3");
    let finished = finish(python.args(["-c", script]).arg(folder.join("site/page.txt")));
    assert!(finished.status.success(), "{}", finished.stderr);
    until_answered(&house, "/page.txt", b"bbbb\n");
}

/// The root is removed and made anew, as generators of sites do; it is moved; a link to it is turned.
#[test]
fn a_root_that_is_another_one_now_is_opened_by_itself() {
    let folder = house::new_folder();
    std::os::unix::fs::symlink(folder.join("site"), folder.join("current")).expect("a link");
    let house = configured(&folder, &ONE.replace("/site", "/current"), &[]);
    let write = |site: &str, text: &str| {
        fs::create_dir_all(folder.join(site)).expect("a folder");
        fs::write(folder.join(site).join("page.txt"), text).expect("a file");
    };
    write("site", "first\n");
    until_answered(&house, "/page.txt", b"first\n");
    fs::remove_dir_all(folder.join("site")).expect("removed");
    write("site", "made anew\n");
    until_answered(&house, "/page.txt", b"made anew\n");
    fs::rename(folder.join("site"), folder.join("away")).expect("moved");
    write("site", "in its place\n");
    until_answered(&house, "/page.txt", b"in its place\n");
    write("next", "the next one\n");
    std::os::unix::fs::symlink(folder.join("next"), folder.join("turned")).expect("a link");
    fs::rename(folder.join("turned"), folder.join("current")).expect("turned");
    until_answered(&house, "/page.txt", b"the next one\n");
    assert!(house.said().contains("its site was opened again"), "{}", house.said());
}

/// A site whose folder is not there yet says so and darkens no other; once it is there it is served.
#[test]
fn a_missing_folder_darkens_no_other_site() {
    let folder = house::new_folder();
    let admin = reserved_address();
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"{admin}\"\n\
         [[site]]\nhosts = [\"one.example\"]\ndefault = true\nroot = \"ROOT/site\"\n\
         [[site]]\nhosts = [\"two.example\"]\nroot = \"ROOT/later\"\n"
    );
    let house = configured(&folder, &text, &[]);
    let of_host = |host: &str| ask(house.address(), "/small.txt", &format!("Host: {host}\r\n"));
    assert_eq!(of_host("one.example"), (200, house::SMALL.to_vec()));
    assert_eq!(of_host("two.example").0, 503);
    assert!(house.said().contains("later does not exist"), "{}", house.said());
    let ready = |words: &str| {
        let page = String::from_utf8(ask(admin, "/readyz", LOCALHOST).1).expect("a text");
        (page.starts_with("ready\n") && page.contains(words)).then_some(())
    };
    house.until("it says so", |_| ready("but: site two.example: "));
    fs::create_dir(folder.join("later")).expect("a folder");
    fs::write(folder.join("later/small.txt"), "later\n").expect("a file");
    house.until("it is served", |_| (of_host("two.example") == (200, b"later\n".to_vec())).then_some(()));
    assert_eq!(ask(admin, "/readyz", LOCALHOST), (200, b"ready\n".to_vec()));
}

/// A user who is taken out of the file comes in no more, without a signal; a file with a fault changes
/// nothing.
#[test]
fn a_file_of_users_is_read_anew_when_it_changes() {
    let folder = house::new_folder();
    let password = |name: &str| {
        let mut command = Command::new(binary());
        command.args(["password", name]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().expect("a program");
        std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), b"pw\n").expect("written");
        String::from_utf8(child.wait_with_output().expect("an end").stdout).expect("a line")
    };
    let (anna, berta) = (password("anna"), password("berta"));
    fs::write(folder.join("users"), format!("{anna}{berta}")).expect("a file");
    let text = format!(
        "{ONE}[[path]]\nmatch = \"/*\"\nbasic_auth = {{ realm = \"R\", users_file = \"ROOT/users\" }}\n"
    );
    let house = configured(&folder, &text, &[]);
    let ask = |credentials: &str| {
        let fields = format!("{LOCALHOST}Authorization: Basic {credentials}\r\n");
        ask(house.address(), "/small.txt", &fields).0
    };
    // anna:pw and berta:pw
    let (of_anna, of_berta) = ("YW5uYTpwdw==", "YmVydGE6cHc=");
    assert_eq!((ask(of_anna), ask(of_berta)), (200, 200));
    fs::write(folder.join("users"), &berta).expect("a file");
    house.until("anna is refused", |_| (ask(of_anna) == 401).then_some(()));
    assert_eq!(ask(of_berta), 200);
    fs::write(folder.join("users"), "berta:$apr1$x$y\n").expect("a file");
    house.until("the fault is said", |house| {
        ask(of_berta);
        house.said().contains("cannot be opened again and goes on as it was").then_some(())
    });
    assert_eq!(ask(of_berta), 200);
}
