//! Frames from words: `ipv4 tcp`, `vlan ipv6 hop tcp flags=S port=443 cut=60`.
//!
//! It owns the words, which stand at `verdicts.txt`. It must never know what the gate makes of a frame.

/// A frame that is being made.
#[derive(Debug, Default)]
struct Making {
    frame: Vec<u8>,
    /// Where the type of what comes next is written.
    type_at: usize,
    /// Where the header of IP begins, and where its number of the next header is written.
    internet: Option<(usize, usize)>,
    is_ipv6: bool,
    /// Whether a word has said the packet's length.
    has_length: bool,
    /// Where the segment begins.
    segment: usize,
    /// The frame's length at last: filled up, or cut.
    length: Option<usize>,
}

/// The frame these words describe.
///
/// # Panics
/// When a word is unknown.
pub(crate) fn packet(words: &str) -> Vec<u8> {
    let mut making = Making { frame: vec![0; 14], type_at: 12, ..Making::default() };
    making.frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        making.add(name, value);
    }
    making.finish()
}

impl Making {
    fn add(&mut self, name: &str, value: &str) {
        match name {
            "broadcast" => self.frame[..6].fill(255),
            "vlan" => self.tag(0x8100),
            "qinq" => self.tag(0x88a8),
            "type" => self.set16(self.type_at, number(value)),
            "ipv4" => self.ipv4(value),
            "options" => self.options(number(value)),
            "ipv6" => self.ipv6(value),
            "hop" => self.extension(0, 1),
            "routing" => self.extension(43, 2),
            "destination" => self.extension(60, 1),
            "fragment-header" => self.part(number(or(value, "0"))),
            "vlans" => (0..number(value)).for_each(|_| self.tag(0x8100)),
            "hops" => (0..number(value)).for_each(|_| self.extension(0, 1)),
            "tcp" | "udp" | "icmp" | "next" => self.upper(name, value),
            "mss" => self.segment_options(&[2, 4, 5, 0xb4]),
            "nop" => self.segment_options(&[1; 4]),
            "data" => self.frame.extend(vec![b'x'; number(value)]),
            "version" => {
                let at = self.internet().0;
                self.frame[at] = self.frame[at] & 15 | (number(value) as u8) << 4;
            }
            "ihl" => {
                let at = self.internet().0;
                self.frame[at] = self.frame[at] & 0xf0 | number(value) as u8;
            }
            "part" => self.set16(self.internet().0 + 6, number(value)),
            "length" => {
                self.set16(self.internet().0 + if self.is_ipv6 { 4 } else { 2 }, number(value));
                self.has_length = true;
            }
            "port" => self.set16(self.segment + 2, number(value)),
            "from-port" => self.set16(self.segment, number(value)),
            "sequence" => self.set16(self.segment + 6, number(value)),
            "offset" => self.frame[self.segment + 12] = (number(value) as u8) << 4,
            "flags" => self.frame[self.segment + 13] = flags(value),
            "pad" | "cut" => self.length = Some(number(value)),
            _ => panic!("there is no word '{name}' for a packet"),
        }
    }

    fn tag(&mut self, kind: usize) {
        self.set16(self.type_at, kind);
        self.frame.extend([0, 7, 0, 0]);
        self.type_at += 4;
    }

    fn ipv4(&mut self, source: &str) {
        let source: std::net::Ipv4Addr = or(source, "192.0.2.7").parse().expect("an IPv4 address");
        self.set16(self.type_at, 0x0800);
        let at = self.frame.len();
        self.frame.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 0, 0, 0]);
        self.frame.extend(source.octets());
        self.frame.extend([198, 51, 100, 1]);
        self.internet = Some((at, at + 9));
    }

    fn ipv6(&mut self, source: &str) {
        let source: std::net::Ipv6Addr = or(source, "2001:db8:7::7").parse().expect("an IPv6 address");
        self.set16(self.type_at, 0x86dd);
        let at = self.frame.len();
        self.frame.extend([0x60, 0, 0, 0, 0, 0, 0, 64]);
        self.frame.extend(source.octets());
        self.frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        self.internet = Some((at, at + 6));
        self.is_ipv6 = true;
    }

    fn options(&mut self, bytes: usize) {
        let at = self.internet().0;
        self.frame.extend(vec![1; bytes]);
        self.frame[at] += (bytes / 4) as u8;
    }

    /// A header of IPv6 with so many times eight bytes.
    fn extension(&mut self, kind: u8, eights: usize) {
        let (at, next_at) = self.internet();
        self.frame[next_at] = kind;
        let begin = self.frame.len();
        self.frame.resize(begin + eights * 8, 0);
        self.frame[begin + 1] = (eights - 1) as u8;
        self.internet = Some((at, begin));
    }

    /// The header of a part of a packet of IPv6: its offset, in bytes, and 1 where more parts follow.
    fn part(&mut self, place: usize) {
        self.extension(44, 1);
        let at = self.internet().1;
        self.set16(at + 2, place);
    }

    fn upper(&mut self, name: &str, value: &str) {
        let next_at = self.internet().1;
        self.frame[next_at] = match name {
            "tcp" => 6,
            "udp" => 17,
            "icmp" => 1,
            _ => number(value) as u8,
        };
        self.segment = self.frame.len();
        self.frame.resize(self.segment + 20, 0);
        self.set16(self.segment, 40_000);
        self.set16(self.segment + 2, 80);
        self.set16(self.segment + 6, 7);
        self.frame[self.segment + 12] = 5 << 4;
        self.frame[self.segment + 13] = flags("S");
    }

    fn segment_options(&mut self, bytes: &[u8]) {
        self.frame.extend(bytes);
        self.frame[self.segment + 12] += ((bytes.len() / 4) as u8) << 4;
    }

    /// Lengths that were not given are those of the frame.
    fn finish(mut self) -> Vec<u8> {
        if let Some((at, _)) = self.internet {
            let (length_at, length) = if self.is_ipv6 {
                (at + 4, self.frame.len() - at - 40)
            } else {
                (at + 2, self.frame.len() - at)
            };
            if !self.has_length {
                self.set16(length_at, length);
            }
        }
        self.frame.resize(self.length.unwrap_or(self.frame.len()), 0);
        self.frame
    }

    fn internet(&self) -> (usize, usize) {
        self.internet.expect("a header of IP before this word")
    }

    fn set16(&mut self, at: usize, value: usize) {
        self.frame[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
    }
}

fn or<'t>(text: &'t str, default: &'t str) -> &'t str {
    if text.is_empty() { default } else { text }
}

fn number(text: &str) -> usize {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| usize::from_str_radix(hex, 16));
    parsed.unwrap_or_else(|_| panic!("'{text}' is no number"))
}

/// The flags of TCP by their first letters; `0` for none.
fn flags(text: &str) -> u8 {
    let names = "FSRPAUEC";
    text.chars().filter_map(|letter| names.find(letter)).fold(0, |flags, bit| flags | 1 << bit)
}
