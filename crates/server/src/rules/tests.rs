//! Tests of what rules come to.

use std::collections::BTreeMap;

use super::*;
use crate::config::{BasicAuth, Cors, RedirectRule};

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn rule(pattern: &str) -> PathRule {
    PathRule { pattern: pattern.to_owned(), ..PathRule::default() }
}

#[test]
fn no_rules_are_none() {
    assert!(Rules::new(&SiteRules::default()).unwrap().is_none());
    let rules = SiteRules { paths: vec![rule("/a/*")], ..SiteRules::default() };
    let rules = Rules::new(&rules).unwrap().unwrap();
    assert!(rules.of(b"/b").is_none());
    assert!(rules.of(b"/a/b").is_some());
}

#[test]
fn later_rules_override_earlier_ones() {
    let rules = SiteRules {
        headers: vec![pair("X-A", "site"), pair("X-B", "site")],
        paths: vec![
            PathRule {
                headers: vec![pair("x-a", "one")],
                cache_control: Some("max-age=1".to_owned()),
                listing: Some(true),
                deny: Some(true),
                ..rule("/*")
            },
            PathRule { headers: vec![pair("X-B", "")], deny: Some(false), ..rule("/open/*") },
            PathRule { headers: vec![pair("Cache-Control", "no-store")], ..rule("*.secret") },
        ],
        ..SiteRules::default()
    };
    let rules = Rules::new(&rules).unwrap().unwrap();
    for (path, lines, cache_control, deny) in [
        ("/a", "X-A: one\r\nX-B: site\r\n", "max-age=1", true),
        ("/open/a", "X-A: one\r\n", "max-age=1", false),
        ("/open/a.secret", "X-A: one\r\n", "no-store", false),
    ] {
        let ruling = rules.of(path.as_bytes()).unwrap();
        assert_eq!(&*ruling.lines, lines, "{path}");
        assert_eq!(ruling.cache_control.as_deref(), Some(cache_control), "{path}");
        assert_eq!((ruling.deny, ruling.listing), (deny, Some(true)), "{path}");
    }
    assert!(Arc::ptr_eq(&rules.of(b"/x").unwrap(), &rules.of(b"/y").unwrap()), "made once");
}

#[test]
fn the_first_redirect_that_matches_is_taken() {
    let redirect = |from: &str, to: &str, status| RedirectRule { from: from.into(), to: to.into(), status };
    let redirects = vec![redirect("/a/b", "/1", 301), redirect("/a/*", "/2/$1", 308)];
    let rules = Rules::new(&SiteRules { redirects, ..SiteRules::default() }).unwrap().unwrap();
    let location = |path: &[u8]| {
        let redirect = rules.of(path)?.redirect.clone()?;
        Some((redirect.status.code(), redirect.location(path, None)))
    };
    assert_eq!(location(b"/a/b"), Some((301, "/1".to_owned())));
    assert_eq!(location(b"/a/c"), Some((308, "/2/c".to_owned())));
    assert_eq!(location(b"/b"), None);
}

#[test]
fn no_more_combinations_are_kept_than_allowed() {
    let paths = (0..16).map(|bit| rule(&format!("*{bit:x}*"))).collect();
    let rules = Rules::new(&SiteRules { paths, ..SiteRules::default() }).unwrap().unwrap();
    for number in 0..2 * RULINGS_KEPT_MAX {
        let digits: String =
            (0..16).filter(|bit| number >> bit & 1 == 1).map(|bit| format!("{bit:x}")).collect();
        rules.of(format!("/{digits}").as_bytes());
    }
    assert_eq!(rules.kept.lock().unwrap().len(), RULINGS_KEPT_MAX);
}

