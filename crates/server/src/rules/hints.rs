//! Early hints: links that a browser may follow while the answer to its request is still made (RFC 8297).
//!
//! This module owns which links they are. A link that helps only once the page is there must never be one.

use super::line;
use crate::limits::RULE_FIELDS_BYTES_MAX;

/// Relations of links that a browser can follow before the page is there.
const EARLY: [&str; 3] = ["preload", "modulepreload", "preconnect"];

/// Whether these links may be sent.
///
/// # Errors
/// A link with a byte that no field may have, or more than clients take.
pub(super) fn check(links: &[String]) -> Result<(), String> {
    links.iter().try_for_each(|link| line::check_value("early_hints", link))?;
    if lines(Some(links), None).len() > RULE_FIELDS_BYTES_MAX {
        return Err(format!(
            "early_hints: together they are longer than {RULE_FIELDS_BYTES_MAX} bytes, which clients refuse"
        ));
    }
    Ok(())
}

/// Field lines of hints: the links that a rule names, or else those of the page's own field that are of use
/// early.
pub(super) fn lines(said: Option<&[String]>, link: Option<&str>) -> Vec<u8> {
    let links: Vec<&str> = match said {
        Some(said) => said.iter().map(String::as_str).collect(),
        None => link.map_or(Vec::new(), members).into_iter().filter(|link| is_early(link)).collect(),
    };
    links.iter().flat_map(|link| format!("Link: {link}\r\n").into_bytes()).collect()
}

/// The links of a field: commas stand between them, and may stand within `<>` and quotes.
fn members(value: &str) -> Vec<&str> {
    let (mut in_target, mut in_quotes) = (false, false);
    let is_end = |letter: char| {
        match letter {
            '"' if !in_target => in_quotes = !in_quotes,
            '<' if !in_quotes => in_target = true,
            '>' if !in_quotes => in_target = false,
            _ => {}
        }
        letter == ',' && !in_target && !in_quotes
    };
    value.split(is_end).map(str::trim).filter(|link| !link.is_empty()).collect()
}

/// Whether a relation of a link is one of those that are of use early.
fn is_early(link: &str) -> bool {
    let Some((_, parameters)) = link.split_once('>') else { return false };
    let relations = parameters.split(';').filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("rel").then_some(value)
    });
    let mut words = relations.flat_map(|value| value.trim().trim_matches('"').split_ascii_whitespace());
    words.any(|word| EARLY.iter().any(|early| early.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_use_early_are_taken_from_the_field() {
        let field = "</a.css>; rel=preload; as=style, </b,c>; title=\"x, y\"; rel=\"next PRELOAD\", \
                     </d>; rel=next, <https://cdn.example>; rel=preconnect, bad; rel=preload";
        let expected = "Link: </a.css>; rel=preload; as=style\r\n\
                        Link: </b,c>; title=\"x, y\"; rel=\"next PRELOAD\"\r\n\
                        Link: <https://cdn.example>; rel=preconnect\r\n";
        assert_eq!(String::from_utf8(lines(None, Some(field))).unwrap(), expected);
        assert!(lines(None, None).is_empty() && lines(None, Some("</a>; rel=next")).is_empty());
    }

    #[test]
    fn links_that_cannot_be_sent() {
        let link = |bytes: usize| format!("</{}>; rel=preload", "a".repeat(bytes));
        assert!(check(&[link(1), link(100)]).is_ok());
        assert!(check(&["</a\r\nb>; rel=preload".to_owned()]).is_err());
        assert!(check(&[link(RULE_FIELDS_BYTES_MAX)]).is_err());
    }

    #[test]
    fn what_a_rule_says_goes_before_the_field() {
        let own = ["</own.js>; rel=modulepreload".to_owned()];
        let field = Some("</a.css>; rel=preload");
        assert_eq!(lines(Some(&own), field), b"Link: </own.js>; rel=modulepreload\r\n");
        assert!(lines(Some(&[]), field).is_empty());
    }
}
