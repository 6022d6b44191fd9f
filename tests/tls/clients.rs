//! Clients that show certificates: curl and Python are let in, named, or told why not.

mod club;
mod files;

use std::fs;
use std::path::PathBuf;

use staunch_tests::house::ports::reserved_address;
use staunch_tests::house::waiting::until;
use staunch_tests::process::is_installed;

use self::club::{Club, go_on, hear, python};
use crate::world::{BACKENDS, curl, run, text};

const REQUIRED: &str = "client_auth = { authority = \"DIR/root.pem\" }\nroot = \"ROOT\"";

#[test]
fn who_shows_a_good_certificate_is_served_and_logged() {
    if !is_installed("curl") || !is_installed("openssl") {
        return;
    }
    let club = Club::new();
    let anna = club.write("anna", &club.root.client("anna", |_| ()));
    let fingerprint = club.fingerprint(&anna).replace(':', "").to_lowercase();
    let line = format!(
        "{{\"status\":200,\"client_verify\":\"SUCCESS\",\"client_subject\":\"CN=anna,O=House\",\
         \"client_fingerprint\":\"{fingerprint}\"}}\n"
    );
    for backend in BACKENDS {
        let log = club.house.path(&format!("access-{backend}.log"));
        let top = format!(
            "access_log = \"{}\"\naccess_log_format = \"json\"\n\
             access_log_fields = \"status,client_verify,client_subject,client_fingerprint\"\n",
            log.display()
        );
        let Some(to) = club.serve(backend, &top, REQUIRED) else { continue };
        for (place, (version, http)) in
            [("1.2", "1.1"), ("1.3", "1.1"), ("1.2", "2"), ("1.3", "2")].into_iter().enumerate()
        {
            let (tls, http) = (format!("--tlsv{version}"), format!("--http{http}"));
            let words = [&*tls, "--tls-max", version, &*http];
            let said = club.ask("https://localhost:PORT/page", &to, Some(&anna), &words);
            assert_eq!(said, "200", "{backend} {words:?}");
            let lines = line.repeat(place + 1);
            until("it is logged", || fs::read_to_string(&log).is_ok_and(|text| text == lines));
            let said = club.ask("https://localhost:PORT/page", &to, None, &words);
            assert!(said.contains("alert certificate required"), "{backend} {words:?}: {said}");
        }
    }
}

#[test]
fn rules_ask_for_a_certificate_where_the_site_does_not() {
    if !is_installed("curl") || !is_installed("openssl") {
        return;
    }
    let club = Club::new();
    for folder in ["members", "anna", "print"] {
        fs::create_dir(club.house.tree.root().join(folder)).expect("a folder");
        club.house.write_file(&format!("{folder}/page"), 100);
    }
    let anna = club.write("anna", &club.root.client("anna", |_| ()));
    let bert = club.write("bert", &club.root.client("bert", |_| ()));
    let stranger = club.write("stranger", &club.other.client("anna", |_| ()));
    let fingerprint = club.fingerprint(&bert);
    let top = "client_auth = { mode = \"optional\", authority = \"DIR/root.pem\" }\nroot = \"ROOT\"";
    let rules = format!(
        "[[path]]\nmatch = \"/members/*\"\nclient_auth = \"required\"\n\
         [[path]]\nmatch = \"/anna/*\"\nclient_auth = [\"CN=anna,O=House\"]\n\
         [[path]]\nmatch = \"/print/*\"\nclient_auth = \"{fingerprint}\"\n"
    );
    for backend in BACKENDS {
        let Some(to) = club.serve(backend, top, &rules) else { continue };
        for http in ["--http1.1", "--http2"] {
            for (path, nobody, of_anna, of_bert) in [
                ("page", "200", "200", "200"),
                ("members/page", "403", "200", "200"),
                ("anna/page", "403", "200", "403"),
                ("print/page", "403", "403", "200"),
            ] {
                let url = format!("https://localhost:PORT/{path}");
                let ask = |shown| club.ask(&url, &to, shown, &[http]);
                let got = [ask(None), ask(Some(&anna)), ask(Some(&bert))];
                assert_eq!(got, [nobody, of_anna, of_bert], "{backend} {http} {path}");
            }
            // Optional is no leave to show a bad one.
            let said = club.ask("https://localhost:PORT/page", &to, Some(&stranger), &[http]);
            assert!(said.contains("alert unknown ca"), "{said}");
        }
        // In plain text nobody can show one.
        let plain = format!("http://127.0.0.1:{}/members/page", to.server.address().port());
        assert_eq!(club.ask(&plain, &to, None, &["--header", "Host: elsewhere"]), "403");
    }
}

const SITES: &str = "[[site]]\nhosts = [\"localhost\"]\nroot = \"ROOT\"\ndefault = true\n\
     client_auth = { authority = \"DIR/root.pem\" }\n\
     [[site]]\nhosts = [\"other.internal\"]\nroot = \"ROOT\"\n\
     client_auth = { mode = \"optional\", authority = \"DIR/other.pem\" }\n\
     [[site.path]]\nmatch = \"*\"\nclient_auth = \"required\"\n\
     [[site]]\nhosts = [\"open.internal\"]\nroot = \"ROOT\"\nclient_auth = \"off\"\n";

