//! The gate as a part: put up before the process is confined, taken off at the end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use staunch_config::Config;
use staunch_program::Failure;

use crate::gate::{ServedGate, WorkingGate};
use crate::part::{BeforeBinding, Part, Surroundings};

/// The gate, by how far it is.
#[derive(Default)]
pub(super) struct GatePart(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Down,
    Standing(Box<ServedGate>),
    Working(WorkingGate),
}

impl GatePart {
    /// A gate, if one is asked for. A process that takes over was born confined, and finds that of the one
    /// before it on the interface: it goes without, and says so.
    pub(super) fn open(opening: &BeforeBinding<'_>) -> Option<Self> {
        let is_wanted = !opening.config.process.gate.is_empty();
        if is_wanted && opening.takes_over {
            (opening.notice)(
                "gate: an upgraded server cannot put it up again, it ends with the process before this \
                 one; start the server anew, or run `staunch gate` beside it",
            );
        }
        (is_wanted && !opening.takes_over).then(Self::default)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part for GatePart {
    fn bound(&self, around: &Surroundings<'_>) -> Result<(), Failure> {
        let addresses = [around.plain, around.secured].concat();
        let gate = ServedGate::put_up(&around.config.process.gate, &addresses, around.notice)?;
        *self.state() = State::Standing(Box::new(gate));
        Ok(())
    }

    fn describe(&self, _config: &Config) -> Vec<String> {
        let state = self.state();
        let words = match &*state {
            State::Down => return Vec::new(),
            State::Standing(gate) => &gate.words,
            State::Working(gate) => &gate.words,
        };
        vec![format!("  gate         {words}")]
    }

    fn start(&self, _around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let mut state = self.state();
        if let State::Standing(gate) = std::mem::take(&mut *state) {
            *state = State::Working(gate.run()?);
        }
        Ok(Vec::new())
    }

    fn end(&self) {
        if let State::Working(gate) = std::mem::take(&mut *self.state()) {
            gate.take_down();
        }
    }

    fn metrics(&self, text: &mut String) {
        if let State::Working(gate) = &*self.state() {
            text.push_str(&gate.metrics());
        }
    }
}
