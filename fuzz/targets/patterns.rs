//! Patterns of names: each text as each kind, compared with a name. It must never take more than it says, nor
//! hold more than a bound.
#![cfg_attr(fuzzing, no_main)]

use staunch_live::limits::{PATTERN_PIECES_MAX, REGEXP_BYTES_MAX};
use staunch_live::{Pattern, TopicName};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, "https://a.b/c/d?e=f#g"));
    let Ok(name) = TopicName::new(name) else { return };
    let without = Pattern::url_without_regexps(pattern);
    let with = Pattern::url(pattern);
    // A right to regular expressions changes nothing where there are none.
    assert!(
        without.is_err() || without.as_ref().unwrap().matches(&name) == with.as_ref().unwrap().matches(&name)
    );
    for (pattern, bytes_max) in [
        (Pattern::new(pattern), 512),
        (Pattern::template(pattern), 8 * 1024),
        (without, 16 * 1024),
        (with, 16 * 1024 + REGEXP_BYTES_MAX),
    ] {
        let Ok(pattern) = pattern else { continue };
        let mut work = 0;
        assert_eq!(pattern.compare(&name, &mut work), pattern.matches(&name));
        // Wildcards that may stand often look at a text once for each of its bytes at most.
        assert!(work <= 8 * (PATTERN_PIECES_MAX + 1) * 1024, "{work}");
        assert!(pattern.held_bytes() <= bytes_max, "{}", pattern.held_bytes());
    }
}
