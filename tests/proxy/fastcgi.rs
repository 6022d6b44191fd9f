//! PHP behind the proxy: what a script is told, and what becomes of its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::php::{Php, SITE, TELL, get, told, until};
use crate::world::{Client, ENGINES, Told as _, chunked};

#[test]
fn a_script_is_told_of_its_request() {
    let Some(php) = Php::start(2, &[("index.php", TELL), ("a/tell.php", TELL)]) else { return };
    for io in ENGINES {
        let world = php.serve(io, SITE);
        let root = php.root().join("www").display().to_string();
        let seen = told(
            &world,
            "GET /a/tell.php/x%20y/z?q=1&r=%32 HTTP/1.1\r\nHost: shop.test:8080\r\nProxy: http://evil.test\r\n\
             X_Forwarded_For: evil\r\nX-Forwarded-For: evil\r\nAccept: text/a\r\nAccept: text/b\r\n\r\n",
        );
        for (name, expected) in [
            ("SCRIPT_FILENAME", format!("{root}/a/tell.php")),
            ("DOCUMENT_ROOT", root.clone()),
            ("SCRIPT_NAME", "/a/tell.php".into()),
            ("PATH_INFO", "/x y/z".into()),
            ("REQUEST_URI", "/a/tell.php/x%20y/z?q=1&r=%32".into()),
            ("QUERY_STRING", "q=1&r=%32".into()),
            ("REQUEST_METHOD", "GET".into()),
            ("SERVER_PROTOCOL", "HTTP/1.1".into()),
            ("SERVER_NAME", "shop.test".into()),
            ("SERVER_PORT", "8080".into()),
            ("REMOTE_ADDR", "127.0.0.1".into()),
            ("REDIRECT_STATUS", "200".into()),
            ("HTTP_HOST", "shop.test:8080".into()),
            ("HTTP_ACCEPT", "text/a, text/b".into()),
            ("HTTP_X_FORWARDED_FOR", "127.0.0.1".into()),
            ("HTTP_X_FORWARDED_PROTO", "http".into()),
        ] {
            assert_eq!(seen[name], expected, "{io} {name}");
        }
        assert!(!seen.to_string().contains("evil"), "{io}: {seen}");
        assert_eq!((&seen["PROXY"], seen.get("HTTPS")), (&Value::Bool(false), None), "{io}");
    }
}

#[test]
fn a_trusted_proxy_says_who_asks_and_by_what() {
    let Some(php) = Php::start(1, &[("index.php", TELL)]) else { return };
    let world = php.serve("epoll", &format!("trusted_proxies = [\"127.0.0.1\"]\n{SITE}"));
    let seen = told(
        &world,
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: https\r\n\r\n",
    );
    let words = ["REMOTE_ADDR", "HTTPS", "SERVER_PORT", "HTTP_X_FORWARDED_FOR"];
    assert_eq!(words.map(|name| &seen[name]), ["192.0.2.9", "on", "443", "192.0.2.9, 127.0.0.1"]);
}

