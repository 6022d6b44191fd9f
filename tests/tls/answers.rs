//! Files over HTTPS: whole, in order, and to an end that is said.

use std::fs;

use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::is_installed;

use crate::world::{BACKENDS, House, Secured, crowd, curl, python, run, text};

/// A house with the files that the scripts ask for.
fn house() -> House {
    let house = House::new();
    house.write_file("5000", 5_000);
    house.write_file("100000", 100_000);
    house
}

#[test]
fn curl_gets_files_of_every_size_on_one_connection() {
    if !is_installed("curl") {
        return;
    }
    let house = house();
    let sizes = [0, 1, 1_399, 13_999, 14_001, 16_384, 65_535, 65_536, 65_537, 300_000, 5_000_000];
    let files: Vec<(String, Vec<u8>)> =
        sizes.iter().map(|size| (format!("f{size}"), house.write_file(&format!("f{size}"), *size))).collect();
    for backend in BACKENDS {
        // Held in memory, and sent from the file.
        for memory in ["--cache-size=256MiB", "--no-cache"] {
            let Some(secured) = house.serve(backend, &[memory]) else { continue };
            for (version, http) in [("1.2", "1.1"), ("1.3", "1.1"), ("1.2", "2"), ("1.3", "2")] {
                println!("{backend} {memory} TLS {version} HTTP/{http}");
                get_all(&house, &secured, &files, version, http);
            }
        }
    }
}

/// Gets all files by one curl, on one connection.
fn get_all(house: &House, secured: &Secured, files: &[(String, Vec<u8>)], version: &str, http: &str) {
    let mut command = curl(house);
    command.args([&*format!("--tlsv{version}"), "--tls-max", version, &*format!("--http{http}")]);
    command.args(["--write-out", "%{num_connects} %{http_version}\n"]);
    let got = house.path("got");
    let _ = fs::remove_dir_all(&got);
    fs::create_dir_all(&got).expect("a folder");
    for (name, _) in files {
        command.arg(secured.url(&format!("/{name}"))).arg("--output").arg(got.join(name));
    }
    let said = text(run(&mut command));
    let expected: Vec<String> =
        (0..files.len()).map(|place| format!("{} {http}", u8::from(place == 0))).collect();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    for (name, bytes) in files {
        let read = fs::read(got.join(name)).expect("curl has written it");
        assert!(read == *bytes, "{name}: {} bytes", read.len());
    }
}

#[test]
fn http2_goes_on_with_many_streams_and_is_not_offered_when_off() {
    if !is_installed("curl") {
        return;
    }
    let house = house();
    let large = house.write_file("large", 3_000_000);
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &["--no-cache"]) else { continue };
        let mut command = curl(&house);
        command.args(["--http2", "--parallel", "--parallel-max", "40"]);
        for number in 0..40 {
            command.arg(secured.url("/large")).arg("--output").arg(house.path(&format!("large{number}")));
        }
        text(run(&mut command));
        for number in 0..40 {
            let read = fs::read(house.path(&format!("large{number}"))).expect("curl has written it");
            assert!(read == large, "{backend}, {number}: {} bytes", read.len());
        }
        let code = ["--http2", "--output", "/dev/null", "--write-out", "%{http_code} %{http_version}"];
        let said =
            text(run(curl(&house).args(code).args(["--header", "Host: 127.0.0.1", &secured.url("/5000")])));
        assert_eq!(said, "421 2");
        drop(secured);
        let Some(secured) = house.serve(backend, &["--http2=off"]) else { continue };
        assert_eq!(text(run(curl(&house).args(code).arg(secured.url("/5000")))), "200 1.1");
    }
}

#[test]
fn python_asks_again_and_again_and_hears_the_end() {
    if !is_installed("python3") {
        return;
    }
    let house = house();
    house.write_file("large", 20_000_000);
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &["--no-cache"]) else { continue };
        for what in ["kept", "crossing", "pipelined", "upload", "resumed", "cut"] {
            println!("{backend} {what}");
            text(python(&house, &secured, &[what]));
        }
        text(python(&house, &secured, &["slow", "/large", "20000000"]));
        drop(secured);
        let Some(secured) = house.serve(backend, &[]) else { continue };
        text(python(&house, &secured, &["slow", "/large", "20000000"]));
        text(python(&house, &secured, &["kept"]));
    }
}

#[test]
fn a_large_answer_to_a_slow_reader_holds_one_piece() {
    if !is_installed("python3") {
        return;
    }
    let house = house();
    house.write_file("large", 100_000_000);
    let Some(secured) = house.serve("epoll", &["--no-cache", "--memory-budget=2MiB"]) else { return };
    text(python(&house, &secured, &["slow", "/large", "100000000"]));
}

