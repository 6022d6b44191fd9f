//! Files about clients: what is wrong with them is said, and what a client is told that they do not let in.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use staunch_tests::house::ports::reserved_address;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{finish, is_installed, serve_by};

use super::club::{Club, go_on, hear, process, python};
use crate::certificates::{Authority, DAY, Shown, valid};
use crate::world::{BACKENDS, curl, now, run, text};

#[test]
fn a_bad_file_about_clients_is_named_and_the_server_does_not_start() {
    let club = Club::new();
    let write = |name: &str, text: &str| fs::write(club.house.path(name), text).expect("a file");
    let root = club.root.pem();
    write("half.pem", &root[..root.len() / 2]);
    write("garbage.pem", "nonsense");
    write("old.pem", &Authority::root("old", now() - 13 * DAY).pem());
    write("nobody.pem", &club.root.client("anna", |_| ()).chain_pem());
    let list = club.root.list(&[], now() - 3 * DAY, now() + DAY);
    write("half.crl", &list[..list.len() / 2]);
    write("stale.crl", &club.root.list(&[], now() - 3 * DAY, now() - 2 * DAY));
    for (authority, revoked, expected) in [
        ("nowhere.pem", "off", "nowhere.pem: No such file or directory"),
        ("half.pem", "off", "half.pem: the file is no PEM, or is cut: "),
        ("garbage.pem", "off", "garbage.pem: no certificate (`BEGIN CERTIFICATE`) in the file"),
        ("old.pem", "off", "old.pem: the authority expired 3 days ago"),
        ("nobody.pem", "off", "nobody.pem: certificate 1 is no authority's"),
        ("root.pem", "nowhere.crl", "nowhere.crl: No such file or directory"),
        ("root.pem", "half.crl", "half.crl: the file is no PEM, or is cut: "),
        ("root.pem", "garbage.pem", "garbage.pem: no list of revoked certificates"),
        (
            "root.pem",
            "stale.crl",
            "stale.crl: list 1 of revoked certificates is stale: its next was due 2 days ago",
        ),
    ] {
        let revoked = if revoked == "off" { "\"off\"".to_owned() } else { format!("\"DIR/{revoked}\"") };
        let top = format!(
            "client_auth = {{ authority = \"DIR/{authority}\", revoked = {revoked} }}\nroot = \"ROOT\""
        );
        let settings = club.settings(&top, "");
        for words in [&[][..], &["--test-config"]] {
            let finished = finish(serve_by(&settings).args(words));
            let said = &finished.stderr;
            assert_eq!(finished.status.code(), Some(78), "{authority} {revoked}: {said}");
            assert!(
                said.contains("client_auth: ") && said.contains(expected),
                "{authority} {revoked}: {said}"
            );
        }
    }
}

#[test]
fn changed_files_about_clients_are_taken_whole_or_not_at_all() {
    if !is_installed("curl") || !is_installed("python3") {
        return;
    }
    let club = Club::new();
    let shown = club.root.client("anna", |_| ());
    let (anna, bert) = (club.write("anna", &shown), club.write("bert", &club.other.client("bert", |_| ())));
    let write = |name: &str, text: &str| fs::write(club.house.path(name), text).expect("a file");
    let lists = |revoked: &[&Shown], from| {
        format!("{}{}", club.root.list(revoked, from, now() + DAY), club.other.list(&[], from, now() + DAY))
    };
    for backend in BACKENDS {
        write("root.pem", &club.root.pem());
        write("clients.crl", &lists(&[], now() - DAY));
        let log = format!("error-{backend}.log");
        let top = format!(
            "error_log = \"DIR/{log}\"\nroot = \"ROOT\"\n\
             client_auth = {{ authority = \"DIR/root.pem\", revoked = \"DIR/clients.crl\" }}"
        );
        let Some(to) = club.serve(backend, &top, "") else { continue };
        let said = || fs::read_to_string(club.house.path(&log)).unwrap_or_default();
        let is_in = |shown: &Path| club.ask("https://localhost:PORT/page", &to, Some(shown), &[]) == "200";
        assert!(is_in(&anna) && !is_in(&bert));
        // Half written, then garbage, then gone: the old one goes on.
        let whole = club.root.pem();
        write("root.pem", &whole[..whole.len() / 2]);
        until("half a file is said", || said().contains("root.pem: the file is no PEM, or is cut"));
        assert!(said().contains("the authorities of clients stay as they were: client_auth: "), "{}", said());
        write("root.pem", "nonsense");
        until("garbage is said", || said().contains("root.pem: no certificate (`BEGIN CERTIFICATE`)"));
        write("clients.crl", &club.root.list(&[], now() - 3 * DAY, now() - DAY));
        write("root.pem", &club.root.pem());
        until("a stale list is said", || {
            said().contains("clients.crl: list 1 of revoked certificates is stale")
        });
        assert!(is_in(&anna) && !is_in(&bert));
        write("clients.crl", &lists(&[], now() - DAY));
        // Another authority beside the first.
        write("root.pem", &format!("{}{}", club.root.pem(), club.other.pem()));
        until("both authorities are taken", || is_in(&bert));
        assert!(is_in(&anna));
        // A connection that is open ends with its next answer; a new one is refused.
        let mut kept = ["kept", "kept_http2"].map(|how| python(&club.house, &to, Some(&anna), &[how]));
        kept.iter_mut().for_each(|kept| hear(kept, "open"));
        write("clients.crl", &lists(&[&shown], now() - 60));
        until("the certificate is revoked", || !is_in(&anna));
        assert!(is_in(&bert));
        kept.into_iter().for_each(go_on);
        let refused = club.ask("https://localhost:PORT/page", &to, Some(&anna), &[]);
        assert!(refused.contains("alert certificate revoked"), "{refused}");
    }
}

