//! What the operator sees of clients, and changes while the server runs.
use std::fs;
use std::process::Command;

use staunch_tests::house::waiting::until;

use super::caller::{Caller, ENGINES, ip, serve};
use super::scratch::Scratch;

#[test]
fn the_log_names_the_client_of_every_request() {
    for io in ENGINES {
        let log = Scratch::new(&format!("log-{io}"));
        let arguments = [
            "--io",
            io,
            "--access-log",
            log.path(),
            "--trusted-proxies",
            "127.0.0.2",
            "--client-rate",
            "1/h",
        ];
        let served = serve("127.0.0.1:0", &arguments);
        let mut direct = Caller::from(ip("127.0.0.3"), served.address());
        let mut proxy = Caller::from(ip("127.0.0.2"), served.address());
        let forwarded = "X-Forwarded-For: 198.51.100.1\r\n";
        assert_eq!(direct.ask("/a.txt?direct", forwarded).unwrap().status, 200);
        assert_eq!(proxy.ask("/a.txt?forwarded", forwarded).unwrap().status, 200);
        let refused = proxy.ask("/a.txt?refused", forwarded).unwrap();
        assert_eq!((refused.status, refused.value("Retry-After").as_deref()), (429, Some("3600")));
        assert_eq!(refused.value("RateLimit-Policy").as_deref(), Some("\"client_rate\";q=1;w=3600"));
        assert_eq!(refused.value("RateLimit").as_deref(), Some("\"client_rate\";r=0;t=3600"));
        let expected = [
            ("127.0.0.3 ", "?direct ", " 200 "),
            ("198.51.100.1 ", "?forwarded ", " 200 "),
            ("198.51.100.1 ", "?refused ", " 429 "),
        ];
        until("each line is there", || {
            let text = fs::read_to_string(log.path()).unwrap_or_default();
            expected.iter().all(|(client, request, status)| {
                let told =
                    |line: &str| line.starts_with(client) && line.contains(request) && line.contains(status);
                text.lines().any(told)
            })
        });
    }
}

#[test]
fn limits_change_while_it_runs() {
    for io in ENGINES {
        let file = Scratch::new(&format!("config-{io}.toml"));
        fs::write(file.path(), "").expect("a file");
        let served = serve("127.0.0.1:0", &["--io", io, "--config", file.path()]);
        let call = || {
            let mut caller = Caller::from(ip("127.0.0.4"), served.address());
            (caller.status(), caller)
        };
        assert!([call(), call(), call()].iter().all(|answer| answer.0 == 200));
        let reload = |text: &str| {
            fs::write(file.path(), text).expect("a file");
            let process = served.server.process_id().to_string();
            assert!(Command::new("kill").args(["-HUP", &process]).status().expect("kill").success());
        };
        reload("client_connections = 1\n");
        until("a second one is refused", || [call(), call()].iter().any(|answer| answer.0 == 429));
        reload("client_connections = \"off\"\n");
        until("nobody is refused", || [call(), call()].iter().all(|answer| answer.0 == 200));
    }
}
