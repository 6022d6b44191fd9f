//! Certificates and keys: what is wrong with them is said, with the file; and the local authority.

use std::fs;
use std::path::Path;

use staunch_tests::process::{Finished, finish, is_installed, serve, serve_by};

use crate::world::{BACKENDS, House, crowd, curl, now, run, start, text};

const DAY: u64 = 86_400;

/// What the server says when it is to start with this pair.
fn refused(house: &House, certificate: &Path, key: &Path) -> Finished {
    let mut command = serve(house.tree.root());
    finish(command.arg("--tls-certificate").arg(certificate).arg("--tls-key").arg(key))
}

#[test]
fn a_bad_pair_is_named_and_the_server_does_not_start() {
    let house = House::new();
    house.write_pair("other", &["localhost"], now());
    let chain = fs::read_to_string(house.path("server.pem")).expect("a file");
    fs::write(house.path("half.pem"), &chain[..chain.len() / 2]).expect("a file");
    fs::write(house.path("empty.pem"), "").expect("a file");
    for (certificate, key, expected) in [
        ("server.pem", "other.key", "server.pem: the key does not match the certificate ("),
        ("half.pem", "server.key", "half.pem: "),
        ("empty.pem", "server.key", "empty.pem: no certificate (`BEGIN CERTIFICATE`) in the file"),
        ("server.pem", "server.pem", "server.pem: no private key (`BEGIN PRIVATE KEY`) in the file"),
        ("server.pem", "empty.pem", "empty.pem: no private key"),
        ("nowhere.pem", "server.key", "nowhere.pem: No such file or directory"),
        (".", "server.key", ": this is no file"),
    ] {
        let finished = refused(&house, &house.path(certificate), &house.path(key));
        let said = &finished.stderr;
        assert_eq!(finished.status.code(), Some(78), "{certificate} {key}: {said}");
        let is_named = said.contains("tls_certificate: ") && said.contains(expected);
        assert!(is_named && said.lines().count() == 1, "{certificate} {key}: {said}");
    }
}

#[test]
fn a_site_whose_hosts_are_not_in_its_certificate_is_refused() {
    let house = House::new();
    let settings = house.path("staunch.toml");
    let (root, pair) = (house.tree.root().display(), house.path("server").display().to_string());
    let text = format!(
        "[[site]]\nhosts = [\"localhost\", \"web.internal\"]\nroot = \"{root}\"\n\
         tls = {{ certificate = \"{pair}.pem\", key = \"{pair}.key\" }}\n"
    );
    fs::write(&settings, text).expect("a file");
    let finished = finish(&mut serve_by(&settings));
    let expected = "the certificate is not for `web.internal`; it is for localhost, 127.0.0.1";
    assert!(finished.status.code() == Some(78) && finished.stderr.contains(expected), "{}", finished.stderr);
    // A test of the settings says it too.
    let mut command = serve_by(&settings);
    let finished = finish(command.arg("--test-config"));
    assert!(finished.status.code() == Some(78) && finished.stderr.contains(expected), "{}", finished.stderr);
}

/// Settings with a site for `localhost` and one for `web.internal`, the second with the files of this name.
fn two_sites(house: &House, other: &str, admin: std::net::SocketAddr) -> String {
    let (root, folder) = (house.tree.root().display(), house.path("").display().to_string());
    format!(
        "tls_listen = [\"127.0.0.1:0\"]\nadmin = \"{admin}\"\n\
         [[site]]\nhosts = [\"localhost\"]\ndefault = true\nroot = \"{root}\"\n\
         tls = {{ certificate = \"{folder}server.pem\", key = \"{folder}server.key\" }}\n\
         [[site]]\nhosts = [\"web.internal\"]\nroot = \"{root}\"\n\
         tls = {{ certificate = \"{folder}{other}.pem\", key = \"{folder}{other}.key\" }}\n"
    )
}

/// A certificate that has expired, is not yet valid, or cannot be used, darkens no site but its own, and
/// nothing of it is silent.
#[test]
fn one_bad_certificate_darkens_no_other_site() {
    if !is_installed("curl") {
        return;
    }
    let house = House::new();
    house.write_file("a", 10);
    house.write_pair("old", &["web.internal"], now() - 100 * DAY);
    house.write_pair("early", &["web.internal"], now() + 100 * DAY);
    house.write_pair("other", &["localhost"], now());
    house.write_pair("mixed", &["web.internal"], now());
    fs::copy(house.path("other.key"), house.path("mixed.key")).expect("a file");
    let chain = fs::read_to_string(house.path("server.pem")).expect("a file");
    fs::write(house.path("server.pem"), format!("{}{chain}", house.authority.certificate_pem()))
        .expect("a file");
    for (other, is_served, expected) in [
        ("old", true, "the certificate expired 10 days ago"),
        ("early", true, "the certificate is not valid before "),
        ("mixed", false, "the key does not match the certificate"),
        ("nowhere", false, "nowhere.pem: No such file or directory"),
    ] {
        let admin = staunch_tests::house::ports::reserved_address();
        let settings = house.path("staunch.toml");
        fs::write(&settings, two_sites(&house, other, admin)).expect("a file");
        let log = house.path(&format!("{other}.log"));
        let mut command = serve_by(&settings);
        let secured = start(command.arg(format!("--error-log={}", log.display()))).expect("a server");
        let port = secured.address.port();
        let ask = |host: &str, flag: &str| {
            let to = format!("{host}:{port}:127.0.0.1");
            let url = format!("https://{host}:{port}/a");
            run(curl(&house).args(["--resolve", &to, "--fail", flag, &url])).status.success()
        };
        assert!(ask("localhost", "--silent"), "{other}");
        assert!(!ask("web.internal", "--silent"), "{other}: a client that checks turns away");
        assert_eq!(ask("web.internal", "--insecure"), is_served, "{other}");
        let said = fs::read_to_string(&log).expect("a log");
        assert!(said.contains(expected) && said.contains("out of order: it is sent as 2, 1"), "{said}");
        let ready = text(run(std::process::Command::new("curl")
            .args(["--silent", "--fail", "--noproxy", "*"])
            .arg(format!("http://{admin}/readyz"))));
        assert!(ready.starts_with("ready\n") && ready.contains(expected), "{ready}");
    }
}

