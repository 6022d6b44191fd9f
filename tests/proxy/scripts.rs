//! Which script runs for a path, which files are served beside, and that no source is.

use serde_json::Value;

use crate::php::{Php, SITE, TELL, get, told, until};
use crate::world::{ENGINES, Told as _, World};

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
fn a_password_is_asked_for_where_the_path_or_its_script_has_one() {
    // bert:sesame
    const HASH: &str = "$2y$04$o47T2XpOSOc..qW12xHpD.sjWFiDuFL6WcZB6Tz0JB4aDm2Ls9AZa";
    let rule = format!("basic_auth = {{ users = {{ bert = \"{HASH}\" }} }}\n");
    let files = [("index.php", TELL), ("admin/index.php", TELL), ("area/x.php", TELL)];
    let Some(php) = Php::start(1, &files) else { return };
    let paths = ["/admin/index.php", "/area/*"].map(|path| format!("[[path]]\nmatch = \"{path}\"\n{rule}"));
    for io in ENGINES {
        let world = php.serve(io, &format!("{SITE}{}", paths.concat()));
        for path in ["/admin/", "/admin/index.php/x", "/area/x.php", "/area/any"] {
            for method in ["GET", "POST"] {
                let ask = |fields: &str| {
                    let fields = format!("Host: a\r\nContent-Length: 3\r\n{fields}");
                    world.ask(&format!("{method} {path} HTTP/1.1\r\n{fields}\r\nabc"))
                };
                assert_eq!(ask("").status, 401, "{io} {method} {path}");
                let good = ask("Authorization: Basic YmVydDpzZXNhbWU=\r\n");
                assert_eq!(good.status, 200, "{io} {method} {path}: {}", good.text());
                assert!(good.text().contains("\"BODY_BYTES\":3"), "{io} {method} {path}: {}", good.text());
            }
        }
        assert_eq!(world.get("/").status, 200, "{io}");
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
