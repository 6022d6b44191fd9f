# The cache of khttpd: what empties it and what does not, what it charges, and what it leaves out. `cache` and
# `remote` are tests/kernels/cache.c and remote.c. What is said is compared in cache.rs.
umask 022
here=$(pwd)
parameters=/sys/module/khttpd/parameters
# Deadlines that no peer here waits for, however slow the machine is.
never='head_ms=3600000 idle_ms=3600000 write_ms=3600000'
load() { insmod /modules/khttpd.ko root=$here/www listen=127.0.0.1:80 $never "$@" || exit 1; }
count() { sed -n "s/^$1 //p" $parameters/counts; }
ask() { printf 'GET /%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%b\r\n' "$1" "$2" | nc 127.0.0.1 80; }
gzipped() { ask $1 'Accept-Encoding: gzip\r\n' | grep -c '^Content-Encoding: gzip'; }
status() { ask $1 | head -n 1 | cut -d ' ' -f 2; }
text() { head -c 190000 /dev/urandom | od -An -tx1 -v | head -c 250000; }
# Asks until an answer comes from the cache.
until_kept() {
	before=$(count cache_hits)
	until [ $(count cache_hits) -gt $before ]; do ask $1 > /dev/null; done
}
used() { sed -n 's/^VmallocUsed: *\([0-9]*\) kB/\1/p' /proc/meminfo; }

mkdir -p www elsewhere
mount -t tmpfs www www && chmod 755 www || exit 1
text > www/t.txt
for i in $(seq 40); do cp www/t.txt www/t$i; done
mkdir www/d; echo other > www/d/index.html

for mode in ready softirq; do
	load mode=$mode
	until_kept t.txt
	# Made once, off the way of requests, when it is asked for.
	echo "$mode before: $(count encoded)"
	until [ $(gzipped t.txt) = 1 ]; do :; done
	before=$(count cache_hits)
	( cd elsewhere && exec cache renames ) > begun & renamer=$!
	until grep -q renames begun; do sleep 0.1; done
	echo "$mode beside renames: $(for i in 1 2 3 4 5 6 7 8; do gzipped t.txt; done | tr -d '\n')" \
		"$(($(count cache_hits) - before)) from the cache"
	kill $renamer; wait $renamer 2>/dev/null
	before=$(count cache_hits)
	for name in %74.txt t%2etxt d/../t.txt ./t.txt %2e/%74%2etxt x/%2e%2e/t.txt; do gzipped $name > /dev/null; done
	echo "$mode spellings: $(($(count cache_hits) - before)) from the cache"
	echo "$mode encoded: $(count encoded)"
	# Who asks for less than all has nothing read and kept.
	before=$(count cache_bytes)
	for i in 1 2 3; do
		printf "HEAD /t$i HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" | nc 127.0.0.1 80 > /dev/null
		ask t$i 'Range: bytes=0-0\r\n' > /dev/null
	done
	echo "$mode kept of parts: $(($(count cache_bytes) - before))"
	until_kept d/
	rmmod khttpd && echo "$mode unloaded"
done

# Entries that readers hold stay charged: what is held never exceeds what may be.
sleep 1
echo "4096 16384 87040" > /proc/sys/net/ipv4/tcp_wmem
load cache_kib=1024
before=$(used)
mkfifo holder
cache holds t 40 < holder > begun & holding=$!
exec 5> holder
until grep -q holds begun; do sleep 0.1; done
echo "charged: $([ $(count cache_bytes) -le 1048576 ] && echo within)"
echo "taken: $([ $(($(used) - before)) -lt 4096 ] && echo within || echo $(($(used) - before)) kB)"
exec 5>&-
wait $holding
# Whoever comes afterwards is kept again.
until_kept t.txt && echo "kept again"
rmmod khttpd && echo "unloaded"

# More than the sockets of both sides hold.
echo "4096 16384 262144" > /proc/sys/net/ipv4/tcp_wmem
echo "4096 65536 262144" > /proc/sys/net/ipv4/tcp_rmem
load listing=1
for change in 'mv www/new www/big' 'rm www/big' 'ln www/big www/link' 'chmod 640 www/big' 'cp www/new www/big'; do
	rm -f www/big www/link
	head -c 1500000 /dev/zero | tr '\0' '\1' > www/big
	head -c 1500000 /dev/zero | tr '\0' '\2' > www/new
	rm -f pipe; mkfifo pipe
	# One child, which does not end before the pipe is open: the end of one would interrupt that.
	( printf 'GET /big HTTP/1.0\r\n\r\n' | nc 127.0.0.1 80 > pipe ) &
	exec 4< pipe
	# The head has come, so that the file is being sent.
	read -r head <&4
	$change
	cat <&4 > came
	exec 4<&-
	wait
	echo "$change: $(tr -cd '\1' < came | wc -c) bytes, $(tr -cd '\2' < came | wc -c) others"
done
rm -f www/big www/new www/link came
echo "4096 16384 4194304" > /proc/sys/net/ipv4/tcp_wmem
echo "4096 131072 6291456" > /proc/sys/net/ipv4/tcp_rmem

# A list of rights counts as the mode does.
echo mine > www/mine.txt; echo ours > www/ours.txt
echo "without a list: $(status mine.txt) $(ask '' | grep -c 'mine.txt')"
cache denies www/mine.txt
echo "denied: $(status mine.txt) $(ask '' | grep -c 'mine.txt')"
# A listing that is cut says so.
mkdir www/many www/few
for i in $(seq 10000); do : > www/many/f$i; done
cut='more entries than are listed'
echo "10000: $(ask many/ | grep -c "$cut")"
: > www/many/f10001
echo "10001: $(ask many/ | grep -c "$cut")"
rmmod khttpd && echo "unloaded"
# Listings that are read slowly leave room to others.
load listing=1 memory_mib=8
cache waits many/ 20 < holder > begun & waiting=$!
exec 5> holder
until grep -q waits begun; do sleep 0.1; done
echo "beside listings: $(status ours.txt) $([ $(count memory_bytes) -lt 4194304 ] && echo within)"
exec 5>&-
wait $waiting
rmmod khttpd && echo "unloaded"

# Files that change at another machine are not kept.
rm -rf www/*; umount www
echo "<p>old" > backing
remote www backing > begun & remote=$!
until grep -q mounted begun; do sleep 0.1; done
sleep 0.3
load
for i in 1 2 3 4; do ask f.html > got; done
echo "before: $(tail -n 1 got)"
echo "<p>new, and longer" > backing
echo "after: $(ask f.html | tail -n 1) $(count cache_hits)"
rmmod khttpd && echo "unloaded"
umount www && wait $remote
