//! PHP behind the proxy: which script runs, what it is told, and what becomes of its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::php::{Php, TELL};
use crate::world::{Client, ENGINES, PATIENCE, Told as _, World, chunked};

const SITE: &str = "root = \"{root}\"\nproxy = \"{php}\"\nworkers = 2\n";

/// What a script was told, by the answer of [`TELL`].
fn told(world: &World, request: &str) -> Value {
    let response = world.ask(request);
    assert_eq!(response.status, 200, "{request}: {}", response.text());
    serde_json::from_str(&response.text()).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: shop.test:8080\r\n\r\n")
}

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
fn files_scripts_folders_and_the_front_controller() {
    let files = [
        ("index.php", TELL),
        ("style.css", "a { }\n"),
        ("blog/index.php", TELL),
        ("pages/index.html", "a page\n"),
        ("empty/file.txt", "text\n"),
        ("uploads/evil.jpg", "<?php echo 'evil'; ?>"),
        ("folder.php/file.txt", "text\n"),
    ];
    let Some(php) = Php::start(2, &files) else { return };
    for io in ENGINES {
        for more in ["", "no_cache = true\n"] {
            let world = php.serve(io, &format!("{SITE}{more}"));
            let name = |path: &str| told(&world, &get(path))["SCRIPT_NAME"].as_str().map(str::to_owned);
            for (path, script) in [
                ("/", "/index.php"),
                ("/index.php", "/index.php"),
                ("/2026/a-post/", "/index.php"),
                ("/2026/a-post?x=/y.php", "/index.php"),
                ("/style.css/", "/index.php"),
                ("/empty/", "/index.php"),
                ("/empty", "/index.php"),
                ("/blog/", "/blog/index.php"),
                ("/blog/index.php/x", "/blog/index.php"),
                ("/%69ndex.php", "/index.php"),
            ] {
                // Twice: as it is found, and as it is held.
                for _ in 0..2 {
                    assert_eq!(name(path).as_deref(), Some(script), "{io} {path}");
                }
            }
            assert_eq!(world.get("/style.css").text(), "a { }\n");
            assert_eq!(world.get("/pages/").text(), "a page\n");
            let redirect = world.get("/blog");
            assert_eq!((redirect.status, redirect.value("location").as_deref()), (301, Some("/blog/")));
            for path in [
                "/missing.php",
                "/missing.php/x",
                "/uploads/evil.jpg/x.php",
                "/uploads/x.php",
                "/folder.php",
                "/folder.php/file.txt",
                "/.env",
                "/style.css%00.php",
            ] {
                let response = world.get(path);
                assert!([400, 404].contains(&response.status), "{io} {path}: {}", response.status);
                assert!(!response.text().contains("evil"), "{io} {path}");
            }
            let post = |path: &str| format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
            assert_eq!(told(&world, &post("/wp-json/x"))["BODY_BYTES"], 2, "{io}");
            assert_eq!(told(&world, &post("/blog/"))["SCRIPT_NAME"], "/blog/index.php", "{io}");
            assert_eq!(world.ask(&post("/style.css")).status, 405, "{io}");
            assert_eq!(world.ask(&post("/missing.php")).status, 404, "{io}");
        }
    }
}

#[test]
fn a_script_that_comes_or_goes_is_seen() {
    let Some(php) = Php::start(1, &[("index.php", TELL)]) else { return };
    let world = php.serve("uring", SITE);
    let script = php.root().join("www/new.php");
    assert_eq!(world.get("/new.php").status, 404);
    std::fs::write(&script, "<?php echo 'new';").expect("a file");
    until(|| world.get("/new.php").text() == "new");
    std::fs::remove_file(&script).expect("a file of ours");
    until(|| world.get("/new.php").status == 404);
}

/// Asks again until it is so.
fn until(is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it does not become so");
    }
}

