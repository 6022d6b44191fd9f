//! Makes the forms of an update.
//!
//! It owns the only compressors, which start anew with each update, so that every reader can join at any one.
//! It must never be a worker's: the hub has one.

use std::fmt::Write as _;

use staunch_protocol::event_stream::EventFrame;
use staunch_protocol::websocket::{Deflater, deflate_message};

use crate::centrifugo::Language;
use crate::form::{Compression, Form, FormSet, Shape, append_raw_frame, append_stored_blocks};
use crate::json_text::{append_value, base64, quoted};
use crate::letter::Made;
use crate::limits::COMPRESSED_BYTES_MIN;
use crate::update::{Update, Value};
use crate::version::{Epoch, Version};

/// Levels at which most of the saving is had: what is sent to many may cost something once.
const DEFLATE_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 6;

/// The compressors, and what they did.
pub struct Encoder {
    deflater: Deflater,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    compressions: u64,
}

impl Default for Encoder {
    fn default() -> Self {
        // Without memory for a compressor frames are stored, which every reader understands as well.
        let zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
        Self { deflater: Deflater::new(DEFLATE_LEVEL), zstd, compressions: 0 }
    }
}

impl Encoder {
    /// How often something was compressed since the start.
    pub fn compressions(&self) -> u64 {
        self.compressions
    }

    /// Makes an update in the given forms. What two of them share is made and compressed once.
    pub(crate) fn make(&mut self, epoch: Epoch, update: &Update, forms: FormSet) -> Made {
        let mut made = Vec::new();
        for shape in [Shape::Bare, Shape::Enveloped, Shape::Patch] {
            // Where there is no patch, a reader of patches gets what the others get.
            if shape == Shape::Patch && update.patch.is_none() {
                continue;
            }
            let wanted = |form: &Form| form.shape() == shape;
            for language in [None, Some(Language::Json), Some(Language::Protobuf)] {
                let speaks = |form: &Form| form.transport().language() == language;
                let forms: Vec<Form> = forms.iter().filter(wanted).filter(speaks).collect();
                if !forms.is_empty() {
                    let payload = match language {
                        None => event(epoch, update, shape),
                        Some(language) => message(language, update, shape),
                    };
                    let is_text = !matches!((shape, &update.value), (Shape::Bare, Value::Binary(_)));
                    self.make_of_payload(&payload, is_text, &forms, &mut made);
                }
            }
        }
        made.into()
    }

    fn make_of_payload(
        &mut self,
        payload: &[u8],
        is_text: bool,
        forms: &[Form],
        made: &mut Vec<(Form, crate::update::Bytes)>,
    ) {
        for compression in [Compression::None, Compression::Blocks, Compression::Frames] {
            let mut coded: Option<(Vec<u8>, bool)> = None;
            for &form in forms.iter().filter(|form| form.compression() == compression) {
                let is_socket = form.transport().language().is_some();
                let (coded, compressed) =
                    coded.get_or_insert_with(|| self.compress(payload, compression, is_socket));
                made.push((form, form.surround(coded, *compressed && is_socket, is_text)));
            }
        }
    }

    /// The payload in a coding, and whether it was compressed: short ones, and those that would become
    /// longer, are stored.
    fn compress(&mut self, payload: &[u8], compression: Compression, is_socket: bool) -> (Vec<u8>, bool) {
        let mut coded = Vec::new();
        let worthwhile = compression != Compression::None && payload.len() >= COMPRESSED_BYTES_MIN;
        if worthwhile {
            self.compressions += 1;
            match compression {
                Compression::Blocks if is_socket => deflate_message(&mut self.deflater, payload, &mut coded),
                Compression::Blocks => self.deflater.append_blocks(payload, &mut coded),
                _ => {
                    coded =
                        self.zstd.as_mut().and_then(|zstd| zstd.compress(payload).ok()).unwrap_or_default()
                }
            }
            if !coded.is_empty() && coded.len() < payload.len() {
                return (coded, true);
            }
            coded.clear();
        }
        match compression {
            Compression::Blocks if !is_socket => append_stored_blocks(payload, &mut coded),
            Compression::Frames => append_raw_frame(payload, &mut coded),
            _ => coded.extend_from_slice(payload),
        }
        (coded, false)
    }
}

/// An event of a stream.
fn event(epoch: Epoch, update: &Update, shape: Shape) -> Vec<u8> {
    let version = format!("#{}", Version { epoch, number: update.number });
    let data = match shape {
        Shape::Bare => bare_text(&update.value),
        Shape::Enveloped => envelope(update, false),
        Shape::Patch => envelope(update, true),
    };
    let gone = matches!((&update.value, shape), (Value::Gone, Shape::Bare)).then_some("deleted");
    let frame = EventFrame {
        id: Some(update.id.as_deref().unwrap_or(&version)),
        kind: update.kind.as_deref().or(gone),
        retry_ms: update.retry_ms,
        data: &data,
    };
    let mut output = Vec::with_capacity(data.len() + 64);
    let written = frame.append(&mut output);
    debug_assert!(written.is_ok(), "`id` and `type` were checked when they were published");
    output
}

/// A message of a WebSocket: the value alone, or a push of Centrifugo's protocol.
fn message(language: Language, update: &Update, shape: Shape) -> Vec<u8> {
    match (language, shape) {
        (Language::Json, Shape::Bare) => update.value.bytes().to_vec(),
        (_, Shape::Patch) => language.push(update, update.patch.as_deref()),
        _ => language.push(update, None),
    }
}

/// `{"topic":NAME,"data":VALUE}`, or `{"topic":NAME,"patch":PATCH}`.
fn envelope(update: &Update, as_patch: bool) -> String {
    let mut text = format!("{{\"topic\":{},", quoted(update.topic().as_str()));
    match &update.patch {
        Some(patch) if as_patch => {
            text.push_str("\"patch\":");
            text.push_str(&String::from_utf8_lossy(patch));
        }
        _ => {
            text.push_str("\"data\":");
            if let Some(coded) = append_value(&update.value, &mut text) {
                let _ = write!(text, ",\"{coded}\":true");
            }
        }
    }
    text.push('}');
    text
}

fn bare_text(value: &Value) -> String {
    match value {
        Value::Binary(bytes) => base64(bytes),
        other => String::from_utf8_lossy(other.bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests;
