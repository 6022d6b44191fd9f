//! Rules of a site hold for what an application answers, and files stand beside it.

use rustix::process::Signal;
use staunch_tests::truth::Plan;

use crate::world::{ENGINES, Told as _, World, application};

/// A hash of a password that nobody here shows.
const HASH: &str = "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW";

#[test]
fn paths_go_to_applications_and_others_are_files() {
    for io in ENGINES {
        let (_one, one) = application(Plan::default());
        let (_other, other) = application(Plan::default());
        let settings = format!(
            "root = \"{{root}}\"\nheaders = {{ X-Site = \"yes\" }}\n\
             redirects = [{{ from = \"/api/old/*\", to = \"/api/new/$1\" }}]\n\
             [[path]]\nmatch = \"/ok*\"\nproxy = \"{one}\"\n\
             [[path]]\nmatch = \"/api/*\"\nproxy = \"{other}\"\n\
             [[path]]\nmatch = \"/ok/shut*\"\ndeny = true\n"
        );
        let (world, _tree) = World::serve(io, &settings);
        assert_eq!(world.get("/page.txt").text(), "a file\n");
        let proxied = world.get("/ok?bytes=3");
        assert_eq!((proxied.status, proxied.value("x-site").as_deref()), (200, Some("yes")));
        assert_eq!(world.get("/api/x").status, 404, "{io}: the truth knows no such path");
        let redirect = world.get("/api/old/a");
        assert_eq!((redirect.status, redirect.value("location").as_deref()), (301, Some("/api/new/a")));
        assert_eq!(world.get("/ok/shut").status, 403);
        assert_eq!(world.get("/nothing").status, 404);
        assert_eq!(world.ask("POST /page.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").status, 405);
    }
}

#[test]
fn a_whole_site_goes_to_an_application_but_for_some_paths() {
    for io in ENGINES {
        let (_truth, address) = application(Plan::default());
        let settings = format!(
            "root = \"{{root}}\"\nproxy = \"{address}\"\n[[path]]\nmatch = \"/page*\"\nproxy = \"off\"\n"
        );
        let (world, _tree) = World::serve(io, &settings);
        assert_eq!(world.get("/page.txt").text(), "a file\n", "{io}");
        assert_eq!(world.get("/ok").status, 200, "{io}");
    }
}

#[test]
fn who_has_no_password_does_not_come_to_the_application() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let settings = format!(
            "proxy = \"{address}\"\n[[path]]\nmatch = \"/*\"\n\
             basic_auth = {{ users = {{ anna = \"{HASH}\" }} }}\n"
        );
        let (world, _tree) = World::serve(io, &settings);
        assert_eq!(world.get("/ok").status, 401, "{io}");
        let wrong = "GET /ok HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YW5uYTp3cm9uZw==\r\n\r\n";
        assert_eq!(world.ask(wrong).status, 401, "{io}");
        assert_eq!(truth.counts().requests_total(), 0, "{io}");
    }
}

#[test]
fn settings_that_cannot_be_say_so() {
    let (_truth, address) = application(Plan::default());
    let table = [
        ("proxy = \"https://a.test/x\"\n".to_owned(), "https://app.internal"),
        ("proxy = \"nonsense\"\n".to_owned(), "has no port: write an address such as 127.0.0.1:8000"),
        (format!("proxy = \"{address}\"\nproxy_limit = 0\n"), "proxy_limit"),
        ("[[path]]\nmatch = \"/a\"\nproxy = \"127.0.0.1:0\"\n".to_owned(), "\"0\" is no port"),
    ];
    for (settings, expected) in table {
        let tree = staunch_tests::tree::Tree::with(&[]).expect("a tree");
        let file = World::settings_file(&tree);
        std::fs::write(&file, format!("root = \"nowhere\"\n{settings}")).expect("a file");
        let mut command = std::process::Command::new(staunch_tests::process::binary());
        let finished = staunch_tests::process::finish(command.arg("-t").arg("-c").arg(&file));
        assert!(!finished.status.success() && finished.stderr.contains(expected), "{}", finished.stderr);
    }
}

#[test]
fn a_reload_leads_paths_to_other_applications() {
    for io in ENGINES {
        let (one, first) = application(Plan::default());
        let (other, second) = application(Plan::default());
        // Both ports are known from the start, so this process may connect to either.
        let settings = |site: &str, rest: &str| {
            format!("proxy = \"{site}\"\n[[path]]\nmatch = \"/rest*\"\nproxy = \"{rest}\"\n")
        };
        let (mut world, tree) = World::serve(io, &settings(&first, &second));
        assert_eq!(world.get("/ok").status, 200, "{io}");
        assert_eq!((one.counts().requests_of("ok"), other.counts().requests_of("ok")), (1, 0), "{io}");
        std::fs::write(World::settings_file(&tree), settings(&second, &first)).expect("a file");
        world.signal(Signal::HUP);
        while other.counts().requests_of("ok") == 0 {
            assert_eq!(world.get("/ok").status, 200, "{io}");
        }
        assert!(world.server.is_running(), "{io}: by a reload, not by an upgrade");
    }
}

#[test]
fn the_process_connects_to_no_port_but_those_of_its_servers() {
    let (_truth, address) = application(Plan::default());
    for io in ENGINES {
        let world = World::proxy(io, std::slice::from_ref(&address), &[]);
        let port = address.rsplit(':').next().expect("a port");
        let wanted = format!("connects to ports {port}");
        let mut said = String::new();
        while !said.contains("sandbox") || !said.ends_with('\n') {
            said.extend(world.server.said().into_iter().map(|line| line + "\n"));
        }
        assert!(said.contains("landlock") && said.contains(&wanted), "{said}");
    }
}
