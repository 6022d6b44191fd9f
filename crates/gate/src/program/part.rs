//! A program of a loaded object, by its name.
//!
//! It must never load or attach one.

use aya::Ebpf;

use crate::fault::GateError;

/// A program of the object.
pub(super) fn program<'e, T>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut T, GateError>
where
    &'e mut T: TryFrom<&'e mut aya::programs::Program, Error = aya::programs::ProgramError>,
{
    let program = ebpf.program_mut(name);
    let program = program.ok_or_else(|| GateError::Kernel(format!("there is no program '{name}'")))?;
    program.try_into().map_err(|error| GateError::of_kernel(name, &error))
}
