//! Tables of conditional requests.

use super::*;

const TAG: &[u8] = b"\"one\"";
/// Sun, 06 Nov 1994 08:49:37 GMT, the date of every example.
const MODIFIED: i64 = 784_111_777;

fn verdict(fields: &[(&str, &'static str)], modified: Option<i64>) -> Verdict {
    let mut conditions = Conditions::default();
    for (name, value) in fields {
        let value = value.as_bytes();
        match *name {
            "im" => conditions.if_match.push(value),
            "inm" => conditions.if_none_match.push(value),
            "ims" => conditions.if_modified_since = Some(value),
            _ => conditions.if_unmodified_since = Some(value),
        }
    }
    evaluate(&conditions, TAG, modified)
}

#[test]
fn single_conditions() {
    use Verdict::{Failed, NotModified, Proceed};
    let same = "Sun, 06 Nov 1994 08:49:37 GMT";
    let before = "Sun, 06 Nov 1994 08:49:36 GMT";
    let after = "Sun, 06 Nov 1994 08:49:38 GMT";
    let table: &[(&[(&str, &'static str)], Verdict)] = &[
        (&[], Proceed),
        (&[("im", "\"one\"")], Proceed),
        (&[("im", "\"two\"")], Failed),
        (&[("im", "W/\"one\"")], Failed),
        (&[("im", "*")], Proceed),
        (&[("im", "\"two\", \"one\"")], Proceed),
        (&[("im", "\"two\""), ("im", "\"one\"")], Proceed),
        (&[("im", "one")], Failed),
        (&[("inm", "\"one\"")], NotModified),
        (&[("inm", "W/\"one\"")], NotModified),
        (&[("inm", "*")], NotModified),
        (&[("inm", "\"two\"")], Proceed),
        (&[("inm", "\"two\" ,, W/\"three\",\"one\"")], NotModified),
        (&[("inm", "\"a,b\", \"one\"")], NotModified),
        (&[("inm", "one")], Proceed),
        (&[("inm", "\"one")], Proceed),
        (&[("inm", "")], Proceed),
        (&[("ims", same)], NotModified),
        (&[("ims", after)], NotModified),
        (&[("ims", before)], Proceed),
        (&[("ims", "Sunday, 06-Nov-94 08:49:37 GMT")], NotModified),
        (&[("ims", "Sun Nov  6 08:49:37 1994")], NotModified),
        (&[("ims", "yesterday")], Proceed),
        (&[("ius", same)], Proceed),
        (&[("ius", after)], Proceed),
        (&[("ius", before)], Failed),
        (&[("ius", "yesterday")], Proceed),
    ];
    for (fields, expected) in table {
        assert_eq!(verdict(fields, Some(MODIFIED)), *expected, "{fields:?}");
    }
}

#[test]
fn precedence() {
    use Verdict::{Failed, NotModified, Proceed};
    let same = "Sun, 06 Nov 1994 08:49:37 GMT";
    let before = "Sun, 06 Nov 1994 08:49:36 GMT";
    let table: &[(&[(&str, &'static str)], Verdict)] = &[
        // If-Match makes If-Unmodified-Since void, true or not.
        (&[("im", "\"one\""), ("ius", before)], Proceed),
        (&[("im", "\"two\""), ("ius", same)], Failed),
        // If-None-Match makes If-Modified-Since void, true or not.
        (&[("inm", "\"one\""), ("ims", before)], NotModified),
        (&[("inm", "\"two\""), ("ims", same)], Proceed),
        // The first pair is decided before the second.
        (&[("im", "\"two\""), ("inm", "\"one\"")], Failed),
        (&[("im", "\"one\""), ("inm", "\"one\"")], NotModified),
        (&[("ius", before), ("ims", same)], Failed),
        (&[("ius", same), ("ims", same)], NotModified),
        (&[("ius", same), ("inm", "\"two\"")], Proceed),
    ];
    for (fields, expected) in table {
        assert_eq!(verdict(fields, Some(MODIFIED)), *expected, "{fields:?}");
    }
}

#[test]
fn dates_are_void_without_a_date_of_the_content() {
    for name in ["ims", "ius"] {
        let fields = [(name, "Sun, 06 Nov 1994 08:49:36 GMT")];
        assert_eq!(verdict(&fields, None), Verdict::Proceed);
    }
}

#[test]
fn if_range() {
    let modified = b"Sun, 06 Nov 1994 08:49:37 GMT";
    let now = b"Sun, 06 Nov 1994 08:49:39 GMT";
    assert!(if_range_holds(TAG, TAG, Some(modified)));
    assert!(!if_range_holds(b"W/\"one\"", TAG, Some(modified)));
    assert!(!if_range_holds(b"\"two\"", TAG, Some(modified)));
    assert!(if_range_holds(modified, TAG, Some(modified)));
    assert!(!if_range_holds(now, TAG, Some(modified)), "a later date is not the same");
    assert!(!if_range_holds(modified, TAG, None));
    assert!(!if_range_holds(b"", TAG, Some(modified)));
}
