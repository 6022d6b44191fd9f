//! Peers that speak something else on the secured port, or speak TLS badly.

use std::io::Write as _;

use staunch_tests::process::is_installed;

use crate::world::{BACKENDS, House, curl, read_to_end, run, text};

#[test]
fn plain_http_is_told_the_address_that_is_meant() {
    let house = House::new();
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        let answer = secured.exchange(b"GET /a HTTP/1.1\r\nHost: localhost:8443\r\n\r\n");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert!(answer.ends_with("this port speaks HTTPS: https://localhost:8443/\n"), "{answer}");
        // A host that is none is not said again.
        let answer = secured.exchange(b"GET /a HTTP/1.1\r\nHost: <script>\r\n\r\n");
        assert!(answer.ends_with(b"this port speaks HTTPS\n"), "{}", answer.escape_ascii());
        if is_installed("curl") {
            let url = format!("http://{}/", secured.address);
            let said = text(run(curl(&house).arg(&url)));
            assert!(said.contains(&format!("https://{}/", secured.address)), "{said}");
        }
    }
}

#[test]
fn what_is_no_handshake_gets_an_alert() {
    let house = House::new();
    // A ClientHello of SSL 2; one of TLS 1.0; garbage; an empty record; a record that is too long.
    let ssl2 = [0x80, 0x2e, 0x01, 0x00, 0x02];
    let mut tls10 = vec![22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 1];
    tls10.extend([7; 32]);
    tls10.extend([0, 0, 2, 0, 0x2f, 1, 0]);
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        for (bytes, alert) in [
            (&ssl2[..], 70),
            (&tls10, 70),
            (&[0, 1, 2, 3, 4, 5], 10),
            (&[22, 3, 1, 0, 0], 50),
            (&[22, 3, 1, 0xff, 0xff], 22),
        ] {
            let answer = secured.exchange(bytes);
            assert_eq!(answer, [21, 3, 3, 0, 2, 2, alert], "{backend}: {bytes:?}");
        }
    }
}

#[test]
fn a_handshake_that_is_not_over_in_time_is_cut() {
    let house = House::new();
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &["--handshake-timeout=1s"]) else { continue };
        // Half a ClientHello, and then a byte now and then.
        let mut stream = secured.connect();
        stream.write_all(&[22, 3, 1, 2, 0, 1, 0]).expect("the server reads");
        let mut drip = stream.try_clone().expect("a descriptor");
        let dripping = std::thread::spawn(move || {
            while drip.write_all(&[0]).is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        });
        assert_eq!(read_to_end(&mut stream), b"", "{backend}: nothing is said");
        dripping.join().expect("it ends as the server has closed");
    }
}

#[test]
fn a_name_without_certificate_gets_an_alert() {
    if !is_installed("openssl") {
        return;
    }
    let house = House::new();
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        let mut command = std::process::Command::new("openssl");
        command.args(["s_client", "-connect", &secured.address.to_string(), "-servername", "other.internal"]);
        let output = run(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("unrecognized name"), "{said}");
    }
}
