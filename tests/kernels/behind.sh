# `staunch serve` behind khttpd: one site on one port, by the module of the machine and the server as shipped, by
# each of the `ways`. What each request says is compared in handover.rs.
umask 022
here=$(pwd)
mkdir -p www other
echo hello > www/a.txt
# Longer than what is copied into memory.
head -c 400000 /dev/zero | tr '\0' x > www/big.bin
token=0123456789abcdef0123456789abcdef

load() { insmod /modules/khttpd.ko root=$here/www listen=127.0.0.1:80 "$@"; }
# Sends a request, and prints the first line and the last of the answer.
send() { printf "$1" | timeout 60 nc 127.0.0.1 80 | tr -d '\r' | sed -n '1p;$p' | tr '\n' '|'; echo; }
get() { send "GET $1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"; }
put() { send "PUT /topics/$1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer $token\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"; }
serve() { staunch serve www --listen 127.0.0.1:8080 --behind-khttpd --live on --publish-token $token --status /status.json --pid-file $here/pid "$@"; }
counts() { grep -E "^$1 " /sys/module/khttpd/parameters/counts; }

refused() { serve "$@" 2>&1 | grep -o 'behind_khttpd: .*\|io: .*' | sed "s|$here|HERE|g"; }
echo "not loaded: $(refused)"
load
echo "without hand_over: $(refused)"
rmmod khttpd
insmod /modules/khttpd.ko root=$here/other listen=127.0.0.1:80 hand_over=
echo "another folder: $(refused)"
rmmod khttpd

# More connections at a time than there are slots, and rooms on the way to them: each is answered, if only by 503.
crowd() {
	rm -f crowd.*
	for i in $(seq 40); do put c > crowd.$i & putting="$putting $!"; done
	wait $putting; putting=
	grep -LE '^HTTP/1.1 (200|503) ' crowd.* | while read unanswered; do echo "$unanswered: $(cat $unanswered)" >&2; done
	cat crowd.* | grep -cE '^HTTP/1.1 (200|503) '
}

for way in $ways; do
	load hand_over=/live,/status.json,/big.bin || exit 1
	echo "$way nobody: $(put a)"
	serve --io $way --max-connections 16 --access-log $here/log > said 2>&1 &
	until [ -e pid ]; do sleep 0.1; done
	grep khttpd said
	echo "$way:$(grep -o ' engine  *[a-z_]*' said)"
	echo "$way a file: $(get /a.txt)"
	echo "$way a body: $(put a | cut -d '|' -f 1)"
	echo "$way a path: $(get /live/a)"
	echo "$way both: $(printf 'GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /live/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' | timeout 60 nc 127.0.0.1 80 | tr -d '\r' | grep -aE '^(HTTP|hello|abc)' | tr '\n' '|')"
	echo "$way large: $(printf 'GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' | timeout 60 nc 127.0.0.1 80 | tail -c 400000 | tr -d x | wc -c)"
	echo "$way crowd: $(crowd)"
	echo "$way $(counts handed_over)"
	until grep -q 'PUT /topics/c' log; do sleep 0.1; done
	echo "$way from $(cut -d ' ' -f 1 log | sort -u)"
	rm log

	# An upgrade: the new process opens the device again, and takes connections.
	first=$(cat pid)
	kill -USR2 $first
	until [ "$(cat pid 2>/dev/null)" != "$first" ] && [ -e pid ]; do sleep 0.1; done
	while kill -0 $first 2>/dev/null; do sleep 0.1; done
	echo "$way upgraded: $(put b | cut -d '|' -f 1)"

	# The server ends: no process has the device open, and the module can be unloaded.
	second=$(cat pid)
	kill $second
	while kill -0 $second 2>/dev/null; do sleep 0.1; done
	echo "$way nobody any more: $(put c)"
	rmmod khttpd && echo "$way unloaded"
done
