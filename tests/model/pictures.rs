//! Plots and pages: what is in them, what a browser says of them, and that those of the document are what its
//! commands make.

use std::fs;

use crate::chromium::{browser, pictures, repository};
use crate::command::{Folder, HOST, made_up, model};

fn made(arguments: &[&str]) {
    let finished = model(arguments);
    assert_eq!(finished.status.code(), Some(0), "{arguments:?}: {}", finished.stderr);
}

#[test]
fn plots_have_a_line_for_each_side_and_points_for_what_was_measured() {
    let folder = Folder::new();
    let (plot, fit) = (folder.at("plot.svg"), folder.at("fit.svg"));
    made(&[&["plot", "--svg", &plot, "--title", "<A & B>"], &HOST[..]].concat());
    let svg = folder.read("plot.svg");
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("&lt;A &amp; B&gt;") && !svg.contains("<A"));
    for class in ["line dashed late", "line timed_out", "line in_time"] {
        // Once in the legend, once in the plot.
        assert_eq!(svg.matches(&format!("class=\"{class}\"")).count(), 2, "{class}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<circle"));
    let file = folder.write("overload.json", &made_up());
    made(&["fit", &file, "--over", "requests", "--first", "6", "--patience", "1s", "--svg", &fit]);
    let svg = folder.read("fit.svg");
    for class in ["dot timed_out", "dot in_time"] {
        assert_eq!(svg.matches(&format!("class=\"{class}\"")).count(), 1 + 9, "{class}");
    }
    assert!(svg.contains("made up: the model fitted on the first 6 of 9 points"));
}

#[test]
fn a_picture_can_go_to_standard_output_alone() {
    let svg = model(&[&["plot", "--over", "flood", "--svg", "-"], &HOST[..]].concat()).stdout;
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
    let folder = Folder::new();
    let file = folder.write("overload.json", &made_up());
    let page = model(&["fit", &file, "--patience", "1s", "--backlog", "128", "--html", "-"]).stdout;
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
}

#[test]
fn pages_stand_in_a_browser() {
    let Some(browser) = browser() else { return };
    let folder = pictures("browser-model");
    fs::create_dir_all(&folder).expect("a folder for pages");
    let at = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let measured = at("overload.json");
    fs::write(&measured, made_up()).expect("a file");
    let pages = ["fit.html", "requests.html", "flood.html", "even.html"].map(at);
    let fit = ["fit", &measured, "--patience", "1s", "--backlog", "128", "--error-max", "1000%"];
    made(&[&fit[..], &["--html", &pages[0]]].concat());
    made(&[&["plot", "--html", &pages[1]], &HOST[..]].concat());
    made(&[&["plot", "--over", "flood", "--html", &pages[2]], &HOST[..]].concat());
    made(&[&["plot", "--even", "--to", "9k/s", "--html", &pages[3]], &HOST[..]].concat());
    let words: Vec<&str> =
        [folder.to_str().expect("a path")].into_iter().chain(pages.iter().map(String::as_str)).collect();
    let verdict = browser.run("report.mjs", &words);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stderr));
}

/// Words of a command as a shell takes them apart: blanks part them, but not between quotes.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let parts = quoted.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    parts.collect()
}

#[test]
fn the_pictures_of_the_document_are_what_its_commands_make() {
    let document = fs::read_to_string(repository().join("docs/overload.md")).expect("the document");
    let shown: Vec<&str> = document
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|to| to.ends_with(".svg"))
        .collect();
    let folder = Folder::new();
    let mut drawn = Vec::new();
    // A backslash continues a line.
    for line in document
        .replace("\\\n", " ")
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("staunch model") && line.contains("--svg docs/"))
    {
        let mut words = words(line.strip_prefix("staunch model ").expect("the command"));
        let picture =
            words.pop().and_then(|path| Some(path.strip_prefix("docs/")?.to_owned())).expect("a picture");
        words.push(folder.at(&picture));
        for word in words.iter_mut().filter(|word| word.starts_with("tests/")) {
            *word = repository().join(&*word).to_str().expect("a path").to_owned();
        }
        made(&words.iter().map(String::as_str).collect::<Vec<&str>>());
        let kept = fs::read_to_string(repository().join("docs").join(&picture)).expect("a picture");
        assert!(kept == folder.read(&picture), "docs/{picture} is not what this makes: {line}");
        drawn.push(picture);
    }
    assert_eq!(drawn, shown, "every picture has its command");
}
