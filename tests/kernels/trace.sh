# `staunch kernel trace` while a peer asks, in two modes; what it says where it cannot trace; and what happens
# when the command is ended, or the module unloaded, while it records.
umask 022
mkdir www; echo hello > www/a.txt; head -c 400000 /dev/zero > www/big.bin
ask() {
	while :; do
		printf 'GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' |
			nc 127.0.0.1 80 > /dev/null
	done
}
load() { insmod /modules/khttpd.ko root=$(pwd)/www listen=127.0.0.1:80 "$@"; }
told() { text=$("$@" 2>&1); echo "told: $? $text"; }
T=/sys/kernel/tracing
# The settings. A size of the buffer counts by pages of 4080 bytes, for the kernel rounds it up to whole ones.
state() {
	for name in current_tracer tracing_on set_event set_graph_function options/sleep-time; do
		cut -d ' ' -f 1 $T/$name
	done
	kib=$(sed 's/^.*(expanded: \([0-9]*\)).*/\1/' $T/buffer_size_kb)
	echo $(((kib * 1024 + 4079) / 4080))
	ls $T/instances
}
# Begins to trace, and waits until events are recorded: the scheduler's is switched on last.
begin() {
	staunch kernel trace --seconds 600 --json > said & tracing=$!
	while ! grep -qs 1 $T/instances/staunch-$tracing/events/sched/sched_switch/enable; do sleep 0.1; done
}

told staunch kernel trace
load mode=softirq
told staunch kernel trace
mount -t tracefs tracefs $T
told setpriv --reuid 65534 --regid 65534 --clear-groups staunch kernel trace
chmod 755 $T; chmod 644 $T/current_tracer
told setpriv --reuid 65534 --regid 65534 --clear-groups staunch kernel trace
before=$(state)
ask & asking=$!
echo "softirq: $(staunch kernel trace --json --html page.html)"
grep -c '<svg class="bars"' page.html
[ "$before" = "$(state)" ] && echo "all is as before"
begin
kill -TERM $tracing; wait $tracing; echo "ended: $?"
echo "signal: $(cat said)"
begin
kill $asking; wait $asking 2>/dev/null
rmmod khttpd && echo "unloaded"
kill -TERM $tracing; wait $tracing; echo "ended: $?"
echo "without: $(cat said)"
[ "$before" = "$(state)" ] && echo "all is as before, again"

load mode=kthread
ask & asking=$!
# Of one function alone: tracing every one of them would take most of the test's time.
echo wake_up_process > $T/set_ftrace_filter
echo function > $T/current_tracer
echo "kthread: $(staunch kernel trace --json --seconds 2)"
echo nop > $T/current_tracer
echo > $T/set_ftrace_filter
echo khttpd:khttpd_hit > $T/set_event
echo "event: $(staunch kernel trace --json --seconds 2)"
echo > $T/set_event
echo khttpd_serve > $T/set_graph_function
staunch kernel trace --seconds 3
cat $T/set_graph_function
kill $asking; wait $asking 2>/dev/null
rmmod khttpd && echo "unloaded"
