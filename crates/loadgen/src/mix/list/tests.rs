//! Tables of lists, right and wrong.

use super::*;

fn server() -> Url {
    "http://h:8080/ignored".parse().expect("a URL")
}

/// Weight, target and length of each entry.
fn entries(plan: &MixPlan) -> Vec<(f64, &str, Option<u64>)> {
    let entry = |entry: &'_ MixEntry| match entry.check.body {
        BodyCheck::Length(length_bytes) => Some(length_bytes),
        _ => None,
    };
    plan.entries.iter().map(|it| (it.weight, it.request.target.as_str(), entry(it))).collect()
}

#[test]
fn a_list_with_everything_in_it() {
    let text = "# comment\n\n/a\n  2.5 /b?{{random 1 2}}x  \r\n/c\t350 #500\n#/not\nhttp://h:8080/d .5\n";
    let plan = MixPlan::from_list(text, "urls", Some(&server())).expect("a list");
    assert_eq!(
        entries(&plan),
        [(1.0, "/a", None), (2.5, "/b?{{random 1 2}}x", None), (350.0, "/c", Some(500)), (0.5, "/d", None)]
    );
    assert_eq!((plan.authority.as_str(), plan.choice, plan.keep_alive), ("h:8080", Choice::Weighted, true));
}

#[test]
fn without_weights_the_order_counts() {
    let plan = MixPlan::from_list("http://h/a\n/b\nh://", "urls", None).expect_err("a scheme");
    assert_eq!(
        plan.to_string(),
        "urls, line 3: `h` in `h://` is not a scheme that can be loaded: http and https are"
    );
    let plan = MixPlan::from_list("http://h/a{{{{\n/b", "urls", None).expect("a list");
    assert_eq!(entries(&plan), [(1.0, "/a{{{{", None), (1.0, "/b", None)]);
    assert_eq!((plan.authority.as_str(), plan.choice), ("h", Choice::InOrder));
}

#[test]
fn faults_name_the_line() {
    let cases = [
        ("", "urls has no URL in it"),
        ("# nothing\n", "urls has no URL in it"),
        ("/a\n3\n", "urls, line 2: there is no path or URL"),
        ("/a /b", "urls, line 1: there is more than one target"),
        ("1 /a 2", "urls, line 1: there is more than one weight"),
        ("/a #1 #2", "urls, line 1: there is more than one size"),
        ("/a #x", "urls, line 1: `#x` is not a size in bytes, written like `#500`"),
        ("0 /a", "urls, line 1: the weight 0 is not above 0"),
        (
            "-1 /a",
            "urls, line 1: `-1` is neither a weight nor a target: a path begins with `/`, a URL with `http://`",
        ),
        (
            "inf /a",
            "urls, line 1: `inf` is neither a weight nor a target: a path begins with `/`, a URL with `http://`",
        ),
        (
            "\nindex.html",
            "urls, line 2: `index.html` is neither a weight nor a target: a path begins with `/`, a URL with `http://`",
        ),
        ("http://other/a", "urls, line 1: `http://other/a` is on other, the others are on h:8080"),
        ("/a#b", "urls, line 1: `/a#b`: what follows `#` is never sent to a server: leave it out"),
        ("https://h:8080/", "urls, line 1: `https://h:8080/` is on https://h:8080, the others are on h:8080"),
        (
            "/{{serial",
            "urls, line 1: the path, character 2: `{{` is not closed by `}}`; two braces that are meant are \
             written `{{{{`",
        ),
    ];
    for (text, sentence) in cases {
        let fault = MixPlan::from_list(text, "urls", Some(&server())).expect_err(text);
        assert_eq!(fault.to_string(), sentence);
    }
    let fault = MixPlan::from_list("/a", "urls", None).expect_err("no server");
    assert_eq!(fault.to_string(), "urls has only paths: give a URL as well, or whole URLs in the list");
}

#[test]
fn lists_in_files() {
    let path = std::env::temp_dir().join(format!("staunch-list-{}", std::process::id()));
    fs::write(&path, "/a\n/b").expect("the file can be written");
    let plan = MixPlan::from_file(&path, Some(&server())).expect("a list");
    assert_eq!(plan.entries.len(), 2);
    fs::write(&path, b"/\xff").expect("the file can be written");
    let fault = MixPlan::from_file(&path, Some(&server())).expect_err("not UTF-8");
    assert_eq!(fault.to_string(), format!("{} is not text in UTF-8", path.display()));
    fs::remove_file(&path).expect("the file can be removed");
    let fault = MixPlan::from_file(&path, None).expect_err("no file");
    assert_eq!(fault.to_string(), format!("{}: No such file or directory (os error 2)", path.display()));
}
