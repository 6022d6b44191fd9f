//! Findings for programs.
//!
//! It owns the outer shape of the document. It must never leave a finding out.

use serde::Serialize;

use crate::examine::Summary;
use crate::finding::Finding;

#[derive(Serialize)]
struct Document<'a> {
    findings: &'a [Finding],
    summary: Summary,
}

/// `{"findings": [...], "summary": {...}}` with line breaks.
///
/// # Errors
/// None that could happen to text and numbers; the signature is that of the library.
pub fn json(findings: &[Finding]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&Document { findings, summary: Summary::of(findings) })
}
