//! The listing as an HTML page that needs no script and no other file.
//!
//! Owns the words and the structure of the page; its look stands in `listing.css`. Never writes a byte of a
//! name that did not go through `escape`. All links are relative, so the page also works behind a proxy that
//! adds a prefix.

use super::date::rfc3339;
use super::entry::{Entry, Kind, Order, sorted};
use super::escape::{push_segment, push_text};

const STYLE: &str = include_str!("listing.css");

/// The page for the folder at `path`: the decoded path of the request, any bytes, with or without its
/// slashes. The page is UTF-8.
pub fn html(path: &[u8], entries: &[Entry], order: Order, descending: bool) -> Vec<u8> {
    let folders: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).collect();
    let mut page = Vec::with_capacity(4096 + 240 * entries.len());
    push_head(&mut page, &folders);
    push_path(&mut page, &folders);
    push_summary(&mut page, entries);
    push_column_heads(&mut page, order, descending);
    if !folders.is_empty() {
        push(&mut page, "<tr><th scope=\"row\"><a href=\"../\" class=\"up\">Parent folder</a></th>");
        push(&mut page, "<td></td><td></td></tr>\n");
    }
    for entry in sorted(entries, order, descending) {
        push_row(&mut page, entry);
    }
    push_foot(&mut page);
    page
}

fn push(page: &mut Vec<u8>, text: &str) {
    page.extend_from_slice(text.as_bytes());
}

