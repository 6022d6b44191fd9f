# `staunch kernel trace --threads` while a peer opens connections: in mode kthread a thread is made for each, in
# mode wq a work item. What is said is compared in creation.rs.
umask 022
mkdir www; echo hello > www/a.txt
mount -t tracefs tracefs /sys/kernel/tracing
# The graph of functions is refused where somebody has set a filter, and so takes no time: it is traced elsewhere.
echo wake_up_process > /sys/kernel/tracing/set_ftrace_filter || exit 1
ask() {
	while :; do
		printf 'GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' | nc 127.0.0.1 80 > /dev/null
	done
}
for mode in kthread wq; do
	insmod /modules/khttpd.ko root=$(pwd)/www listen=127.0.0.1:80 mode=$mode || exit 1
	ask & asking=$!
	echo "$mode: $(staunch kernel trace --threads --seconds ${seconds:-4} --json --html $mode.html)"
	grep -o '<h2>[^<]*their [^<]*</h2>' $mode.html
	echo "without: $(staunch kernel trace --seconds 1 --json)"
	kill $asking; wait $asking 2>/dev/null
	rmmod khttpd && echo "$mode unloaded"
done