#[test]
fn each_name_gets_its_own_certificate() {
    if !is_installed("curl") {
        return;
    }
    let house = House::new();
    house.write_file("a", 10);
    house.write_pair("web", &["web.internal", "*.wild.internal"], now());
    let settings = house.path("staunch.toml");
    let (root, folder) = (house.tree.root().display(), house.path("").display().to_string());
    let text_of = format!(
        "tls_listen = [\"127.0.0.1:0\"]\nroot = \"{root}\"\n\
         [[tls]]\ncertificate = \"{folder}server.pem\"\nkey = \"{folder}server.key\"\n\
         [[tls]]\ncertificate = \"{folder}web.pem\"\nkey = \"{folder}web.key\"\n"
    );
    fs::write(&settings, text_of).expect("a file");
    let secured = start(&mut serve_by(&settings)).expect("a server");
    for host in ["localhost", "web.internal", "a.wild.internal"] {
        let to = format!("{host}:{}:127.0.0.1", secured.address.port());
        let url = format!("https://{host}:{}/a", secured.address.port());
        // curl checks the name.
        text(run(curl(&house).args(["--resolve", &to, "--fail", &url])));
    }
}

/// Waits until something holds, and fails the test if it never does.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_changed_pair_is_taken_whole_or_not_at_all_and_no_connection_is_cut() {
    if !is_installed("curl") || !is_installed("python3") {
        return;
    }
    let house = House::new();
    house.write_file("a", 10);
    for backend in BACKENDS {
        house.write_pair("server", &["localhost"], now());
        let log = house.path(&format!("error-{backend}.log"));
        let log_flag = format!("--error-log={}", log.display());
        let Some(secured) = house.serve(backend, &[&*log_flag]) else { continue };
        // A connection that is open all the time.
        let mut rest = crowd(&house, &secured, 3);
        let knows = |name: &str| {
            let to = format!("{name}:{}:127.0.0.1", secured.address.port());
            let url = format!("https://{name}:{}/a", secured.address.port());
            run(curl(&house).args(["--resolve", &to, "--fail", &url])).status.success()
        };
        assert!(knows("localhost") && !knows("web.internal"));
        house.write_pair("server", &["localhost", "web.internal"], now());
        until("the new pair is taken", || knows("web.internal"));
        // A key of another pair: the old ones go on.
        house.write_pair("other", &["localhost"], now());
        fs::copy(house.path("other.key"), house.path("server.key")).expect("a file");
        let said = || fs::read_to_string(&log).unwrap_or_default();
        until("the mismatch is said", || said().contains("the key does not match the certificate"));
        assert!(said().contains("the certificates stay as they were: tls_certificate: "), "{}", said());
        assert!(knows("web.internal"));
        // HUP says it too, and changes nothing.
        let process = rustix::process::Pid::from_raw(secured.server.process_id().cast_signed());
        let process = process.expect("a process");
        rustix::process::kill_process(process, rustix::process::Signal::HUP).expect("it lives");
        until("the reload is refused", || {
            said().contains("the configuration stays as it was: tls_certificate: ")
        });
        assert!(knows("web.internal"));
        house.write_pair("server", &["localhost", "third.internal"], now());
        rustix::process::kill_process(process, rustix::process::Signal::HUP).expect("it lives");
        until("the third pair is taken", || knows("third.internal") && !knows("web.internal"));
        rest.go_on();
    }
}

#[test]
fn the_local_authority_is_made_once_and_trusted_by_its_file() {
    if !is_installed("curl") {
        return;
    }
    let house = House::new();
    house.write_file("a", 10);
    let state = house.path("state");
    let mut authorities = Vec::new();
    for _ in 0..2 {
        let mut command = serve(house.tree.root());
        command.args(["--tls", "local", "--tls-listen", "127.0.0.1:0", "--state-folder"]).arg(&state);
        let secured = start(&mut command).expect("a server");
        let authority = state.join("local-authority.crt");
        for host in ["localhost", "127.0.0.1"] {
            let url = format!("https://{host}:{}/a", secured.address.port());
            let mut command = std::process::Command::new("curl");
            command.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--cacert"]);
            text(run(command.arg(&authority).arg(&url)));
        }
        authorities.push(fs::read(authority).expect("a file"));
        drop(secured);
    }
    assert_eq!(authorities[0], authorities[1]);
}