#[test]
fn a_later_rule_switches_off_what_an_earlier_one_asks() {
    let hash = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A";
    let users = BTreeMap::from([("anna".to_owned(), hash.to_owned())]);
    let auth = BasicAuth { realm: "r".into(), users, users_file: None };
    let cors = Cors { origins: vec!["*".into()], ..Cors::default() };
    let paths = vec![
        PathRule { basic_auth: Some(Some(auth.clone())), cors: Some(Some(cors)), ..rule("/*") },
        PathRule { basic_auth: Some(None), ..rule("/open*") },
        PathRule { cors: Some(None), ..rule("/open/own*") },
        PathRule { basic_auth: Some(Some(auth)), ..rule("/open/own/shut") },
    ];
    let rules = Rules::new(&SiteRules { paths, ..SiteRules::default() }).unwrap().unwrap();
    for (path, asks, shares) in [
        ("/a", true, true),
        ("/open", false, true),
        ("/open/own", false, false),
        ("/open/own/shut", true, false),
    ] {
        let ruling = rules.of(path.as_bytes()).expect("a ruling");
        assert_eq!((ruling.auth.is_some(), ruling.sharing.is_some()), (asks, shares), "{path}");
        assert_eq!(ruling.lines.contains("Access-Control"), shares, "{path}");
    }
}

#[test]
fn the_last_rule_that_says_a_class_decides() {
    use PlaceClass::{High, Low, Normal};
    let of_class = |class, pattern| PathRule { class: Some(class), ..rule(pattern) };
    let paths =
        vec![of_class(Low, "/a*"), of_class(High, "/a/b*"), rule("/a/b/c"), of_class(Normal, "/a/b/d")];
    let rules = Rules::new(&SiteRules { paths, ..SiteRules::default() }).unwrap().unwrap();
    for (path, class) in [
        ("/x", None),
        ("/a", Some(Low)),
        ("/a/b", Some(High)),
        ("/a/b/c", Some(High)),
        ("/a/b/d", Some(Normal)),
    ] {
        assert_eq!(rules.class(path.as_bytes()), class, "{path}");
        assert_eq!(rules.of(path.as_bytes()).map(|ruling| ruling.class), class, "{path}");
    }
}

/// Every fault is refused with words that name the key and the value.
#[test]
fn faults() {
    let site = SiteRules::default;
    let with = |rule: PathRule| SiteRules { paths: vec![rule], ..SiteRules::default() };
    let redirect = |from: &str, to: &str, status| SiteRules {
        redirects: vec![RedirectRule { from: from.into(), to: to.into(), status }],
        ..SiteRules::default()
    };
    let auth = BasicAuth { realm: "r".into(), ..BasicAuth::default() };
    let cors = Cors { origins: vec!["a".into()], ..Cors::default() };
    for (rules, words) in [
        (SiteRules { headers: vec![pair("Date", "x")], ..site() }, "Date is set by the server itself"),
        (SiteRules { headers: vec![pair("X-A", &"a".repeat(7000))], ..site() }, "longer than 6144 bytes"),
        (SiteRules { fallback: Some("index.html".into()), ..site() }, "fallback = \"index.html\""),
        (SiteRules { fallback: Some("/a/../b".into()), ..site() }, "fallback"),
        (SiteRules { error_pages: BTreeMap::from([(404, "/".into())]), ..site() }, "error_pages = \"/\""),
        (SiteRules { error_pages: BTreeMap::from([(408, "/a".into())]), ..site() }, "408 has no page"),
        (redirect("a", "/b", 301), "from = \"a\""),
        (redirect("/a", "b", 301), "to = \"b\""),
        (redirect("/a", "/b$1", 301), "has $1, but `from` has 0 stars"),
        (redirect("/a", "/b", 300), "status 300"),
        (with(rule("assets")), "match = \"assets\""),
        (with(PathRule { cache_control: Some("a\nb".into()), ..rule("/a") }), "path \"/a\": cache_control"),
        (with(PathRule { headers: vec![pair("a b", "c")], ..rule("/a") }), "path \"/a\": headers: \"a b\""),
        (with(PathRule { basic_auth: Some(Some(auth)), ..rule("/a") }), "the realm \"r\" has no users"),
        (with(PathRule { cors: Some(Some(cors)), ..rule("/a") }), "\"a\" is no origin"),
    ] {
        let fault = Rules::new(&rules).unwrap_err();
        assert!(fault.contains(words), "{fault}");
    }
}
