# khttpd's trace points: counted over a known number of requests, silent while they are switched off, and no
# obstacle when the module is unloaded with a connection. `handover` is tests/kernels/handover.c.
umask 022
here=$(pwd)
mkdir www; echo hello > www/a.txt; head -c 400000 /dev/zero > www/big.bin
mkfifo nothing; exec 8<>nothing
mount -t tracefs tracefs /sys/kernel/tracing
mkdir /sys/kernel/tracing/instances/test
cd /sys/kernel/tracing/instances/test

load() { insmod /modules/khttpd.ko root=$here/www listen=127.0.0.1:80 "$@" || exit 1; }
send() { printf "$1" | timeout 60 nc 127.0.0.1 80 > /dev/null; }
count() { grep -c ": khttpd_$1" trace; }
until_counts() { while ! grep -q "^$1$" /sys/module/khttpd/parameters/counts; do sleep 0.1; done; }
last() { echo "GET $1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"; }
three="GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /no HTTP/1.1\r\nHost: a\r\n\r\n$(last /big.bin)"

for mode in kthread wq ready softirq; do
	load mode=$mode hand_over=/api
	while send "$three"; ! grep -q '^cache_hits [1-9]' /sys/module/khttpd/parameters/counts; do sleep 0.1; done
	until_counts 'connections 0'
	echo "$mode off: $(count '')"
	echo 1 > events/khttpd/enable
	for i in 1 2 3; do send "$three"; done
	send "$(last /$(printf %060d 0))"
	handover answer 1 > $here/said & process=$!
	while ! grep -q open $here/said; do sleep 0.1; done
	send "$(last /api)"
	wait $process; until_counts 'connections 0'
	for name in accept request hit miss expire close leave; do echo "$mode $name: $(count $name:)"; done
	[ $(count answer:) -ge 4 ] && [ $(count wake:) -ge 1 ] && echo "$mode answers and wakes"
	echo "$mode paths:$(grep ': khttpd_request:' trace | sed 's/.*path=//' | sort | uniq -c | tr -s ' \n' ' ')"
	# The first connection has the same name when it is accepted and when it is closed.
	first=$(grep -m 1 ': khttpd_accept:' trace | sed 's/.*connection=//')
	grep -m 1 ': khttpd_close:' trace | grep -q "connection=$first" && echo "$mode one name"
	echo 0 > events/khttpd/enable; echo > trace
	send "$three"; until_counts 'connections 0'
	echo "$mode off again: $(count '')"
	echo 1 > events/khttpd/enable
	timeout 60 nc 127.0.0.1 80 <&8 > /dev/null & idle=$!
	until_counts 'connections 1'
	rmmod khttpd && [ ! -e events/khttpd ] && echo "$mode unloaded"
	wait $idle
	echo > trace
done
load head_ms=100
echo 1 > events/khttpd/enable
timeout 60 nc 127.0.0.1 80 <&8 > /dev/null
echo "expired:$(grep ': khttpd_expire:' trace | sed 's/.*deadline=/ /' | tr -d '\n')"
rmmod khttpd
cd /; rmdir /sys/kernel/tracing/instances/test && echo "the instance is gone"