#[test]
fn bodies_come_whole_however_they_are_sent() {
    let Some(php) = Php::start(2, &[("index.php", TELL)]) else { return };
    let long: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    for io in ENGINES {
        let world = php.serve(io, &format!("proxy_body_size = \"64KiB\"\n{SITE}"));
        let send = |head: &str, body: &[u8]| {
            let mut client = Client::of(&world);
            client.send(format!("POST /up HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n").as_bytes());
            client.send(body);
            client.read(false)
        };
        for length in [0, 1, 65_535, 65_536, 65_537, 3_000_000] {
            let body = &long[..length];
            let response = send(&format!("Content-Length: {length}\r\nContent-Type: a/b"), body);
            let seen: Value = serde_json::from_str(&response.text()).expect("an answer");
            assert_eq!(seen["BODY_BYTES"], length, "{io}");
            assert_eq!(seen["CONTENT_LENGTH"], length.to_string(), "{io}");
            assert_eq!(seen["CONTENT_TYPE"], "a/b", "{io}");
            assert_eq!(seen["BODY_MD5"], md5_of(body), "{io} {length}");
        }
        let response = send("Transfer-Encoding: chunked", &chunked(&long[..60_000], 7_000));
        let seen: Value = serde_json::from_str(&response.text()).expect("an answer");
        assert_eq!((&seen["BODY_BYTES"], &seen["CONTENT_LENGTH"]), (&60_000.into(), &"60000".into()), "{io}");
        let mut client = Client::of(&world);
        client.send(b"POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(format!("{:x}\r\n", 70_000).as_bytes());
        client.send(&long[..70_000]);
        assert_eq!(client.read(false).status, 411, "{io}: too long to be read whole");
    }
}

/// By the program that every Debian has.
fn md5_of(body: &[u8]) -> String {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child =
        Command::new("md5sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("md5sum");
    child.stdin.take().expect("a pipe").write_all(body).expect("is read");
    let output = child.wait_with_output().expect("md5sum");
    String::from_utf8_lossy(&output.stdout)[..32].to_owned()
}

#[test]
fn answers_of_every_kind() {
    let files = [
        ("long.php", "<?php for ($i = 0; $i < 5000; $i++) { echo str_repeat(chr(97 + $i % 26), 1000); }"),
        ("redirect.php", "<?php header('Location: /there'); setcookie('a', 'b'); setcookie('c', 'd');"),
        ("status.php", "<?php http_response_code(418); header_remove('Content-Type'); echo 'tea';"),
        ("none.php", "<?php http_response_code(204);"),
        ("error.php", "<?php error_log(\"a fault\\nof a script\"); http_response_code(500); echo 'sorry';"),
        ("length.php", "<?php header('Content-Length: 5'); echo 'hello';"),
        ("accel.php", "<?php header('X-Accel-Redirect: /long.php'); header('X-Kept: 1');"),
    ];
    let Some(php) = Php::start(2, &files) else { return };
    for io in ENGINES {
        let log = php.root().join(format!("error-{io}.log"));
        let world = php.serve(io, &format!("error_log = \"{}\"\n{SITE}", log.display()));
        let long = world.get("/long.php");
        assert_eq!((long.status, long.body.len()), (200, 5_000_000), "{io}");
        assert!(long.body.chunks(1000).enumerate().all(|(index, part)| part[0] == 97 + (index % 26) as u8));
        let redirect = world.get("/redirect.php");
        assert_eq!((redirect.status, redirect.value("location").as_deref()), (302, Some("/there")), "{io}");
        let status = world.get("/status.php");
        assert_eq!((status.status, status.text().as_str()), (418, "tea"), "{io}");
        assert_eq!(world.get("/none.php").status, 204, "{io}");
        assert_eq!(world.get("/length.php").text(), "hello", "{io}");
        let accel = world.get("/accel.php");
        assert_eq!(
            (accel.value("x-accel-redirect"), accel.value("x-kept")),
            (None, Some("1".into())),
            "{io}"
        );
        let head = world.ask("HEAD /long.php HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((head.status, head.body.len()), (200, 0), "{io}");
        for _ in 0..20 {
            assert_eq!(world.get("/error.php").status, 500, "{io}");
        }
        until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("a fault of a script")));
    }
}

#[test]
fn connections_are_kept_where_it_is_asked_for() {
    let Some(php) = Php::start(1, &[("index.php", "<?php echo getmypid();")]) else { return };
    for io in ENGINES {
        for (keep, connections) in [("", 20.0), ("fastcgi_keep_alive = \"1min\"\n", 1.0)] {
            let mut world =
                php.serve(io, &format!("{keep}root = \"{{root}}\"\nproxy = \"{{php}}\"\nworkers = 1\n"));
            let mut client = Client::of(&world);
            for _ in 0..20 {
                client.send(get("/").as_bytes());
                assert_eq!(client.read(false).status, 200, "{io}");
            }
            assert_eq!(world.metric("staunch_proxy_connections_total", ""), connections, "{io} {keep}");
            assert_eq!(world.metric("staunch_proxy_answers_total", ""), 20.0, "{io} {keep}");
        }
    }
}

#[test]
fn php_restarts_under_load_and_no_request_is_lost() {
    let script = "<?php usleep(2000); echo getmypid();";
    let Some(php) = Php::start(4, &[("index.php", script)]) else { return };
    for io in ENGINES {
        // On a busy machine a restart takes longer than anybody's usual patience.
        let world = php.serve(io, &format!("proxy_patience = \"2min\"\n{SITE}"));
        let server = world.server.address();
        let has_ended = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let has_ended = Arc::clone(&has_ended);
                std::thread::spawn(move || {
                    let mut client = Client::to(server);
                    let mut answers = 0;
                    while !has_ended.load(Ordering::Relaxed) {
                        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                        assert_eq!(client.read(false).status, 200, "behind {answers} answers");
                        answers += 1;
                    }
                    answers
                })
            })
            .collect();
        (0..3).for_each(|_| php.restart());
        has_ended.store(true, Ordering::Relaxed);
        let answers: usize = clients.into_iter().map(|client| client.join().expect("a client")).sum();
        assert!(answers > 0, "{io}");
    }
}

#[test]
fn a_client_that_takes_its_answer_slowly_holds_no_process() {
    let files = [("long.php", "<?php echo str_repeat('x', 900000);"), ("index.php", "<?php echo 'ok';")];
    let Some(php) = Php::start(1, &files) else { return };
    for io in ENGINES {
        let mut world = php.serve(io, &format!("proxy_limit = 1\n{SITE}"));
        let mut slow = Client::of(&world);
        slow.send(get("/long.php").as_bytes());
        world.await_metric("staunch_proxy_connections_total", "", |count| count >= 1.0);
        for _ in 0..5 {
            assert_eq!(world.get("/").text(), "ok", "{io}");
        }
        assert_eq!(slow.read(false).body.len(), 900_000, "{io}");
    }
}

#[test]
fn php_works_for_nobody_whom_it_cannot_answer() {
    let script = "<?php usleep(5000); file_put_contents($_GET['to'], 'x', FILE_APPEND | LOCK_EX); echo 'ok';";
    let Some(php) = Php::start(4, &[("index.php", script)]) else { return };
    for io in ENGINES {
        let mut world = php.serve(io, SITE);
        let (server, counted) = (world.server.address(), php.shared_file(&format!("count-{io}")));
        let request = get(&format!("/?to={}", counted.display()));
        let clients: Vec<_> = (0..40)
            .map(|_| {
                let request = request.clone();
                std::thread::spawn(move || {
                    let mut client = Client::to(server);
                    let mut answered = 0;
                    for _ in 0..25 {
                        client.send(request.as_bytes());
                        match client.read(false).status {
                            200 => answered += 1,
                            503 => {}
                            status => panic!("{status}"),
                        }
                    }
                    answered
                })
            })
            .collect();
        let answered: u64 = clients.into_iter().map(|client| client.join().expect("a client")).sum();
        let worked = std::fs::metadata(&counted).expect("a file").len();
        assert_eq!((worked, answered > 0), (answered, true), "{io}");
        let refused = world.metric("staunch_proxy_refused_total", "");
        assert_eq!(answered + refused as u64, 1000, "{io}");
        world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
    }
}