#[test]
fn nothing_outlives_a_certificate() {
    if !is_installed("curl") || !is_installed("python3") {
        return;
    }
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let club = Club::new();
    let shown = club.root.client("anna", |_| ());
    let (anna, bert) = (club.write("anna", &shown), club.write("bert", &club.root.client("bert", |_| ())));
    let list = |revoked: &[&Shown], from| {
        fs::write(club.house.path("clients.crl"), club.root.list(revoked, from, now() + DAY))
            .expect("a file");
    };
    let top = format!(
        "root = \"ROOT\"\nlive = true\npublish_token = \"{TOKEN}\"\n\
         client_auth = {{ authority = \"DIR/root.pem\", revoked = \"DIR/clients.crl\" }}"
    );
    let token = format!("Authorization: Bearer {TOKEN}");
    for backend in BACKENDS {
        list(&[], now() - DAY);
        let Some(to) = club.serve(backend, &top, "") else { continue };
        // No other client shakes hands while the certificate ends.
        let brief = club.root.client("brief", |params| valid(params, now() - DAY, now() + 3));
        let brief = club.write("brief", &brief);
        go_on(python(&club.house, &to, Some(&brief), &["ended"]));
        let publish = |text: &str| {
            let words = ["--header", &*token, "--header", "Content-Type: text/plain"];
            let words = [&words[..], &["--request", "PUT", "--data", text]].concat();
            club.ask("https://localhost:PORT/topics/a", &to, Some(&bert), &words)
        };
        let mut stream = python(&club.house, &to, Some(&anna), &["stream"]);
        hear(&mut stream, "begun");
        assert_eq!(publish("before"), "200");
        hear(&mut stream, "open");
        list(&[&shown], now() - 60);
        until("the certificate is revoked", || {
            club.ask("https://localhost:PORT/page", &to, Some(&anna), &[]) != "200"
        });
        assert_eq!(publish("behind"), "200");
        go_on(stream);
    }
}

