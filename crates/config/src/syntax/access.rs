//! Clients that may have something, and clients that may not.
//!
//! It must never judge an address or a certificate: it says which are meant.

use crate::node::{Node, ValueKind};
use crate::syntax::choice::OnOff;
use crate::syntax::text::{AddressBlock, Block};
use crate::syntax::{Complaint, Many, Scalar, Syntax};

/// The clients that are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// No client is refused.
    Nobody,
    /// Every client.
    Everybody,
    /// The clients of these networks.
    Networks(Vec<AddressBlock>),
}

/// `on`, `off` (in a file also `true` and `false`), or networks.
#[derive(Debug)]
pub struct Denial;

impl Syntax for Denial {
    type Value = Denied;

    fn word() -> String {
        format!("{}|{}", OnOff::WORD, Many::<Block>::word())
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Denied> {
        let switch = match &node.kind {
            ValueKind::Switch(switch) => Some(*switch),
            ValueKind::Text(text) => OnOff::parse(text).ok(),
            _ => None,
        };
        match switch {
            Some(true) => Some(Denied::Everybody),
            Some(false) => Some(Denied::Nobody),
            None => Many::<Block>::read(node, complaints).map(Denied::Networks),
        }
    }

    fn write(denied: &Denied) -> Node {
        match denied {
            Denied::Nobody => <OnOff as Scalar>::write(&false),
            Denied::Everybody => <OnOff as Scalar>::write(&true),
            Denied::Networks(blocks) => <Many<Block> as Syntax>::write(blocks),
        }
    }
}

/// Which clients' certificates are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedClients {
    /// Any that is verified.
    Verified,
    /// A client that is in this list.
    OneOf(Vec<ClientName>),
}

/// A client, by its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientName {
    /// The subject, as text (RFC 4514).
    Subject(String),
    /// The SHA-256 digest.
    Fingerprint([u8; 32]),
}

/// `required`, one subject or fingerprint, or a list of such. A subject has commas, so no text is cut at one.
#[derive(Debug)]
pub struct ClientCertificate;

const REQUIRED: &str = "required";

impl Syntax for ClientCertificate {
    type Value = AllowedClients;

    fn word() -> String {
        format!("{REQUIRED}|{},...", OneClient::WORD)
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<AllowedClients> {
        match &node.kind {
            ValueKind::Text(text) if text == REQUIRED => Some(AllowedClients::Verified),
            ValueKind::List(items) => {
                let read = items.iter().map(|item| <OneClient as Syntax>::read(item, complaints));
                let read: Vec<_> = read.collect();
                read.into_iter().collect::<Option<_>>().map(AllowedClients::OneOf)
            }
            _ => <OneClient as Syntax>::read(node, complaints).map(|one| AllowedClients::OneOf(vec![one])),
        }
    }

    fn write(clients: &AllowedClients) -> Node {
        match clients {
            AllowedClients::Verified => Node::text(REQUIRED),
            AllowedClients::OneOf(all) => {
                Node::new(ValueKind::List(all.iter().map(<OneClient as Scalar>::write).collect()))
            }
        }
    }
}

/// `CN=anna,O=Example`, or 64 hexadecimal digits, which may have colons between them.
#[derive(Debug)]
pub struct OneClient;

impl Scalar for OneClient {
    type Value = ClientName;
    const WORD: &'static str = "SUBJECT|SHA256";
    const IS_TEXT: bool = true;

    fn parse(text: &str) -> Result<ClientName, String> {
        if text.contains('=') {
            return match unlike_a_subject(text) {
                Some(why) => Err(why.into()),
                None => Ok(ClientName::Subject(text.into())),
            };
        }
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        let (pairs, rest) = digits.as_chunks::<2>();
        let byte = |[high, low]: &[u8; 2]| {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
        };
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        let bytes: Option<[u8; 32]> = bytes.filter(|_| rest.is_empty()).and_then(|all| all.try_into().ok());
        let text =
            "write a subject such as CN=anna,O=Example, or a SHA-256 fingerprint of 64 hexadecimal digits";
        bytes.map(ClientName::Fingerprint).ok_or_else(|| text.into())
    }

    fn write(client: &ClientName) -> Node {
        match client {
            ClientName::Subject(subject) => Node::text(subject.as_str()),
            ClientName::Fingerprint(bytes) => {
                Node::text(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            }
        }
    }
}

/// Why no subject looks like this as the log has it (RFC 4514): types in capitals or as numbers, and no space
/// around what separates them. Such a rule would let nobody in.
fn unlike_a_subject(text: &str) -> Option<&'static str> {
    let mut is_escaped = false;
    let is_separator = |character: char| {
        let separates = !is_escaped && matches!(character, ',' | '+');
        is_escaped = !is_escaped && character == '\\';
        separates
    };
    let parts: Vec<&str> = text.split(is_separator).collect();
    if parts.iter().any(|part| part.starts_with(' ')) {
        return Some("write no space behind a comma or plus: CN=anna,O=Example, as it stands in the log");
    }
    let types = parts.iter().map(|part| part.split_once('=').map_or("", |(name, _)| name));
    let is_type = |name: &str| {
        let is_known = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase() || b".-".contains(&byte);
        !name.is_empty() && name.bytes().all(is_known)
    };
    let text = "write each part as TYPE=value, the type in capitals and a comma in a value as \\,: \
                CN=anna,O=Example, as it stands in the log";
    (!types.into_iter().all(is_type)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_that_no_certificate_has_are_refused() {
        for right in [
            "CN=anna,O=Example",
            "CN=anna+UID=7,O=Example\\, Ltd.",
            "EMAIL=a@b.example,C=DE",
            "1.2.3.4=#0c01,CN=a=b",
            "CN=\\ anna\\\\,O=x",
            "CN=",
        ] {
            assert_eq!(OneClient::parse(right), Ok(ClientName::Subject(right.into())));
        }
        for wrong in
            ["CN=anna, O=Example", "cn=anna", "CN=anna,Example", "O = Example", "/O=Example/CN=anna", "=x"]
        {
            assert!(OneClient::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn clients_are_named_by_subject_or_fingerprint() {
        let subject = |text: &str| Ok(ClientName::Subject(text.into()));
        assert_eq!(OneClient::parse("CN=anna,O=House"), subject("CN=anna,O=House"));
        let fingerprint = Ok(ClientName::Fingerprint([0xab; 32]));
        assert_eq!(OneClient::parse(&"ab".repeat(32)), fingerprint);
        assert_eq!(OneClient::parse(["AB"; 32].join(":").as_str()), fingerprint);
        for wrong in ["", "anna", &"ab".repeat(31), &"ab".repeat(33), &"a".repeat(63), &"xy".repeat(32)] {
            assert!(OneClient::parse(wrong).is_err(), "{wrong}");
        }
        for name in [subject("CN=anna"), fingerprint] {
            let name = name.expect("right");
            let node = <OneClient as Scalar>::write(&name);
            assert_eq!(<OneClient as Syntax>::read(&node, &mut Vec::new()), Some(name));
        }
    }
}
