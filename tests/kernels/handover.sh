# Connections that khttpd hands over: to a process that answers, to none, to one that does not take them, to
# one that dies. `handover` is tests/kernels/handover.c.
umask 022
here=$(pwd)
mkdir -p www
echo hello > www/a.txt
echo shadow > www/api

load() { insmod /modules/khttpd.ko root=$here/www listen=127.0.0.1:80 "$@"; }
# Sends what comes in, and shows the first line and the last of what comes.
send_piped() { timeout 60 nc 127.0.0.1 80 | tr -d '\r' | sed -n '1p;$p' | tr '\n' '|'; echo; }
# The same of the bytes that printf makes of the argument.
send() { printf "$1" | send_piped; }
get() { send "GET $1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"; }
post='POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc'
# The same in three pieces, the path cut within.
slowly() { { printf "GET $1"; sleep 0.3; printf "$2 HTTP/1.1\r\nHost: a\r\n"; sleep 0.3; printf 'Connection: close\r\n\r\n'; } | send_piped; }
# Starts the process and waits until it has the device.
begin() { rm -f said; handover "$@" > said & process=$!; while ! grep -q open said 2>/dev/null; do sleep 0.1; done; }
counts() { grep -E "^($1) " /sys/module/khttpd/parameters/counts | tr '\n' ' '; }
until_counts() { while ! grep -q "^$1$" /sys/module/khttpd/parameters/counts; do sleep 0.1; done; }

load && { echo "plain: $(send "$post")"; ls /dev/khttpd 2>/dev/null; rmmod khttpd; }
load hand_over=api 2>/dev/null || echo "no path: refused"
for mode in kthread wq ready softirq; do
	load mode=$mode hand_over=/api,/live/ || exit 1
	echo "$mode nobody: $(send "$post")"
	echo "$mode nobody, a file: $(get /a.txt)"
	begin answer 8
	echo "$mode body: $(send "$post")"
	for path in /api /api/x /live/x '/x/../%%61pi/y'; do echo "$mode $path: $(get $path)"; done
	for path in /apis /live /a.txt; do echo "$mode $path: $(get $path)"; done
	echo "$mode upgrade: $(send 'GET /a.txt HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n')"
	# What stands before it is answered here, and what is behind it is read there.
	echo "$mode behind: $(printf "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n$post" | timeout 60 nc 127.0.0.1 80 | tr -d '\r' | grep -E '^(hello|HTTP|POST|abc)' | tr '\n' '|')"
	echo "$mode slowly: $(slowly /a pi)"
	echo "$mode slowly, a file: $(slowly /a .txt)"
	wait $process
	cat said
	echo "$mode $(counts handed_over)"
	begin many
	echo "$mode many: $(get /api)"
	wait $process
	cat said
	# One that dies loses what it took, and what waits is told so.
	begin die
	echo "$mode died: $(get /api)"
	wait $process
	begin idle
	echo "$mode none took it: $(send "$post")"
	send "$post" > told & asked=$!
	until_counts 'connections 1'
	rmmod khttpd 2>/dev/null || echo "$mode is held"
	kill $process; wait $process 2>/dev/null; wait $asked
	echo "$mode nobody any more: $(cat told)"
	rmmod khttpd && echo "$mode unloaded"
done
