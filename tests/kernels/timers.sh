# Deadlines of khttpd and kecho, kept in each of three ways: a connection that is silent ends, one that asks
# meanwhile lives, and both modules go while connections are open. What is said is compared in timers.rs.
umask 022
mkdir www; echo hello > www/a.txt
counted() { sed -n "s/^$2 //p" /sys/module/$1/parameters/counts; }
request() { printf 'GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n'; }
# Open connections read from here, and never come to an end of it.
mkfifo in; exec 3<>in
# Runs what a peer says, and waits until the server has ended the connection.
talk() {
	nc 127.0.0.1 80 < in > out & peer=$!
	"$@" >&3
	wait $peer
}
half() { printf 'GET / HTT'; }
often() { for i in 1 2 3 4 5 6 7 8; do request; sleep 3; done; }
hold() { nc 127.0.0.1 "$1" < in > /dev/null & }

insmod /modules/khttpd.ko root=$(pwd)/www timers=odd 2>/dev/null || echo "khttpd refuses: odd"
insmod /modules/kecho.ko timers=odd 2>/dev/null || echo "kecho refuses: odd"
dmesg | sed -n 's/.*\(khttpd\|kecho\): timers=/told: \1 timers=/p' | sort -u
for timers in kernel heap wheel; do
	insmod /modules/khttpd.ko root=$(pwd)/www listen=127.0.0.1:80 timers=$timers head_ms=4000 idle_ms=9000 ||
		exit 1
	# No head, one that does not go on, silence after an answer, and requests that put the deadline off.
	talk true; echo "$timers silent: $(wc -c < out) bytes"
	talk half; echo "$timers half: $(head -n 1 out | tr -d '\r')"
	talk request; echo "$timers idle: $(grep -c hello out) answered"
	talk often; echo "$timers busy: $(grep -c hello out) answered"
	for i in 1 2 3 4 5; do hold 80; done
	until [ "$(counted khttpd accepted)" = 9 ]; do sleep 0.3; done
	rmmod khttpd && echo "$timers khttpd unloaded"
	for mode in kthread ready softirq; do
		insmod /modules/kecho.ko mode=$mode timers=$timers idle_s=1 || exit 1
		for i in 1 2 3; do hold 12345; done
		until [ "$(counted kecho accepted) $(counted kecho connections)" = "3 0" ]; do sleep 0.3; done
		echo "$timers $mode: $(counted kecho expired) expired"
		hold 12345
		until [ "$(counted kecho accepted)" = 4 ]; do sleep 0.3; done
		rmmod kecho && echo "$timers $mode unloaded"
	done
done
