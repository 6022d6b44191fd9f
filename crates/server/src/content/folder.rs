//! Which form of a listing is asked for, and under which key it is held.

use staunch_protocol::Request;

use super::listing::{Order, parse_order};
use super::negotiate::weight;

/// The form of a listing. A listing has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variant {
    /// JSON, else HTML.
    pub(crate) json: bool,
    /// By what it is sorted.
    pub(crate) order: Order,
    /// Whether the order is turned round.
    pub(crate) descending: bool,
}

impl Variant {
    /// What a request asks for: by `json`, `sort` and `order` in its query, else by Accept.
    pub(crate) fn of_request(request: &Request<'_>) -> Self {
        let query = request.query.unwrap_or_default();
        let (order, descending) = parse_order(query);
        let asked =
            query.split(|&byte| byte == b'&').any(|word| word == b"json" || word.starts_with(b"json="));
        let json = asked || (request.has_any(Request::ACCEPT) && prefers_json(request.values(b"accept")));
        Self { json, order, descending }
    }

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let orders = [Order::Name, Order::Size, Order::Time];
        let flags = [(false, false), (false, true), (true, false), (true, true)];
        orders.into_iter().flat_map(move |order| {
            flags.into_iter().map(move |(json, descending)| Self { json, order, descending })
        })
    }

    /// The key of a folder's listing: no path holds a NUL, so it is nobody's path.
    pub(crate) fn key(self, folder: &[u8]) -> Vec<u8> {
        let order = match self.order {
            Order::Name => b'n',
            Order::Size => b's',
            Order::Time => b't',
        };
        let form = if self.json { b'j' } else { b'h' };
        let direction = if self.descending { b'd' } else { b'a' };
        [folder, &[0, form, order, direction]].concat()
    }

    /// The folder and the variant of a key, if it is a listing's.
    pub(crate) fn of_key(key: &[u8]) -> Option<(&[u8], Self)> {
        let (folder, code) = key.split_last_chunk::<4>()?;
        let [0, form, order, direction] = *code else { return None };
        let order = match order {
            b's' => Order::Size,
            b't' => Order::Time,
            _ => Order::Name,
        };
        Some((folder, Self { json: form == b'j', order, descending: direction == b'd' }))
    }
}

/// Whether a problem is to be told in JSON (RFC 9457): to programs, which like it better than HTML.
#[inline]
pub(crate) fn wants_problem_in_json(request: &Request<'_>) -> bool {
    request.has_any(Request::ACCEPT) && {
        let names: [&[u8]; 2] = [b"application/problem+json", b"application/json"];
        prefers(request.values(b"accept"), &names)
    }
}

/// Whether JSON is liked better than HTML.
fn prefers_json<'a>(values: impl Iterator<Item = &'a [u8]>) -> bool {
    prefers(values, &[b"application/json"])
}

/// Whether one of the forms of JSON is liked better than HTML (RFC 9110, section 12.5.1); equal liking means
/// a person.
fn prefers<'a>(values: impl Iterator<Item = &'a [u8]>, names: &[&[u8]]) -> bool {
    let (mut html, mut json) = (Liking::default(), Liking::default());
    for range in values.flat_map(|value| value.split(|&byte| byte == b',')) {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(weight).unwrap_or(1000);
        html.hear(name, &[b"text/html"], b"text/*", weight);
        json.hear(name, names, b"application/*", weight);
    }
    json.weight > html.weight
}

/// What the most precise range said so far.
#[derive(Default)]
struct Liking {
    precision: u8,
    weight: u16,
}

impl Liking {
    fn hear(&mut self, name: &[u8], exact: &[&[u8]], group: &[u8], weight: u16) {
        let precision = match name {
            b"*/*" => 1,
            _ if name.eq_ignore_ascii_case(group) => 2,
            _ if exact.iter().any(|exact| name.eq_ignore_ascii_case(exact)) => 3,
            _ => 0,
        };
        if precision > self.precision {
            *self = Self { precision, weight };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_back() {
        for variant in Variant::all() {
            assert_eq!(Variant::of_key(&variant.key(b"/a/")), Some((&b"/a/"[..], variant)));
        }
        let keys: std::collections::HashSet<_> = Variant::all().map(|variant| variant.key(b"/")).collect();
        assert_eq!(keys.len(), 12);
        assert_eq!(Variant::of_key(b"/a/"), None);
        assert_eq!(Variant::of_key(b"/"), None);
    }

    #[test]
    fn accept() {
        for (value, expected) in [
            ("application/json", true),
            ("text/html, application/json", false),
            ("text/html;q=0.9, application/json", true),
            ("*/*", false),
            ("application/json, */*;q=0.8", true),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false),
            ("application/*", true),
            ("application/json;q=0", false),
            ("application/json;charset=utf-8;q=0.5, text/html;q=0.4", true),
            ("", false),
            ("image/png", false),
        ] {
            assert_eq!(prefers_json([value.as_bytes()].into_iter()), expected, "{value}");
        }
        let names: [&[u8]; 2] = [b"application/problem+json", b"application/json"];
        for (value, expected) in [
            ("application/problem+json", true),
            ("application/json", true),
            ("text/html, application/problem+json;q=0.9", false),
            ("text/html;q=0.8, application/problem+json;q=0.9", true),
            ("*/*", false),
        ] {
            assert_eq!(prefers([value.as_bytes()].into_iter(), &names), expected, "{value}");
        }
        assert!(!prefers_json([&b"application/problem+json"[..]].into_iter()), "a listing is no problem");
    }
}
