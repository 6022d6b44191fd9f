//! The page as a whole: what it must hold, and what must never get into it.
use super::*;
use crate::report::made_up;

/// Elements that need no end.
const ALONE: &[&str] = &["meta", "th", "td", "dt", "dd", "wbr", "!doctype"];

/// Checks that elements end in the order in which they began.
fn check_nesting(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in html.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match () {
            () if ALONE.contains(&name) || tag.ends_with('/') => {}
            () if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "<{tag}>"),
            () => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_page_needs_nothing_else() {
    let html = html(&made_up::overload());
    check_nesting(&html);
    for word in ["<script", "src=", "@import", "url(", "href=", "<link"] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn the_sentence_and_the_warnings_stand_before_the_figures() {
    let outcome = made_up::overload();
    let html = html(&outcome);
    let place = |words: &str| html.find(words).unwrap_or_else(|| panic!("{words} is missing"));
    let offered = words::unbroken(&words::count(outcome.counts().offered));
    assert!(place(&format!("Of {offered} requests offered")) < place("<strong>Warning:"));
    assert!(place("<strong>Warning:") < place("<table"));
    assert!(place("<span>--rate</span> <span>10k/s</span>") > place("How it was measured"));
}

#[test]
fn the_table_adds_up_or_says_that_it_does_not() {
    let mut outcome = made_up::overload();
    let right = html(&outcome);
    assert_eq!(right.matches("as offered</span>").count(), 2);
    outcome.lanes[0].counts.offered += 7;
    let wrong = html(&outcome);
    assert_eq!(wrong.matches("7 differ: a fault of the generator").count(), 1);
}

#[test]
fn every_plot_is_there_and_can_be_read_aloud() {
    let plain = html(&made_up::overload());
    let probed = html(&made_up::probed());
    let has = |html: &str, name: &str| {
        let (figure, words) = (format!("<figure id=\"{name}\">"), format!("<desc id=\"{name}-desc\">"));
        html.contains(&figure) && html.contains(&words)
    };
    for name in ["ends", "errors", "latency", "percentiles", "drift", "connections"] {
        assert!(has(&plain, name) && has(&probed, name), "{name}");
    }
    for name in ["cpu", "process", "queue", "drops", "memory"] {
        assert!(!has(&plain, name) && has(&probed, name), "{name}");
    }
    for html in [plain, probed] {
        assert!(!html.contains("NaN") && !html.contains("inf"));
    }
}

#[test]
fn curves_by_percentile_end_with_the_longest() {
    let document = Document::new(&made_up::overload());
    let plot = plots::percentiles(&document).expect("times were measured");
    for (class, longest) in
        [("latency", document.main.latency_ms.max), ("connect", document.main.connect_ms.max)]
    {
        let curve = plot.series.iter().find(|one| one.class == class).expect("a curve");
        let last = curve.values.iter().flatten().next_back().expect("a value");
        let longest = longest.expect("a longest time");
        assert!((last - longest).abs() <= longest * 1e-3, "{class}: {last} instead of {longest}");
    }
}

#[test]
fn a_closed_loop_has_no_drift() {
    let mut outcome = made_up::overload();
    outcome.lanes.iter_mut().for_each(|lane| lane.times.drift = crate::histogram::Histogram::default());
    let plot = plots::percentiles(&Document::new(&outcome)).expect("times were measured");
    assert!(plot.series.iter().all(|one| one.class != "drift"));
}

#[test]
fn a_picture_names_the_run_and_needs_nothing_else() {
    let mut outcome = made_up::overload();
    outcome.lanes[0].description = "open <loop>".to_owned();
    let picture = svg(&outcome);
    assert!(picture.contains(">open &lt;loop&gt;; ") && picture.contains("class=\"line latency\""));
    for word in ["<script", "href=", "@import", "url(", "NaN"] {
        assert!(!picture.contains(word), "{word}");
    }
    outcome.lanes.clear();
    assert!(svg(&outcome).contains(">Nothing was measured<"));
}

#[test]
fn every_class_of_a_series_has_a_colour() {
    let html = html(&made_up::probed());
    for path in html.split("<path class=\"").skip(1) {
        let classes = path.split('"').next().unwrap();
        for class in classes.split(' ') {
            assert!(page::whole("", "", "").contains(&format!(".{class} {{")), "{class}");
        }
    }
}

#[test]
fn words_from_outside_cannot_become_markup() {
    let evil = "<script>alert(\"x\")</script>'&";
    let mut outcome = made_up::overload();
    outcome.target = evil.to_owned();
    outcome.command = evil.to_owned();
    outcome.engine = evil.to_owned();
    outcome.warnings = vec![evil.to_owned()];
    outcome.lanes[0].name = evil.to_owned();
    outcome.lanes[0].description = evil.to_owned();
    let html = html(&outcome);
    check_nesting(&html);
    assert!(!html.contains("<script"));
    assert!(html.matches("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#39;&amp;").count() >= 6);
}

#[test]
fn a_run_in_which_nothing_happened_has_a_page() {
    let mut outcome = made_up::overload();
    outcome.lanes.clear();
    outcome.moments.clear();
    let html = html(&outcome);
    check_nesting(&html);
    assert!(html.contains("nothing was offered") && !html.contains("NaN") && !html.contains("inf"));
}
