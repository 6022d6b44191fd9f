#!/bin/sh
# Fetches from the server at $1 with curl and prints a verdict in JSON.
url=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

verdict() { if "$@"; then echo true; else echo false; fi; }

html() {
    curl -sS -o "$folder/page" -D "$folder/head" "$url/page.html" &&
        [ "$(wc -c < "$folder/page")" -eq 7200 ] && grep -qi '^content-type: text/html; charset=utf-8' "$folder/head"
}
head_only() {
    curl -sS -I "$url/page.html" > "$folder/only" && grep -qi '^content-length: 7200' "$folder/only"
}
range() {
    [ "$(curl -sS -r 7-11 -w '%{http_code}' "$url/a.txt")" = "world206" ]
}
not_modified() {
    tag=$(sed -n 's/^[Ee][Tt]ag: \(.*\)\r$/\1/p' "$folder/head")
    [ -n "$tag" ] && [ "$(curl -sS -o /dev/null -w '%{http_code}' -H "If-None-Match: $tag" "$url/page.html")" = 304 ]
}
gzip_body() {
    curl -sS --compressed -H 'Accept-Encoding: gzip' -o "$folder/unpacked" -D "$folder/packed" "$url/page.html" &&
        grep -qi '^content-encoding: gzip' "$folder/packed" && cmp -s "$folder/page" "$folder/unpacked"
}
reuse() {
    [ "$(curl -sS -o /dev/null -o /dev/null -w '%{num_connects}' "$url/a.txt" "$url/page.html")" = 10 ]
}

html=$(verdict html)
head=$(verdict head_only)
range=$(verdict range)
not_modified=$(verdict not_modified)
gzip=$(verdict gzip_body)
reuse=$(verdict reuse)
echo "{\"client\": \"curl\", \"html\": $html, \"head\": $head, \"range\": $range, \"not_modified\": $not_modified," \
    "\"gzip\": $gzip, \"reuse\": $reuse}"
