//! `staunch publish` to a server by HTTPS: values arrive, and a server that is not believed gets nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

use staunch_tests::process::binary;
use staunch_tests::tree::Tree;
use staunch_tls::LocalAuthority;

use crate::world::{ENGINES, TOKEN, World};

/// An authority, its file, and one whose authority signed nothing.
struct Authorities {
    folder: Tree,
}

impl Authorities {
    /// With the pair of a server of this machine.
    fn new() -> Self {
        let authorities = Self { folder: Tree::with(&[]).expect("a folder") };
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
        let [ours, other] = [(); 2].map(|()| LocalAuthority::create(now_s).expect("an authority"));
        let issued = ours.issue(&["localhost", "127.0.0.1"], now_s).expect("names of this machine");
        let write = |name, text: &[u8]| std::fs::write(authorities.file(name), text).expect("a file");
        write("ours.pem", ours.certificate_pem().as_bytes());
        write("other.pem", other.certificate_pem().as_bytes());
        write("server.pem", issued.certificate_pem.as_bytes());
        write("server.key", issued.key_pem.as_bytes());
        authorities
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.root().join(name)
    }

    /// A server that speaks HTTPS, and its URL.
    fn world(&self, io: &str) -> (World, String) {
        let [pair, key] = ["server.pem", "server.key"].map(|name| self.file(name));
        let words = [Path::new("--tls-certificate"), &pair, Path::new("--tls-key"), &key];
        let words = words.map(|word| word.to_str().expect("a name of ours").to_owned());
        let all: Vec<&str> =
            ["--tls-listen", "127.0.0.1:0"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let world = World::new(io, &all);
        let url = format!("https://{}", world.server.secured_address());
        (world, url)
    }

    /// The value of the topic, as anybody reads it.
    fn value(&self, url: &str) -> String {
        let mut command = Command::new("curl");
        command.args(["--silent", "--max-time", "120", "--cacert"]).arg(self.file("ours.pem"));
        let output = command.arg(format!("{url}/live/log.a")).output().expect("curl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Publishes what a file says, believing an authority.
    fn publish(&self, url: &str, authority: &str, words: &[&str], value: &[u8]) -> Output {
        let file = self.file("value");
        std::fs::write(&file, value).expect("a file");
        let mut command = Command::new(binary());
        command.args(["publish", "log.a"]).arg(file).args(words);
        command.arg("--cacert").arg(self.file(authority));
        command.arg("--to").arg(url);
        command.env("STAUNCH_PUBLISH_TOKEN", TOKEN).output().expect("the program")
    }
}

#[test]
fn values_are_published_by_https() {
    let authorities = Authorities::new();
    for io in ENGINES {
        let (_world, url) = authorities.world(io);
        let lines: String = (0..200).map(|number| format!("line {number}\n")).collect();
        let output = authorities.publish(&url, "ours.pem", &["--lines"], lines.as_bytes());
        assert!(output.status.success(), "{io}: {output:?}");
        assert_eq!(authorities.value(&url), "line 199", "{io}");
    }
}

/// Longer than the sockets of both sides hold, so that the server answers while it is being sent.
#[test]
fn a_value_that_is_too_long_is_told_so() {
    let authorities = Authorities::new();
    let (_world, url) = authorities.world("epoll");
    let output = authorities.publish(&url, "ours.pem", &[], &vec![b'x'; 15 << 20]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("log.a: "), "{said}");
}

#[test]
fn a_server_that_is_not_believed_gets_nothing() {
    let authorities = Authorities::new();
    let (_world, url) = authorities.world("uring");
    for words in [&[][..], &["--lines"], &["--lines", "--follow"]] {
        let output = authorities.publish(&url, "other.pem", words, b"secret\n");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("invalid peer certificate: UnknownIssuer"),
            "{said}"
        );
    }
    assert!(!authorities.value(&url).contains("secret"));
}