fn push_head(page: &mut Vec<u8>, folders: &[&[u8]]) {
    push(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
    // A title holds text only, no elements, so the marks of unseen characters cannot stand in it.
    push_title(page, folders);
    push(page, "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    push(page, "<meta name=\"color-scheme\" content=\"light dark\">\n");
    // An icon of no bytes: a browser asks for none then.
    push(page, "<link rel=\"icon\" href=\"data:,\">\n");
    push(page, "<link rel=\"alternate\" type=\"application/json\" href=\"?json\">\n<style>\n");
    push(page, STYLE);
    push(page, "</style>\n</head>\n<body>\n<main>\n");
}

fn push_title(page: &mut Vec<u8>, folders: &[&[u8]]) {
    let mut marked = Vec::new();
    for folder in folders {
        push_text(&mut marked, folder);
        marked.push(b'/');
    }
    push(page, "/");
    // Names cannot bring `<` of their own: each one here opens or closes a mark.
    let mut inside = false;
    for byte in marked {
        match byte {
            b'<' => inside = true,
            b'>' => inside = false,
            _ if inside => {}
            _ => page.push(byte),
        }
    }
}

/// The way down from the root: each folder above is a link.
fn push_path(page: &mut Vec<u8>, folders: &[&[u8]]) {
    push(page, "<nav aria-label=\"Path\"><h1>");
    let Some((here, above)) = folders.split_last() else {
        push(page, "<a href=\"./\" aria-current=\"page\">Home</a></h1></nav>\n");
        return;
    };
    push_way_up(page, folders.len());
    push(page, "Home</a>");
    for (depth, folder) in above.iter().enumerate() {
        push(page, "<span>/</span>");
        push_way_up(page, folders.len() - 1 - depth);
        push_name(page, folder);
        push(page, "</a>");
    }
    push(page, "<span>/</span><a href=\"./\" aria-current=\"page\">");
    push_name(page, here);
    push(page, "</a></h1></nav>\n");
}

fn push_way_up(page: &mut Vec<u8>, levels: usize) {
    push(page, "<a href=\"");
    for _ in 0..levels {
        push(page, "../");
    }
    push(page, "\">");
}

/// A name, kept apart from the writing direction of what stands around it.
fn push_name(page: &mut Vec<u8>, name: &[u8]) {
    push(page, "<bdi>");
    push_text(page, name);
    push(page, "</bdi>");
}

fn push_summary(page: &mut Vec<u8>, entries: &[Entry]) {
    let files = entries.iter().filter(|entry| entry.kind == Kind::File);
    let (count, bytes) =
        files.fold((0, 0_u64), |(count, bytes), file| (count + 1, bytes.saturating_add(file.size_bytes)));
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let folders = entries.len() - count;
    let mut words = Vec::new();
    if folders > 0 {
        words.push(format!("{folders} folder{}", plural(folders)));
    }
    if count > 0 {
        words.push(format!("{count} file{}", plural(count)));
        words.push(human_size(bytes));
    }
    let text = if words.is_empty() { "This folder is empty.".to_owned() } else { words.join(" · ") };
    push(page, &format!("<p>{text}</p>\n"));
}

/// The heads of the columns are links that sort; the one that sorts now turns its order round.
fn push_column_heads(page: &mut Vec<u8>, order: Order, descending: bool) {
    push(page, "<table>\n<thead>\n<tr>");
    for column in Order::ALL {
        let current = column == order;
        let state = match (current, descending) {
            (false, _) => "",
            (true, false) => " aria-sort=\"ascending\"",
            (true, true) => " aria-sort=\"descending\"",
        };
        let turn = if current && !descending { "desc" } else { "asc" };
        let title = match column {
            Order::Name => "Name",
            Order::Size => "Size",
            Order::Time => "Modified (UTC)",
        };
        let word = column.word();
        push(
            page,
            &format!("<th scope=\"col\"{state}><a href=\"?sort={word}&amp;order={turn}\">{title}</a></th>"),
        );
    }
    push(page, "</tr>\n</thead>\n<tbody>\n");
}

fn push_row(page: &mut Vec<u8>, entry: &Entry) {
    let slash: &str = if entry.kind == Kind::Folder { "/" } else { "" };
    push(page, "<tr><th scope=\"row\"><a href=\"");
    push_segment(page, &entry.name);
    push(page, slash);
    push(page, "\">");
    push_name(page, &entry.name);
    push(page, slash);
    push(page, "</a></th>");
    match entry.kind {
        Kind::Folder => push(page, "<td></td>"),
        Kind::File => {
            let bytes = entry.size_bytes;
            push(page, &format!("<td title=\"{bytes} bytes\">{}</td>", human_size(bytes)));
        }
    }
    let time = rfc3339(entry.modified_unix_s);
    push(page, "<td><time datetime=\"");
    page.extend_from_slice(&time);
    push(page, "\">");
    page.extend_from_slice(&time[..10]);
    push(page, " ");
    page.extend_from_slice(&time[11..16]);
    push(page, "</time></td></tr>\n");
}

fn push_foot(page: &mut Vec<u8>) {
    push(page, "</tbody>\n</table>\n</main>\n");
    push(page, "<footer>staunch · <a href=\"?json\">as JSON</a></footer>\n");
    push(page, "</body>\n</html>\n");
}

/// A size as people read it: `999 B`, `1.5 KiB`, `12 MiB`; one decimal below ten.
fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut unit_bytes = 1024_u128;
    for unit in UNITS {
        let tenths = (u128::from(bytes) * 10 + unit_bytes / 2) / unit_bytes;
        let whole = (u128::from(bytes) + unit_bytes / 2) / unit_bytes;
        if tenths < 100 {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        if whole < 1024 {
            return format!("{whole} {unit}");
        }
        unit_bytes *= 1024;
    }
    unreachable!("2^64 bytes are 16 EiB")
}

#[cfg(test)]
mod tests {
    use super::human_size;

    #[test]
    fn sizes() {
        let table: [(u64, &str); 14] = [
            (0, "0 B"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10_188, "9.9 KiB"),
            (10_239, "10 KiB"),
            (10_240, "10 KiB"),
            (1_047_552, "1023 KiB"),
            (1_048_575, "1.0 MiB"),
            (1_048_576, "1.0 MiB"),
            (5_000_000, "4.8 MiB"),
            (1 << 40, "1.0 TiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (bytes, text) in table {
            assert_eq!(human_size(bytes), text, "{bytes}");
        }
    }
}
