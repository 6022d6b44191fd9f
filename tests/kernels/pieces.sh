# Answers that khttpd sends in pieces: the same bytes, by a call for the head and one for each line. A probe at
# tcp_sendmsg counts the calls, the one of the peer among them. What is said is compared in pieces.rs.
umask 022
T=/sys/kernel/tracing
mkdir -p www/listed
for i in $(seq 10); do echo x > www/listed/source-$i.c; done
printf 'one\ntwo\n\nfour' > www/lines
mount -t tracefs tracefs $T
echo 'p:sends tcp_sendmsg' > $T/kprobe_events && echo 1 > $T/events/kprobes/sends/enable || exit 1
load() { insmod /modules/khttpd.ko root=$(pwd)/www listen=127.0.0.1:80 listing=1 "$@"; }
sends() { awk '{ print $2 }' $T/kprobe_profile; }
ask() { printf 'GET /%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' $1 | nc 127.0.0.1 80; }
body() { sed '1,/^\r$/d'; }

load send=odd 2>/dev/null || echo "refused: odd"
load mode=softirq send=pieces 2>/dev/null || echo "refused: softirq"
dmesg | sed -n 's/.*khttpd: send=/told: send=/p'
for mode in kthread wq ready; do
	for send in whole pieces; do
		load mode=$mode send=$send || exit 1
		for name in lines listed/; do
			# The second one comes from the cache.
			ask $name > /dev/null
			before=$(sends)
			ask $name | body > $send
			calls=$(($(sends) - before))
			echo "$mode $send $name: $calls calls, $(grep -c '' $send) lines"
			# The page is the same, whoever sends it.
			[ $send = whole ] && cp whole kept-${name%/}
			cmp $send kept-${name%/}
		done
		rmmod khttpd && echo "$mode $send unloaded"
	done
done
