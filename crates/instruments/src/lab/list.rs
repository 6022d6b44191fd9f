//! `staunch lab list`: what models there are.
//!
//! It must never say anything of a model that does not stand in its file.

use std::io::{self, Write as _};

use clap::Args;
use staunch_lab::{MODELS, Model, PoolUse};

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Show only these models
    #[arg(value_name = "MODEL", value_parser = super::serve::names())]
    models: Vec<String>,

    /// Print the names alone
    #[arg(long)]
    names: bool,
}

/// Prints the list.
///
/// # Errors
/// Never: nobody reading is no reason to fail.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let is_wanted = |model: &&&Model| {
        arguments.models.is_empty() || arguments.models.iter().any(|name| name == model.name)
    };
    let mut text = String::new();
    for model in MODELS.iter().filter(is_wanted) {
        if arguments.names {
            text += &format!("{}\n", model.name);
        } else {
            text += &describe(model);
        }
    }
    let _ = io::stdout().lock().write_all(text.as_bytes());
    Ok(())
}

/// Name and title, lesson, remarks, picture.
fn describe(model: &Model) -> String {
    let mut text = format!("{}: {}\n  {}\n", model.name, model.title, model.lesson);
    let mut remarks = Vec::new();
    if let Some(row) = model.paper_row {
        remarks.push(format!("model {row} of Dong (2012)"));
    }
    match model.pool {
        PoolUse::None => {}
        PoolUse::Processes => remarks.push("--pool says how many processes".into()),
        PoolUse::Threads => remarks.push("--pool says how many threads".into()),
    }
    if !model.speaks_paper {
        remarks.push("speaks HTTP only".into());
    }
    if !remarks.is_empty() {
        text += &format!("  ({})\n", remarks.join("; "));
    }
    text.push('\n');
    for line in model.picture_lines() {
        text += &format!("      {line}\n");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_described() {
        let prefork = Model::find(MODELS, "prefork").expect("a model");
        let text = describe(prefork);
        let start = "prefork: Pre-forked processes, each accepts\n  Processes made in advance";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("  (model 3 of Dong (2012); --pool says how many processes)\n"), "{text}");
        let indent = " ".repeat("      clients ---> [kernel's queue] ---> ".len());
        assert!(
            text.contains(&format!("\n{indent} |-- child: accept -> read -> write -> close --+\n")),
            "{text}"
        );
        let staunch = Model::find(MODELS, "staunch-uring").expect("a model");
        assert!(describe(staunch).contains("  (speaks HTTP only)\n"));
    }
}