#[test]
fn no_connection_is_good_for_another_sites_certificates() {
    if !is_installed("curl") {
        return;
    }
    let club = Club::new();
    let anna = club.write("anna", &club.root.client("anna", |_| ()));
    let bert = club.write("bert", &club.other.client("bert", |_| ()));
    let top = "https_redirect = false\nstatus = \"/status\"\nclient_auth = { authority = \"DIR/root.pem\" }";
    for backend in BACKENDS {
        let Some(to) = club.serve(backend, top, SITES) else { continue };
        for (url, shown, host, expected) in [
            ("https://localhost:PORT/page", Some(&anna), "", "200"),
            ("https://localhost:PORT/status", Some(&anna), "", "200"),
            ("https://other.internal:PORT/page", Some(&bert), "", "200"),
            ("https://other.internal:PORT/page", None, "", "403"),
            ("https://open.internal:PORT/page", None, "", "200"),
            // Made for one name, asked for another: also by a client that both sites would let in.
            ("https://localhost:PORT/page", Some(&anna), "open.internal", "421"),
            ("https://localhost:PORT/page", Some(&anna), "other.internal", "421"),
            ("https://open.internal:PORT/page", None, "localhost", "421"),
            ("https://open.internal:PORT/status", None, "localhost", "421"),
            // Made for no name: whoever asks has to have shown what the site of the request wants.
            ("https://127.0.0.1:PORT/page", Some(&anna), "localhost", "200"),
            ("https://127.0.0.1:PORT/page", Some(&anna), "", "200"),
            ("https://127.0.0.1:PORT/page", Some(&anna), "other.internal", "421"),
            ("https://127.0.0.1:PORT/page", Some(&anna), "open.internal", "200"),
            // In plain text nobody has shown anything.
            ("http://127.0.0.1:PLAIN/page", None, "localhost", "403"),
            ("http://127.0.0.1:PLAIN/status", None, "localhost", "403"),
            ("http://127.0.0.1:PLAIN/page", None, "nowhere", "403"),
            ("http://127.0.0.1:PLAIN/page", None, "other.internal", "403"),
            ("http://127.0.0.1:PLAIN/page", None, "open.internal", "200"),
        ] {
            let url = url.replace("PLAIN", &to.server.address().port().to_string());
            let header = format!("Host: {host}");
            for http in ["--http1.1", "--http2"] {
                let words = if host.is_empty() { vec![http] } else { vec![http, "--header", &header] };
                let said = club.ask(&url, &to, shown.map(PathBuf::as_path), &words);
                assert_eq!(said, expected, "{backend} {url} {host} {http}");
            }
        }
        // HTTP/1.0 without a host is for the default site, whatever the connection was made for.
        let words = ["--http1.0", "--no-alpn", "--header", "Host:"];
        assert_eq!(club.ask("https://open.internal:PORT/page", &to, None, &words), "421");
    }
}

#[test]
fn python_resumes_with_its_certificate_and_hears_why_not_without() {
    if !is_installed("python3") {
        return;
    }
    let club = Club::new();
    let anna = club.write("anna", &club.root.client("anna", |_| ()));
    for backend in BACKENDS {
        let log = club.house.path(&format!("resumed-{backend}.log"));
        let top = format!(
            "access_log = \"{}\"\n\
             access_log_format = \"$status $ssl_client_verify $ssl_client_s_dn\"\n{REQUIRED}",
            log.display()
        );
        let Some(to) = club.serve(backend, &top, "") else { continue };
        go_on(python(&club.house, &to, Some(&anna), &["resumed"]));
        let line = "200 SUCCESS CN=anna,O=House\n";
        until("four lines", || fs::read_to_string(&log).is_ok_and(|text| text == line.repeat(4)));
        go_on(python(&club.house, &to, None, &["refused"]));
    }
}

#[test]
fn a_client_is_held_once_and_costs_nobody_else_a_byte() {
    if !is_installed("python3") || !is_installed("curl") {
        return;
    }
    const COUNT: usize = 200;
    let club = Club::new();
    let anna = club.write("anna", &club.root.client("anna", |_| ()));
    for backend in BACKENDS {
        let admin = reserved_address();
        let top = format!(
            "admin = \"{admin}\"\nkeep_alive = \"120s\"\nroot = \"ROOT\"\n\
             client_auth = {{ mode = \"optional\", authority = \"DIR/root.pem\" }}"
        );
        let Some(to) = club.serve(backend, &top, "") else { continue };
        let metrics = || text(run(curl(&club.house).arg(format!("http://{admin}/metrics"))));
        let held = || {
            let all = metrics();
            let line = all.lines().find(|line| line.starts_with("staunch_memory_held_bytes{worker=\"0\"}"));
            let count = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
            count.unwrap_or_else(|| panic!("{all}"))
        };
        let rests = |count: usize| {
            let line = format!("staunch_tls_connections{{state=\"asleep\"}} {count}\n");
            until("all rest", || metrics().contains(&line));
            held()
        };
        let count = COUNT.to_string();
        for (shown, least, most) in [(None, 120, 120), (Some(&*anna), 121, 400)] {
            let mut crowd = python(&club.house, &to, shown, &["crowd", &count]);
            hear(&mut crowd, "resting");
            let bytes: usize = rests(COUNT);
            assert!((COUNT * least..=COUNT * most).contains(&bytes), "{backend} {shown:?}: {bytes}");
            go_on(crowd);
            assert_eq!(rests(0), 0);
        }
    }
}
