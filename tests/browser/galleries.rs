//! Pages that people leave before all of them has come, over a slow link: nothing of it may break what comes
//! next. nginx, where it is installed, shows that the scenes can be served without a failure.
//!
//! It owns the pictures, the servers, and the start of `galleries.mjs`, which plays the scenes and judges.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, binary, is_installed};
use staunch_tls::LocalAuthority;

use crate::chromium::{browser, script};
use crate::link::{Link, SERVER};

const PICTURES: u32 = 40;

#[test]
fn leaving_breaks_nothing() {
    let Some(browser) = browser() else { return };
    let Some(link) = Link::new() else { return };
    let site = Site::new();
    let play = |port: u16, of: &str| {
        let url = format!("https://{SERVER}:{port}");
        let mut command = link.at_browser("node");
        command.arg(script("galleries.mjs")).arg(url).env("CHROMIUM", browser.program());
        let output = command.stdin(Stdio::null()).output().expect("ip starts node");
        println!("{of}: {}", String::from_utf8_lossy(&output.stdout).trim());
        assert!(output.status.success(), "{of}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for io in ["uring", "epoll"] {
        let mut command = link.at_server(binary());
        command.arg("serve").arg(site.folder.join("www")).args(["--workers", "1", "--io", io]);
        command.args(["--listen", "127.0.0.1:0", "--tls-listen", &format!("{SERVER}:0")]);
        command.arg("--tls-certificate").arg(site.folder.join("server.pem"));
        command.arg("--tls-key").arg(site.folder.join("server.key"));
        let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
        play(server.secured_address().port(), io);
    }
    if is_installed("nginx") {
        let _nginx = Nginx::new(&link, &site.folder);
        play(8443, "nginx");
    }
}

/// A folder with the pages, and a certificate beside it; gone at the end.
struct Site {
    folder: PathBuf,
}

impl Site {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("staunch-galleries-{}", std::process::id()));
        let pictures = folder.join("www/pictures");
        fs::create_dir_all(&pictures).expect("a folder");
        for number in 0..PICTURES {
            fs::write(pictures.join(format!("{number}.png")), picture(number)).expect("a file");
        }
        fs::write(folder.join("www/film.bin"), vec![7; 3_000_000]).expect("a file");
        let page = "<!doctype html><title>gallery</title><link rel=icon href=data:,><body><script>\
            const visit = new URL(location).searchParams.get('visit');\
            for (let i = 0; i < 40; i++) {\
            const image = new Image(); image.src = `/pictures/${i}.png?${visit}`;\
            document.body.append(image); }</script>";
        fs::write(folder.join("www/gallery.html"), page).expect("a file");
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since.expect("the clock stands after 1970").as_secs();
        let authority = LocalAuthority::create(now).expect("an authority");
        let issued = authority.issue(&[SERVER], now).expect("a local address");
        fs::write(folder.join("server.pem"), issued.certificate_pem).expect("a file");
        fs::write(folder.join("server.key"), issued.key_pem.as_bytes()).expect("a file");
        Self { folder }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// nginx at the server's end of the link.
struct Nginx {
    child: Child,
}

impl Nginx {
    fn new(link: &Link, folder: &Path) -> Self {
        let path = folder.display();
        let settings = format!(
            "daemon off; user root; worker_processes 1; pid {path}/pid; error_log {path}/error.log;\n\
             events {{}}\nhttp {{ types {{ text/html html; image/png png; }} access_log off; \
             client_body_temp_path {path}/1; proxy_temp_path {path}/2; fastcgi_temp_path {path}/3; \
             uwsgi_temp_path {path}/4; scgi_temp_path {path}/5; \
             server {{ listen {SERVER}:8443 ssl http2; root {path}/www; \
             ssl_certificate {path}/server.pem; ssl_certificate_key {path}/server.key; }} }}\n"
        );
        fs::write(folder.join("nginx.conf"), settings).expect("a file");
        let mut command = link.at_server("nginx");
        command.arg("-c").arg(folder.join("nginx.conf")).args(["-e", "stderr"]);
        let child = command.stdin(Stdio::null()).spawn().expect("ip starts nginx");
        let pid = folder.join("pid");
        until("nginx has started", || fs::read_to_string(&pid).is_ok_and(|text| !text.is_empty()));
        Self { child }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM, so that it ends its workers.
        let process = Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        let _ = kill_process(process, Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A picture of 150 KB that nothing makes smaller (PNG, its content not compressed).
fn picture(seed: u32) -> Vec<u8> {
    const WIDTH: u32 = 256;
    const HEIGHT: u32 = 195;
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut rows = Vec::new();
    for _ in 0..HEIGHT {
        rows.push(0);
        rows.extend((0..WIDTH * 3).map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        }));
    }
    let mut content = vec![0x78, 1];
    let mut pieces = rows.chunks(65_535).peekable();
    while let Some(piece) = pieces.next() {
        content.push(u8::from(pieces.peek().is_none()));
        let length = piece.len() as u16;
        content.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        content.extend_from_slice(piece);
    }
    let (one, two) = rows.iter().fold((1_u32, 0_u32), |(one, two), byte| {
        let one = (one + u32::from(*byte)) % 65_521;
        (one, (two + one) % 65_521)
    });
    content.extend((two << 16 | one).to_be_bytes());
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let size = [&WIDTH.to_be_bytes()[..], &HEIGHT.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    for (kind, data) in [(b"IHDR", &size), (b"IDAT", &content), (b"IEND", &Vec::new())] {
        let named = [&kind[..], data].concat();
        file.extend([&(data.len() as u32).to_be_bytes()[..], &named, &crc(&named).to_be_bytes()].concat());
    }
    file
}

/// The check sum of a chunk (PNG, annex D).
fn crc(bytes: &[u8]) -> u32 {
    let shift = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| shift(crc)))
}
