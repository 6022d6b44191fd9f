# khttpd in a build that stays where another thread may come in between (kernel/khttpd/race.h). `cache` is
# tests/kernels/cache.c, `listings` is listings.c. The machine ends at the first fault. `part` says which race,
# `turns` how often modules are unloaded.
umask 022
here=$(pwd)
mkdir -p www/x
echo hello > www/a.txt
load() { insmod /modules/khttpd.ko root=$here/www listen=127.0.0.1:80 listing=1 mode=$1 || exit 1; }
ask() { printf 'GET /a.txt HTTP/1.0\r\n\r\n' | nc 127.0.0.1 80 > /dev/null; }

moves() {
	# A folder is emptied and removed while it is asked whether a file in it is what it was.
	for mode in ready softirq; do
		load $mode
		cache moves 10 || exit 2
		rmmod khttpd && echo "$mode unloaded"
	done
}

lists() {
	# A folder changes while its listing is made for the cache, and while it is asked whether it is true.
	for mode in ready softirq; do
		load $mode
		listings 1 || exit 2
		rmmod khttpd && echo "$mode lists unloaded"
	done
}

closes() {
	# Connections that are being closed when the module is unloaded.
	for mode in kthread wq ready softirq; do
		for turn in $(seq $turns); do
			load $mode
			peers=
			for i in 1 2 3 4 5 6 7 8; do ask & peers="$peers $!"; done
			until grep -q '^accepted [1-9]' /sys/module/khttpd/parameters/counts; do :; done
			rmmod khttpd || exit 3
			kill $peers 2>/dev/null
			wait $peers 2>/dev/null
		done
		echo "$mode closed"
	done
}

$part
