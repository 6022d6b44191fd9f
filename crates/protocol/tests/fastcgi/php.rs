//! PHP's own process manager: what it understands of our records, and we of its.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use staunch_protocol::fastcgi::{FastCgiReader, Script, renumber, write_end, write_piece};
use staunch_protocol::http1::relay::RelayStep;

use crate::fastcgi_reading::Answer;
use crate::relay_writing::FROM_CLIENT;
use crate::requests::written;

const SCRIPT: &str = r#"<?php
if ($_GET['way'] === 'error') { error_log("an error of a script"); http_response_code(503); }
$seen = [$_SERVER['REQUEST_METHOD'], $_SERVER['HTTP_X_MANY'] ?? '-', $_SERVER['REMOTE_ADDR']];
header('X-Seen: ' . implode(' ', $seen));
setcookie('a', 'b');
setcookie('c', 'd');
$body = file_get_contents('php://input');
echo strlen($body), ' ', md5($body), ' ', getenv('HTTP_PROXY') ?: 'none';
if ($_GET['way'] === 'long') { echo str_repeat('x', 200000); }
"#;

/// A process manager with a folder of its own.
struct Php {
    child: Child,
    folder: PathBuf,
}

impl Drop for Php {
    fn drop(&mut self) {
        // Asked by TERM it ends its children as well. A test that failed has its own reason to tell.
        _ = Command::new("kill").arg(self.child.id().to_string()).status();
        _ = self.child.wait();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The program; without it the test is skipped, and says so, but where everything must be tested.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join("php-fpm8.2")).find(|program| program.exists());
    if found.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "php-fpm8.2 is missing");
        eprintln!("skipped: php-fpm8.2 is missing (cargo xtask install --for test brings it)");
    }
    found
}

impl Php {
    fn start() -> Option<Self> {
        let program = program()?;
        let folder = std::env::temp_dir().join(format!("staunch-php-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("index.php"), SCRIPT).expect("a script");
        let path = folder.display();
        let settings = format!(
            "[global]\nerror_log = {path}/log\ndaemonize = no\n[www]\nlisten = {path}/socket\npm = static\n\
             pm.max_children = 1\nuser = nobody\ngroup = nogroup\nlisten.mode = 0666\nclear_env = yes\n"
        );
        std::fs::write(folder.join("settings"), settings).expect("settings");
        let mut command = Command::new(program);
        command.arg("-n").arg("-R").arg("-y").arg(folder.join("settings")).stderr(Stdio::null());
        let child = command.spawn().expect("the process manager starts");
        let mut php = Self { child, folder };
        // The file is there before anybody listens at it.
        while UnixStream::connect(php.folder.join("socket")).is_err() {
            let ended = php.child.try_wait().expect("its state");
            assert!(ended.is_none(), "the process manager has ended: {ended:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(php)
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("socket")).expect("a connection")
    }
}

/// Asks for the script by a connection that stays.
fn ask(link: &mut UnixStream, reader: &mut FastCgiReader, folder: &Path, head: &str, body: &[u8]) -> Answer {
    let script = Script {
        root: folder.as_os_str().as_encoded_bytes(),
        name: b"/index.php",
        path_info: b"",
        client: FROM_CLIENT.client,
        keeps: true,
    };
    let mut bytes = written(head.as_bytes(), &script, |_| {}).expect("a good request");
    write_piece(body, &mut bytes);
    write_end(&mut bytes);
    reader.begin(head.starts_with("HEAD"));
    renumber(&mut bytes, reader.request());
    link.write_all(&bytes).expect("the request is taken");
    let mut answer = Answer::default();
    let mut buffer = [0; 4096];
    loop {
        let count = link.read(&mut buffer).expect("an answer");
        assert!(count > 0, "the process manager has closed: {answer:?}");
        let mut input = &buffer[..count];
        loop {
            match reader.next(&mut input).expect("a good answer") {
                RelayStep::More => break,
                RelayStep::Interim(_) => panic!("an interim answer"),
                RelayStep::Head(head) => {
                    answer.code = head.status.code();
                    answer.fields = String::from_utf8_lossy(head.fields.lines()).into_owned();
                }
                RelayStep::Piece(piece) => answer.body.extend_from_slice(piece),
                RelayStep::End { keeps, .. } => {
                    answer.errors = String::from_utf8_lossy(reader.errors()).into_owned();
                    answer.keeps = Some(keeps);
                    assert!(input.is_empty(), "something came behind the answer");
                    return answer;
                }
            }
        }
    }
}

#[test]
fn php_understands_requests_and_is_understood() {
    let Some(php) = Php::start() else { return };
    let (mut link, mut reader) = (php.connect(), FastCgiReader::new());
    let mut ask = |head: &str, body: &[u8]| ask(&mut link, &mut reader, &php.folder, head, body);

    let body = vec![b'b'; 100_000];
    let head = "POST /index.php?way=a HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\
        X-Many: 1\r\nX-Many: 2\r\nContent-Type: text/plain\r\nProxy: http://evil.example\r\n\r\n";
    let answer = ask(head, &body);
    assert_eq!((answer.code, answer.keeps), (200, Some(true)), "{answer:?}");
    // The sum of 100 000 times `b`, by md5sum.
    assert_eq!(String::from_utf8_lossy(&answer.body), "100000 09bfb3d92f4ec0691eec3644563f3ef4 none");
    assert!(answer.fields.contains("X-Seen: POST 1, 2 192.0.2.7\r\n"), "{}", answer.fields);
    assert_eq!(answer.fields.matches("Set-Cookie: ").count(), 2, "{}", answer.fields);

    let long = ask("GET /index.php?way=long HTTP/1.1\r\nHost: a\r\n\r\n", b"");
    assert!(long.body.len() > 200_000 && long.keeps == Some(true));

    let failed = ask("GET /index.php?way=error HTTP/1.1\r\nHost: a\r\n\r\n", b"");
    assert_eq!(failed.code, 503);
    assert!(failed.errors.contains("an error of a script"), "{:?}", failed.errors);

    let head = ask("HEAD /index.php?way=a HTTP/1.1\r\nHost: a\r\n\r\n", b"");
    assert_eq!((head.code, &head.body[..]), (200, &b""[..]));
}