#[test]
fn the_source_of_a_script_is_never_served() {
    const SOURCE: &str = "<?php /* THE SOURCE */ echo 'run';";
    let files = [
        ("src.php", SOURCE),
        ("SRC.PHP", SOURCE),
        ("src.php.", SOURCE),
        ("src.php.br", SOURCE),
        ("src.php.gz", SOURCE),
        ("dir/src.php", SOURCE),
        ("off/src.php", SOURCE),
        ("off/index.php", SOURCE),
        ("page.html", "a page\n"),
    ];
    let rules = "listing = true\nindex = [\"src.php\", \"index.html\"]\nfallback = \"/src.php\"\n\
        error_pages = { 404 = \"/src.php\" }\n[[path]]\nmatch = \"/off/*\"\nproxy = \"off\"\n\
        [[path]]\nmatch = \"/tried/*\"\nproxy = \"off\"\ntry = [\"$path\", \"/src.php\"]\n";
    let Some(php) = Php::start(2, &files) else { return };
    for io in ENGINES {
        for more in ["", "no_cache = true\n"] {
            let world = php.serve(io, &format!("{SITE}{more}{rules}"));
            for path in [
                "/src.php",
                "/SRC.PHP",
                "/Src.Php",
                "/src.php.",
                "/src.php/",
                "/src.php%20",
                "/src%2ephp",
                "/%73rc.ph%70",
                "/src.php.br",
                "/src.php.gz",
                "/./src.php",
                "/dir/../src.php",
                "//src.php",
                "/dir/",
                "/dir/src.php",
                "/off/src.php",
                "/off/",
                "/off/index.php",
                "/off/nothing",
                "/tried/x",
                "/nothing",
                "/page.html/src.php",
                "/src.php::$DATA",
                "/src.php%5c",
                "/src.php;x",
                "/src.php%00",
                "/src.php?",
                "/?json",
                "/dir/?json",
            ] {
                for fields in
                    ["", "Range: bytes=0-20\r\n", "Accept-Encoding: br, gzip\r\nAccept: text/html\r\n"]
                {
                    let response = world.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
                    let text = response.text();
                    assert!(!text.contains("SOURCE") && !text.contains("<?php"), "{io} {path}: {text}");
                }
                let head = world.ask(&format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
                let length = head.value("content-length");
                assert_ne!(length, Some(SOURCE.len().to_string()), "{io} {path}");
            }
            assert_eq!(world.get("/src.php").text(), "run", "{io}");
            assert_eq!(world.get("/off/src.php").status, 404, "{io}: where no application is, none runs");
        }
    }
}

#[test]
fn rules_of_the_script_hold_for_every_path_that_runs_it() {
    let files = [("index.php", TELL), ("private.php", TELL), ("admin/index.php", TELL)];
    let Some(php) = Php::start(1, &files) else { return };
    let rules = "headers = { X-Site = \"yes\" }\n[[path]]\nmatch = \"/private.php\"\ndeny = true\n\
        [[path]]\nmatch = \"/admin/index.php\"\ndeny = true\n";
    for io in ENGINES {
        let world = php.serve(io, &format!("{SITE}{rules}"));
        for path in ["/private.php", "/private.php/x", "/private.ph%70/x.css", "/admin/", "/admin/index.php/"]
        {
            for _ in 0..2 {
                assert_eq!(world.get(path).status, 403, "{io} {path}");
            }
        }
        let response = world.get("/any");
        assert_eq!((response.status, response.value("x-site").as_deref()), (200, Some("yes")), "{io}");
    }
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
        let world = php.serve(io, SITE);
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

/// Attacks on other servers before PHP, by their names.
#[test]
fn attacks_that_have_names() {
    const EVIL: &str = "<?php echo 'ev' . 'il';";
    let wide = "\u{23a}\u{23a}\u{23a}\u{23a}shell.php.txt";
    let files = [
        ("index.php", TELL),
        ("up/evil.jpg", EVIL),
        (wide, EVIL),
        ("evil.jpg ", EVIL),
        ("a.php.txt", EVIL),
        ("shell\u{fe52}php", EVIL),
        ("shell.\u{ff50}\u{ff48}\u{ff50}", EVIL),
    ];
    let Some(php) = Php::start(2, &files) else { return };
    for io in ENGINES {
        let world = php.serve(io, SITE);
        for path in [
            // "nginx and cgi.fix_pathinfo": PHP looks for a script in what stands before.
            "/up/evil.jpg/x.php",
            "/up/evil.jpg/.php",
            // CVE-2013-4547: a space, a NUL, and a script behind them.
            "/evil.jpg%20%00.php",
            "/evil.jpg%20/x.php",
            // CVE-2026-24895, CVE-2026-27590: letters that are longer in lower case move the split.
            "/%C8%BA%C8%BA%C8%BA%C8%BAshell.php.txt.php",
            "/a.php.txt/x.php",
            "/a.php.txt/.PHP",
        ] {
            let response = world.get(path);
            assert!([400, 404].contains(&response.status), "{io} {path}: {}", response.status);
            assert!(!response.text().contains("evil"), "{io} {path}: {}", response.text());
        }
        // CVE-2026-45062, CVE-2026-45135: letters that look like those of a script's name are others.
        for path in ["/shell%EF%B9%92php", "/shell.%EF%BD%90%EF%BD%88%EF%BD%90", "/shell%EF%B9%92php/x"] {
            let text = world.get(path).text();
            assert!(!text.contains("evil"), "{io} {path}: {text}");
        }
        // CVE-2019-11043: a line feed, behind which PATH_INFO is empty, though the path goes on.
        let query = "Q".repeat(1_800);
        for (path, info) in [
            ("/index.php/PHP%0Ax.php", Some("/PHP\nx.php")),
            ("/index.php%0Ax", None),
            ("/index.php/%0a", Some("/\n")),
        ] {
            let seen = told(&world, &get(&format!("{path}?{query}")));
            assert_eq!(seen["SCRIPT_NAME"], "/index.php", "{io} {path}");
            assert_eq!(seen.get("PATH_INFO").and_then(Value::as_str), info, "{io} {path}");
        }
        // CVE-2016-5385 (httpoxy), and two names that are one variable.
        let fields =
            "PROXY: evil\r\nproxy: evil\r\nContent_Length: 9\r\nX-A: good\r\nX_A: evil\r\nX.A: evil\r\n";
        let seen = told(&world, &format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        assert!(!seen.to_string().contains("evil"), "{io}: {seen}");
        assert_eq!((&seen["HTTP_X_A"], &seen["CONTENT_LENGTH"]), (&"good".into(), &"0".into()), "{io}");
    }
}

#[test]
fn a_folder_that_php_sees_by_another_name() {
    let Some(php) = Php::start(1, &[("index.php", TELL), ("only-there.php", TELL)]) else { return };
    let mirror = php.root().join("mirror");
    std::fs::create_dir(&mirror).expect("a folder");
    std::fs::write(mirror.join("index.php"), "").expect("a file");
    std::fs::write(mirror.join("file.txt"), "text\n").expect("a file");
    let root = php.root().join("www").display().to_string();
    for io in ENGINES {
        let far = "fastcgi_root = \"{root}/\"\nproxy = \"{php}\"\n";
        let world = php.serve(io, &format!("root = \"{{folder}}/mirror\"\n{far}"));
        let seen = told(&world, &get("/any"));
        assert_eq!(seen["SCRIPT_FILENAME"], format!("{root}/index.php"), "{io}");
        assert_eq!(world.get("/file.txt").text(), "text\n", "{io}");
        assert_eq!(world.get("/only-there.php").status, 404, "{io}");
        let world = php.serve(io, far);
        for path in ["/any", "/only-there.php", "/file.txt"] {
            assert_eq!(told(&world, &get(path))["SCRIPT_NAME"], "/index.php", "{io} {path}");
        }
    }
}

#[test]
fn a_command_is_enough_and_rules_lead_some_paths_to_php() {
    let files = [("index.php", TELL), ("api/index.php", TELL), ("file.txt", "text\n"), ("b/c.php", TELL)];
    let Some(php) = Php::start(1, &files) else { return };
    let root = php.root().join("www").display().to_string();
    for io in ENGINES {
        let world = World::proxy(io, &[php.address()], &["--root", &root]);
        assert_eq!(told(&world, &get("/any"))["SCRIPT_NAME"], "/index.php", "{io}");
        assert_eq!(world.get("/file.txt").text(), "text\n", "{io}");
        let rules = "root = \"{root}\"\n[[path]]\nmatch = \"/api/*\"\nproxy = \"{php}\"\n\
            try = [\"$path\", \"/api/index.php\"]\n";
        let world = php.serve(io, rules);
        assert_eq!(told(&world, &get("/api/any"))["SCRIPT_NAME"], "/api/index.php", "{io}");
        assert_eq!(world.get("/file.txt").text(), "text\n", "{io}");
        assert_eq!([world.get("/b/c.php").status, world.get("/any").status], [404, 404], "{io}");
    }
}
