//! What cannot be done is said in one sentence that names the fault and its place, with the right exit code.

use crate::generator::load;

/// Words, exit code, and what the sentence has to name.
const CASES: &[(&[&str], i32, &str)] = &[
    (&["https://127.0.0.1:1/", "-d", "200ms", "-k"], 1, "127.0.0.1:1"),
    (&["https://127.0.0.1:1/", "--cacert", "/no/such/file"], 1, "/no/such/file"),
    (&["https://127.0.0.1:1/", "--cacert", "/no/such/file", "-k"], 2, "--cacert"),
    (&["http://127.0.0.1:1/", "-k"], 1, "--insecure"),
    (&["http://127.0.0.1:1/", "--no-resumption"], 1, "--no-resumption"),
    (&["live", "https://127.0.0.1:1/"], 1, "ws://"),
    (&["ftp://127.0.0.1/"], 2, "ftp"),
    (&["http://"], 2, "host"),
    (&["http://127.0.0.1:99999/"], 2, "99999"),
    (&["http://user@127.0.0.1/"], 2, "user"),
    (&["http://[::1/"], 2, "]"),
    (&["http://no-such-name.invalid/"], 1, "no-such-name.invalid"),
    (&["http://127.0.0.1:1/", "-d", "200ms"], 1, "127.0.0.1:1"),
    (&["http://127.0.0.1:1/", "--rate", "fast"], 2, "--rate"),
    (&["http://127.0.0.1:1/", "--rate", "10/s", "--arrivals", "now and then"], 2, "--arrivals"),
    (&["http://127.0.0.1:1/", "--fail-if", "p99>soon"], 2, "--fail-if"),
    (&["http://127.0.0.1:1/", "--with", "elephants:3"], 1, "slow-headers"),
    (&["http://127.0.0.1:1/", "-H", "no colon"], 1, "--header"),
    (&["http://127.0.0.1:1/", "-X", "G E T"], 1, "G E T"),
    (&["http://127.0.0.1:1/", "--urls", "/no/such/file"], 1, "/no/such/file"),
    (&["http://127.0.0.1:1/", "--trace", "/no/such/file"], 1, "/no/such/file"),
    (&["http://127.0.0.1:1/", "--body", "@/no/such/file"], 1, "/no/such/file"),
    (&["http://127.0.0.1:1/", "--body", "{{nonsense}}"], 1, "nonsense"),
    (&["http://127.0.0.1:1/", "--json", "/no/such/folder/file"], 1, "/no/such/folder/file"),
    (&["http://127.0.0.1:1/", "--json", "-", "--csv", "-"], 1, "standard output"),
    (&["http://127.0.0.1:1/", "--cpus", "4000"], 1, "4000"),
    (&["http://127.0.0.1:1/", "--conections", "3"], 2, "--connections"),
    (&["compare", "/no/such/a.json", "/no/such/b.json"], 1, "/no/such/a.json"),
    (&["hold", "http://192.0.2.1:80/", "-c", "1m"], 1, "--source"),
];

#[test]
fn faults_are_named() {
    for (words, code, named) in CASES {
        let finished = load(words);
        let said = &finished.stderr;
        assert_eq!(finished.status.code(), Some(*code), "{words:?}: {said}");
        assert!(said.contains(named), "{words:?}: `{named}` is not in: {said}");
        assert!(!said.contains("panicked"), "{words:?}: {said}");
    }
}
