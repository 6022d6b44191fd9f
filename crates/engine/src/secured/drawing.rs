//! An answer on its way through a cipher: pieces of its container are sealed, one after the other.
//!
//! A drawing owns the container until the last piece was drawn, and the position that was reached. It must
//! never hold a sealed byte, or read a file that would make it wait.

use staunch_netio::{Ahead, FileRead, FileReader, Outgoing, Part, WarmedPart};
use staunch_tls::{Awake, Fault};

use crate::limits::{DRAWN_SLICES_MAX, PIECE_BYTES_MAX};

/// A container that is drawn from.
#[derive(Debug)]
pub(crate) struct Drawing {
    outgoing: Box<Outgoing>,
    position: DrawingPosition,
    /// What was read ahead of the file.
    ahead: Ahead,
}

/// How far a container was drawn.
#[derive(Debug, Clone, Copy, Default)]
struct DrawingPosition {
    /// The next part, and how much of it was drawn.
    part: usize,
    part_bytes: u64,
    /// Own bytes that were drawn.
    own_bytes: usize,
}

/// Why a drawing has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// There is more of it than was wanted.
    Enough,
    /// All of it was drawn.
    All,
    /// The next bytes of a file are not in memory.
    Cold,
    /// A file cannot be read, or the key is worn out: the connection has to end.
    Failed,
}

/// The reader of files and the memory that it reads to: one per worker, lent to each drawing.
#[derive(Debug, Default)]
pub(crate) struct FileInput {
    /// Where pieces of files are read to.
    scratch: Vec<u8>,
    /// `None` where no file is ever sent.
    pub(crate) reader: Option<FileReader>,
}

impl FileInput {
    /// Gives memory back.
    pub(crate) fn shrink(&mut self) {
        self.scratch = Vec::new();
    }
}

impl Drawing {
    pub(crate) fn new(outgoing: Box<Outgoing>) -> Self {
        Self { outgoing, position: DrawingPosition::default(), ahead: Ahead::default() }
    }

    /// The container, drawn or not.
    pub(crate) fn into_outgoing(self) -> Box<Outgoing> {
        self.outgoing
    }

    /// Memory of the container.
    pub(crate) fn held_bytes(&self) -> usize {
        self.outgoing.held_bytes() + self.ahead.held_bytes()
    }

    /// Seals the next bytes, so many at most, into `output`.
    pub(crate) fn draw(
        &mut self,
        awake: &mut Awake,
        file_input: &mut FileInput,
        bytes_max: usize,
        output: &mut Vec<u8>,
    ) -> Drawn {
        let mut room = bytes_max;
        loop {
            match self.draw_slices(awake, file_input, &mut room, output) {
                Ok(Drawn::Enough) if room > 0 => {}
                Ok(drawn) => return drawn,
                Err(_) => return Drawn::Failed,
            }
        }
    }

    /// Seals some slices: own and shared bytes, and at their end a piece of a file.
    fn draw_slices(
        &mut self,
        awake: &mut Awake,
        file_input: &mut FileInput,
        room: &mut usize,
        output: &mut Vec<u8>,
    ) -> Result<Drawn, Fault> {
        let (own, parts) = self.outgoing.contents();
        let FileInput { scratch, reader } = file_input;
        let mut slices: [&[u8]; DRAWN_SLICES_MAX] = [&[]; DRAWN_SLICES_MAX];
        let mut count = 0;
        let mut position = self.position;
        let mut drawn = Drawn::Enough;
        while count < DRAWN_SLICES_MAX && *room > 0 {
            let slice = match parts.get(position.part) {
                Some(Part::Own(length)) => {
                    let left = *length - position.part_bytes as usize;
                    &own[position.own_bytes..position.own_bytes + left.min(*room)]
                }
                Some(Part::Shared(slice)) => {
                    let left = &slice.as_bytes()[position.part_bytes as usize..];
                    &left[..left.len().min(*room)]
                }
                Some(Part::File(part)) => {
                    scratch.resize(PIECE_BYTES_MAX, 0);
                    let wanted = (*room).min(PIECE_BYTES_MAX);
                    let read = reader.as_ref().map_or(FileRead::Failed(0), |reader| {
                        reader.read(part, position.part_bytes, &mut self.ahead, &mut scratch[..wanted])
                    });
                    match read {
                        FileRead::Read(length) => {
                            slices[count] = &scratch[..length];
                            count += 1;
                            let part = position.part;
                            position.go_on(parts, length);
                            if position.part > part {
                                self.ahead.forget();
                            }
                            *room -= length;
                        }
                        FileRead::Cold => drawn = Drawn::Cold,
                        FileRead::Failed(_) => drawn = Drawn::Failed,
                    }
                    break;
                }
                None => &own[position.own_bytes..][..(own.len() - position.own_bytes).min(*room)],
            };
            if slice.is_empty() && parts.get(position.part).is_none() {
                break;
            }
            slices[count] = slice;
            count += 1;
            position.go_on(parts, slice.len());
            *room -= slice.len();
        }
        let is_all = position.part >= parts.len() && position.own_bytes == own.len();
        awake.seal(&slices[..count], output)?;
        self.position = position;
        Ok(if is_all { Drawn::All } else { drawn })
    }

    /// Has the bytes read ahead for which it stopped; the token comes out of the reader then. `false`: nobody
    /// reads them, and it is to be tried again.
    pub(crate) fn warm(&self, file_input: &FileInput, token: u64) -> bool {
        let (_, parts) = self.outgoing.contents();
        let Some(Part::File(part)) = parts.get(self.position.part) else { return false };
        let warm = |reader: &FileReader| reader.warm(part, self.position.part_bytes, &self.ahead, token);
        file_input.reader.as_ref().is_some_and(warm)
    }

    /// What it waits for was read ahead.
    pub(crate) fn note_warmed(&mut self, warmed: WarmedPart) {
        self.ahead.note(warmed);
    }
}

impl DrawingPosition {
    /// So many bytes of the present part were drawn.
    fn go_on(&mut self, parts: &[Part], bytes: usize) {
        let length = match parts.get(self.part) {
            Some(Part::Own(length)) => *length as u64,
            Some(Part::Shared(slice)) => (slice.end - slice.start) as u64,
            Some(Part::File(part)) => part.length_bytes,
            None => u64::MAX,
        };
        if matches!(parts.get(self.part), Some(Part::Own(_)) | None) {
            self.own_bytes += bytes;
        }
        self.part_bytes += bytes as u64;
        if self.part_bytes >= length {
            (self.part, self.part_bytes) = (self.part + 1, 0);
        }
    }
}
