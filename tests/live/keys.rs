//! Publishers that repeat themselves: a key (`Idempotency-Key`) tells a request that came before.

use crate::world::{Reply, World, publisher};

/// Asks with a key.
fn ask(world: &World, method: &str, path: &str, content_type: &str, key: &str, body: &str) -> Reply {
    let lines = format!("{}Idempotency-Key: {key}\r\n", publisher(content_type));
    world.ask(method, path, &lines, body.as_bytes())
}

/// What is said, and of which version.
fn told(reply: &Reply) -> (u16, String, Option<String>) {
    (reply.status, reply.text(), reply.field("etag").map(str::to_owned))
}

#[test]
fn a_request_that_comes_again_is_answered_as_before_and_publishes_nothing() {
    let world = World::new("epoll", &["--live-topics", "2"]);
    let line = |topic: &str| format!("{{\"topic\":\"{topic}\",\"data\":1}}\n");
    let lines = |topics: [&str; 3]| topics.map(line).concat();
    let batch = "/publish?quiet";
    for (key, method, path, content_type, body, status) in [
        ("value", "PUT", "/topics/a", "text/plain", "1".to_owned(), 200),
        ("batch", "POST", batch, "application/x-ndjson", lines(["a", "b", "a"]), 200),
        // The third topic is one too many: the lines before it stand, and the fault is told again.
        ("fault", "POST", batch, "application/x-ndjson", lines(["a", "b", "c"]), 503),
        ("end", "DELETE", "/topics/b", "text/plain", String::new(), 200),
    ] {
        let first = ask(&world, method, path, content_type, key, &body);
        assert_eq!(first.status, status, "{key}: {first:?}");
        let before = [world.ask("GET", "/live/a", "", b""), world.ask("GET", "/live/b", "", b"")];
        let again = ask(&world, method, path, content_type, key, &body);
        assert_eq!(told(&again), told(&first), "{key}");
        let after = [world.ask("GET", "/live/a", "", b""), world.ask("GET", "/live/b", "", b"")];
        assert_eq!(before.each_ref().map(told), after.each_ref().map(told), "{key}");
    }
}

#[test]
fn a_key_is_that_of_one_request() {
    let world = World::new("epoll", &[]);
    for topic in ["a", "b"] {
        world.put(topic, "0");
    }
    let status =
        |method: &str, path: &str, body: &str| ask(&world, method, path, "text/plain", "k", body).status;
    assert_eq!(status("PUT", "/topics/a", "1"), 200);
    assert_eq!(status("PUT", "/topics/b", "1"), 422, "the value of another topic");
    assert_eq!(status("PUT", "/topics/a", "2"), 422, "another value");
    assert_eq!(status("DELETE", "/topics/a", ""), 422, "no value");
    assert_eq!(status("PUT", "/topics/a", "1"), 200);
    assert_eq!(world.ask("GET", "/live/b", "", b"").text(), "0");
    let long = "k".repeat(257);
    assert_eq!(ask(&world, "PUT", "/topics/a", "text/plain", &long, "1").status, 400);
}
