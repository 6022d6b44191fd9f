//! What scripts of other origins may read.

use super::*;

#[test]
fn other_origins() {
    let folder = folder();
    let named = Cors {
        origins: vec!["https://a.example".into()],
        methods: vec!["GET".into(), "PUT".into()],
        headers: vec!["X-Token".into()],
        max_age_s: Some(600),
        credentials: true,
    };
    let everybody = Cors { origins: vec!["*".into()], ..Cors::default() };
    let rules = paths(vec![
        PathRule { cors: Some(Some(everybody)), ..rule("/a.txt") },
        PathRule { cors: Some(Some(named)), basic_auth: auth(), ..rule("/secret/*") },
    ]);
    let (good, evil) = (("Origin", "https://a.example"), ("Origin", "https://evil.example"));
    let method = ("Access-Control-Request-Method", "PUT");
    for mut peer in peers(&folder, rules) {
        let origin = |response: &Response| response.field("access-control-allow-origin").map(str::to_owned);
        let open = twice(&mut peer, "/a.txt", &[evil]);
        assert_eq!(origin(&open).as_deref(), Some("*"));
        assert!(!open.head.contains("Vary: Origin"), "{}", open.head);
        let granted = twice(&mut peer, "/secret/a.txt", &[good, GOOD]);
        assert_eq!((granted.code, granted.text()), (200, "for anna"));
        assert_eq!(origin(&granted).as_deref(), Some("https://a.example"));
        assert_eq!(granted.field("access-control-allow-credentials"), Some("true"));
        assert!(granted.head.contains("\r\nVary: Origin\r\n"));
        let part = peer.get_with("/secret/a.txt", &[good, GOOD, ("Range", "bytes=0-2")]);
        assert_eq!((part.code, part.text(), origin(&part).is_some()), (206, "for", true));
        let refused = twice(&mut peer, "/secret/a.txt", &[evil, GOOD]);
        assert_eq!((refused.code, origin(&refused)), (200, None));
        assert!(refused.head.contains("\r\nVary: Origin\r\n"));
        let missing = twice(&mut peer, "/secret/none", &[good, GOOD]);
        assert_eq!((missing.code, origin(&missing).is_some()), (404, true));
        let preflight = peer.ask("OPTIONS", "/secret/a.txt", &[good, method]);
        assert_eq!((preflight.code, origin(&preflight).is_some()), (204, true), "no credentials needed");
        assert_eq!(preflight.field("access-control-allow-methods"), Some("GET, PUT"));
        assert_eq!(preflight.field("access-control-allow-headers"), Some("X-Token"));
        assert_eq!(preflight.field("access-control-max-age"), Some("600"));
        let refused = peer.ask("OPTIONS", "/secret/a.txt", &[evil, method]);
        assert_eq!((refused.code, origin(&refused)), (204, None));
        assert_eq!(refused.field("access-control-allow-methods"), None);
        assert_eq!(peer.ask("OPTIONS", "/secret/a.txt", &[good]).code, 401, "no preflight");
        assert_eq!(peer.ask("OPTIONS", "*", &[good, method]).code, 204);
    }
}