#[test]
fn connections_at_rest_keep_120_bytes_and_go_on() {
    if !is_installed("curl") || !is_installed("python3") {
        return;
    }
    const COUNT: usize = 300;
    let house = House::new();
    for backend in BACKENDS {
        let admin = reserved_address();
        let admin_flag = format!("--admin={admin}");
        let flags = [&*admin_flag, "--keep-alive=120s", "--header-timeout=120s"];
        let Some(secured) = house.serve(backend, &flags) else { continue };
        let mut crowd = crowd(&house, &secured, COUNT);
        let metrics = || text(run(curl(&house).arg(format!("http://{admin}/metrics"))));
        let asleep = format!("staunch_tls_connections{{state=\"asleep\"}} {COUNT}\n");
        let start = std::time::Instant::now();
        while !metrics().contains(&asleep) {
            assert!(start.elapsed() < std::time::Duration::from_secs(20), "{}", metrics());
        }
        let held = format!("staunch_memory_held_bytes{{worker=\"0\"}} {}\n", COUNT * 120);
        assert!(metrics().contains(&held), "{}", metrics());
        crowd.go_on();
    }
}

#[test]
fn plain_requests_are_led_to_https_and_others_hosts_are_misdirected() {
    if !is_installed("curl") {
        return;
    }
    let house = house();
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        let plain = secured.server.address().port();
        let port = secured.address.port();
        let url = format!("http://127.0.0.1:{plain}/5000?a=%20b");
        let code = ["--output", "/dev/null", "--write-out", "%{http_code} %{redirect_url}"];
        let said = text(run(curl(&house).args(code).arg(&url)));
        assert_eq!(said, format!("308 https://127.0.0.1:{port}/5000?a=%20b"));
        // A host without certificate is served where it asks.
        let said = text(run(curl(&house).args(code).args(["--header", "Host: example.org", &url])));
        assert_eq!(said, "200 ");
        let said =
            text(run(curl(&house).args(code).args(["--header", "Host: 127.0.0.1", &secured.url("/5000")])));
        assert_eq!(said, "421 ");
        let said =
            text(run(curl(&house).args(code).args(["--header", "Host: LOCALHOST.", &secured.url("/5000")])));
        assert_eq!(said, "200 ");
        drop(secured);
        let Some(secured) = house.serve(backend, &["--https-redirect=off", "--hsts=1d"]) else { continue };
        let url = format!("http://127.0.0.1:{}/5000", secured.server.address().port());
        assert_eq!(text(run(curl(&house).args(code).arg(&url))), "200 ");
        drop(secured);
        let Some(secured) = house.serve(backend, &["--hsts=1d"]) else { continue };
        let head = text(run(curl(&house).args(["--head", &secured.url("/5000")])));
        assert!(head.contains("\r\nstrict-transport-security: max-age=86400\r\n"), "{head}");
    }
}

#[test]
fn openssl_agrees_on_what_is_strong_and_changes_keys() {
    if !is_installed("openssl") {
        return;
    }
    let house = house();
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        for (flags, expected) in [
            ("-tls1_3", "TLSv1.3, Cipher is TLS_AES_"),
            ("-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256", "Cipher is TLS_CHACHA20_POLY1305_SHA256"),
            ("-tls1_2", "TLSv1.2, Cipher is ECDHE-ECDSA-"),
            ("-tls1_2 -cipher AES128-SHA", "Cipher is (NONE)"),
            ("-tls1_1 -cipher ALL:@SECLEVEL=0", "Cipher is (NONE)"),
        ] {
            let said = openssl(&house, &secured.address.to_string(), flags, "");
            assert!(said.contains(expected), "{flags}: {said}");
        }
        // `K` changes our key and asks for the peer's.
        let said = openssl(&house, &secured.address.to_string(), "-tls1_3", "K\nGET /5000 HTTP/1.0\n\n");
        assert!(said.contains("KEYUPDATE") && said.contains("HTTP/1.1 200 OK"), "{said}");
    }
}

/// What `openssl s_client` says, when it was given this input.
fn openssl(house: &House, address: &str, flags: &str, input: &str) -> String {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", address, "-servername", "localhost", "-crlf", "-CAfile"]);
    command.arg(house.path("ca.pem")).args(flags.split(' '));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("openssl starts");
    let mut typed = child.stdin.take().expect("a pipe");
    // Commands of s_client stand at the beginning of what it reads.
    for line in input.split_inclusive('\n') {
        let _ = typed.write_all(line.as_bytes());
        let _ = typed.flush();
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    if input.is_empty() {
        drop(typed);
    }
    let output = child.wait_with_output().expect("openssl ends");
    [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
}
