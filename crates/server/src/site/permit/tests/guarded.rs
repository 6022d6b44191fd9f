//! What is shown to those only who say who they are.

use super::*;

#[test]
fn who_may_see_it() {
    let folder = folder();
    let rules = SiteRules {
        headers: vec![pair("X-All", "1")],
        ..paths(vec![PathRule { basic_auth: auth(), ..rule("/secret/*") }])
    };
    for mut peer in peers(&folder, rules) {
        for fields in [
            &[][..],
            &[BAD][..],
            &[GOOD, GOOD][..],
            &[("Authorization", "Bearer x")][..],
            &[("Authorization", "Basic ?")][..],
        ] {
            for target in ["/secret/a.txt", "/secret/", "/secret/none"] {
                let response = twice(&mut peer, target, fields);
                assert_eq!((response.code, response.field("x-all")), (401, Some("1")), "{target} {fields:?}");
                let challenge = response.field("www-authenticate");
                assert_eq!(challenge, Some("Basic realm=\"here\", charset=\"UTF-8\""));
            }
        }
        assert_eq!(twice(&mut peer, "/secret/a.txt", &[GOOD]).text(), "for anna");
        assert_eq!(twice(&mut peer, "/secret/", &[GOOD]).text(), "index for anna");
        assert_eq!(twice(&mut peer, "/secret/none", &[GOOD]).code, 404);
        assert_eq!(twice(&mut peer, "/secret/a.txt", &[BAD]).code, 401, "the good are remembered, not these");
        assert_eq!(twice(&mut peer, "/a.txt", &[]).code, 200);
        assert_eq!(peer.ask("POST", "/secret/a.txt", &[("Content-Length", "0")]).code, 401);
        assert_eq!(peer.ask("POST", "/secret/a.txt", &[GOOD, ("Content-Length", "0")]).code, 405);
    }
}

#[test]
fn no_more_checks_wait_than_a_person_would() {
    let folder = folder();
    let rules = paths(vec![PathRule { basic_auth: auth(), ..rule("/secret/*") }]);
    let root = folder.path().to_path_buf();
    let mut peer = Peer::without_threads(SiteConfig { root, rules, ..SiteConfig::default() });
    let field = |guess: usize| format!("Basic {}", STANDARD.encode(format!("anna:{guess}")));
    let mut ask = |slot: usize, guess: usize| {
        peer.ask_in_passing(slot as u32, "/secret/a.txt", &[("Authorization", &field(guess))])
    };
    for guess in 0..CHECKS_PER_CLIENT_MAX {
        assert!(ask(guess, guess).is_none(), "{guess}");
    }
    let refused = ask(0, CHECKS_PER_CLIENT_MAX).expect("an answer at once");
    assert_eq!((refused.code, refused.field("retry-after")), (429, Some("1")));
    assert!(ask(0, 0).is_none(), "joined");
}

#[test]
fn an_index_file_is_not_shown_by_its_folder() {
    let folder = folder();
    let rules = paths(vec![PathRule { basic_auth: auth(), ..rule("*/index.html") }]);
    for mut peer in peers(&folder, rules) {
        assert_eq!(twice(&mut peer, "/secret/", &[]).code, 401);
        let challenge = peer.get("/secret/");
        assert!(challenge.field("www-authenticate").is_some(), "{challenge:?}");
        assert_eq!(twice(&mut peer, "/secret/", &[BAD]).code, 401);
        assert_eq!(twice(&mut peer, "/secret/", &[GOOD]).text(), "index for anna");
    }
}

#[test]
fn a_page_for_those_who_may_not() {
    let folder = folder();
    let error_pages = BTreeMap::from([(401, "/login.html".into())]);
    let rules =
        SiteRules { error_pages, ..paths(vec![PathRule { basic_auth: auth(), ..rule("/secret/*") }]) };
    for mut peer in peers(&folder, rules) {
        let response = twice(&mut peer, "/secret/", &[]);
        assert_eq!((response.code, response.text()), (401, "who?"));
        assert!(response.field("www-authenticate").is_some());
        assert_eq!(peer.get_with("/secret/", &[BAD]).text(), "who?");
    }
}