#[test]
fn a_reload_asks_from_then_on() {
    if !is_installed("curl") || !is_installed("python3") {
        return;
    }
    let club = Club::new();
    let anna = club.write("anna", &club.root.client("anna", |_| ()));
    for backend in BACKENDS {
        let log = format!("reload-{backend}.log");
        let top = |client_auth: &str| format!("error_log = \"DIR/{log}\"\nroot = \"ROOT\"\n{client_auth}");
        let Some(to) = club.serve(backend, &top(""), "") else { continue };
        let said = || fs::read_to_string(club.house.path(&log)).unwrap_or_default();
        let ask = |shown| club.ask("https://localhost:PORT/page", &to, shown, &[]);
        let mut open = python(&club.house, &to, None, &["asked_later"]);
        hear(&mut open, "open");
        club.settings(&top("client_auth = { authority = \"DIR/root.pem\" }"), "");
        rustix::process::kill_process(process(&to), rustix::process::Signal::HUP).expect("it lives");
        until("nobody is let in", || ask(None).contains("alert certificate required"));
        assert_eq!(ask(Some(&anna)), "200");
        go_on(open);
        // Other authorities: who was verified by those before is told, and comes again.
        fs::copy(club.house.path("root.pem"), club.house.path("same.pem")).expect("a file");
        let mut moved = python(&club.house, &to, Some(&anna), &["moved"]);
        hear(&mut moved, "open");
        club.settings(&top("client_auth = { authority = \"DIR/same.pem\" }"), "");
        rustix::process::kill_process(process(&to), rustix::process::Signal::HUP).expect("it lives");
        until("the second reload", || said().matches("the configuration was read again").count() == 2);
        go_on(moved);
        assert_eq!(ask(Some(&anna)), "200");
        club.settings(&top("client_auth = { authority = \"DIR/nowhere.pem\" }"), "");
        rustix::process::kill_process(process(&to), rustix::process::Signal::HUP).expect("it lives");
        let expected = "the configuration stays as it was: client_auth: ";
        until("the missing file is said", || said().contains(expected) && said().contains("nowhere.pem"));
        assert_eq!(ask(Some(&anna)), "200");
    }
}

#[test]
fn refusals_are_alerts_and_counted_by_their_reason() {
    if !is_installed("curl") || !is_installed("openssl") {
        return;
    }
    let club = Club::new();
    let revoked = club.root.client("gone", |_| ());
    fs::write(club.house.path("root.crl"), club.root.list(&[&revoked], now() - DAY, now() + DAY))
        .expect("a file");
    let middle = club.root.below("middle", |_| ());
    let deep =
        (0..19).fold(club.root.below("0", |_| ()), |above, place| above.below(&place.to_string(), |_| ()));
    let old = club.root.client("old", |params| valid(params, now() - 9 * DAY, now() - DAY));
    let table = [
        ("none", None, "alert number 116", "certificate_missing"),
        ("old", Some(old), "alert number 45", "certificate_expired"),
        ("gone", Some(revoked), "alert number 44", "certificate_revoked"),
        ("stranger", Some(club.other.client("anna", |_| ())), "alert number 48", "certificate_unknown"),
        ("self", Some(Shown::self_signed("me", now() - DAY)), "alert number 48", "certificate_unknown"),
        ("unlisted", Some(middle.client("anna", |_| ())), "alert number 48", "revocation_unknown"),
        ("deep", Some(deep.client("anna", |_| ())), "alert number 46", "certificate_bad"),
    ];
    for backend in BACKENDS {
        let admin = reserved_address();
        let top = format!(
            "admin = \"{admin}\"\nroot = \"ROOT\"\n\
             client_auth = {{ authority = \"DIR/root.pem\", revoked = \"DIR/root.crl\" }}"
        );
        let Some(to) = club.serve(backend, &top, "") else { continue };
        let metrics = || text(run(curl(&club.house).arg(format!("http://{admin}/metrics"))));
        let mut expected = std::collections::BTreeMap::new();
        for (name, shown, alert, reason) in &table {
            for version in ["-tls1_2", "-tls1_3"] {
                let mut command = Command::new("openssl");
                command.args(["s_client", "-connect", &to.address.to_string(), "-servername", "localhost"]);
                command.args([version, "-quiet", "-CAfile"]).arg(club.house.path("ca.pem"));
                if let Some(shown) = shown {
                    let path = club.write(name, shown);
                    command.arg("-cert").arg(&path).arg("-cert_chain").arg(&path).arg("-key").arg(&path);
                }
                // The command waits for the server's end of the connection.
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                let mut child = command.spawn().expect("openssl starts");
                let mut said = String::new();
                child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("words");
                drop(child.stdin.take());
                child.wait().expect("openssl ends");
                assert!(said.contains(alert), "{backend} {name} {version}: {said}");
                *expected.entry(reason).or_insert(0) += 1;
            }
        }
        for (reason, count) in expected {
            let line = format!("staunch_tls_handshakes_refused_total{{reason=\"{reason}\"}} {count}\n");
            let all = metrics();
            assert!(all.contains(&line), "{line}{all}");
        }
        // When each file ends is told too.
        let all = metrics();
        for file in ["root.pem", "root.crl"] {
            let end = format!(
                "staunch_certificate_expiry_seconds{{names=\"{}\"}} ",
                club.house.path(file).display()
            );
            assert!(all.contains(&end), "{end}{all}");
        }
    }
}
