//! khttpd in the kernel of this machine: loaded for a tree, unloaded again.
//!
//! It must only be used in a machine that was made for it (`cargo xtask guest`): a fault ends the machine.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::conversation::Conversation;

/// Where the guest has the module.
const FILE: &str = "/modules/khttpd.ko";
/// Where it listens: the machine is its own.
const PORT: u16 = 8081;

/// The loaded module. It is unloaded when this is dropped.
#[derive(Debug)]
pub struct Loaded {
    address: SocketAddr,
}

impl Loaded {
    /// Loads the module for a served folder, in one of its modes, with those options that it has.
    ///
    /// # Errors
    /// What `insmod` says.
    pub fn with(root: &Path, mode: &str, options: &[String]) -> Result<Self, String> {
        let address = SocketAddr::from(([127, 0, 0, 1], PORT));
        let listing = options.windows(2).any(|pair| pair == ["--listing", "on"]);
        let output = Command::new("insmod")
            .arg(FILE)
            .arg(format!("root={}", root.display()))
            .arg(format!("listen={address}"))
            .arg(format!("mode={mode}"))
            .arg(format!("listing={}", u8::from(listing)))
            .output()
            .map_err(|error| format!("insmod: {error}"))?;
        if !output.status.success() {
            return Err(format!("insmod: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(Self { address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a conversation needs that khttpd has not, if anything.
    pub fn lacks(conversation: &Conversation) -> Option<&'static str> {
        if !conversation.settings.is_empty() {
            return Some("settings");
        }
        let listing_only = conversation.options.chunks(2).all(|pair| pair[0] == "--listing");
        if !listing_only {
            return Some("options");
        }
        LACKING.iter().find(|(_, names)| names.contains(&conversation.name.as_str())).map(|(lack, _)| *lack)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let ended = Command::new("rmmod").arg("khttpd").status();
        assert!(ended.is_ok_and(|status| status.success()), "khttpd cannot be unloaded");
    }
}

/// Conversations about what khttpd has not, by what that is.
const LACKING: &[(&str, &[&str])] = &[
    (
        "JSON",
        &[
            "b00036-listing-json-by-accept",
            "b00037-listing-json-by-query",
            "b00038-listing-hides",
            "b00040-listing-sorted",
            "c00223-problems-in-json",
        ],
    ),
    // A listing is streamed while it is made.
    ("the length of a listing", &["b00039-listing-head"]),
    (
        "several ranges",
        &[
            "c00030-range-unsatisfiable",
            "c00035-range-multiple",
            "c00036-range-multiple-in-any-order",
            "c00037-range-one-of-two",
            "c00045-range-multiple-of-a-big-file",
        ],
    ),
    (
        "encodings other than gzip, and those that stand beside the file",
        &[
            "c00052-encoding-brotli",
            "c00053-encoding-zstd",
            "c00054-side-files",
            "c00056-side-file-too-old",
            "c00057-encoding-preference",
            "c00058-encoding-of-quality-zero",
            "c00059-encoding-star",
            "c00060-encoding-all-forbidden",
            "c00061-identity-preferred",
            "c00062-encoding-unknown",
            "c00063-encoding-names-in-any-case",
            "c00064-encoding-in-two-lines",
            "c00067-range-of-an-encoding",
            "c00068-tags-of-encodings",
            "c00106-side-file-appears",
        ],
    ),
];
