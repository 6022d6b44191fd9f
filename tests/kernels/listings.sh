# Listings that khttpd keeps: that a change is shown by the next answer, that what is kept is what is sent
# without a cache, and what ends it. `listings` is tests/kernels/listings.c. What is said is compared in
# listings.rs.
umask 022
here=$(pwd)
parameters=/sys/module/khttpd/parameters
# Deadlines that no peer here waits for, however slow the machine is.
never='head_ms=3600000 idle_ms=3600000 write_ms=3600000'
load() { insmod /modules/khttpd.ko root=$here/www listen=127.0.0.1:80 listing=1 $never "$@" || exit 1; }
count() { sed -n "s/^$1 //p" $parameters/counts; }
ask() { printf 'GET /%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%b\r\n' "$1" "$2" | nc 127.0.0.1 80; }
status() { ask "$@" | head -n 1 | cut -d ' ' -f 2; }
field() { tr -d "\r" | sed -n "s/^$1: //p"; }
page() { wget -q -O - "http://127.0.0.1/$1"; }
# Asks until an answer comes from the cache.
until_kept() {
	before=$(count cache_hits)
	until [ $(count cache_hits) -gt $before ]; do ask $1 > /dev/null; done
}

mkdir -p www
mount -t tmpfs www www && chmod 755 www || exit 1

for mode in ready softirq; do
	load mode=$mode
	listings 1 || exit 2
	echo "$mode root: $(until_kept ''; ask '' | grep -c 'Parent folder') parents"
	rmmod khttpd && echo "$mode unloaded"
done

# What is kept is what is sent piece by piece.
mkdir -p www/odd www/many/deep/deeper www/empty
for name in 'a b' '<i>' "it's" '"q"' 'a&b' 'ü' 'a:b' '%41'; do echo "$name" > "www/odd/$name"; done
printf x > "$(printf 'www/odd/\377')"
printf x > "$(printf 'www/odd/\342\200\256')"
echo secret > www/odd/secret; chmod 600 www/odd/secret
echo hidden > www/odd/.hidden
for i in $(seq 9996); do : > www/many/a-file-with-a-name-of-some-length-$i; done
: > www/many/f1; : > www/many/f2; : > www/many/f3
sleep 0.3
load cache_kib=0
for name in odd many empty; do page $name/ > $name.sent; done
echo "without a cache: $(count cache_hits) $(count cache_bytes)"
rmmod khttpd
load cache_kib=1048576
for name in odd many empty; do
	until_kept $name/
	before=$(count cache_hits)
	page $name/ | cmp - $name.sent && echo "$name: the same, $(($(count cache_hits) - before)) from the cache"
done
echo "lines of many: $(grep -c '<tr><td>' many.sent)"
echo "held for many: $([ $(count cache_bytes) -gt 13000000 ] && echo charged)"
# Made beside the requests.
until ask odd/ 'Accept-Encoding: gzip\r\n' | grep -q '^Content-Encoding: gzip'; do :; done
wget -q -O - --header 'Accept-Encoding: gzip' http://127.0.0.1/odd/ | gunzip | cmp - odd.sent &&
	echo "in gzip: the same"
tag=$(ask odd/ | field ETag)
echo "conditional: $(status odd/ "If-None-Match: $tag\r\n") $(status odd/ 'If-None-Match: "other"\r\n')" \
	"$(status odd/ 'Range: bytes=0-9\r\n') $(ask odd/ 'Range: bytes=0-9\r\n' | tail -n 1)"
echo "old: $(printf 'GET /odd/ HTTP/1.0\r\n\r\n' | nc 127.0.0.1 80 | grep -c '<tr><td>')"
rm www/many/f3; : > www/many/f4
until_kept many/
echo "changed: $(page many/ | grep -c '>f3<') $(page many/ | grep -c '>f4<')"
# One more than are listed.
for i in 1 2 3; do : > www/many/g$i; done
until_kept many/
echo "cut: $(page many/ | grep -c 'more entries than are listed')"
# A filesystem that is left by its last name goes with the module.
umount -l www
echo "left: $(status odd/)"
rmmod khttpd && echo "unloaded"

# Who asks for the head leaves nothing behind, and a listing is kept only where there is room.
mkdir -p www; mount -t tmpfs www www && chmod 755 www && mkdir www/few www/more || exit 1
for i in 1 2 3; do : > www/few/f$i; done
for i in $(seq 200); do : > www/more/f$i; done
sleep 0.3
load cache_kib=256
for i in 1 2 3; do
	printf 'HEAD /few/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' | nc 127.0.0.1 80 > /dev/null
done
echo "kept of heads: $(count cache_bytes)"
for i in 1 2 3; do page more/ > /dev/null; done
echo "kept of too many: $(count cache_hits) $(count cache_bytes)"
until_kept few/ && echo "kept of few"
rmmod khttpd && umount www && echo "unmounted"

# What is older than it may be is read anew, however little it has changed.
mount -t tmpfs www www && chmod 755 www && echo hello > www/a.txt && sleep 0.3 || exit 1
load expire_s=2
until_kept ''; until_kept a.txt
sleep 2.1
before=$(count cache_hits)
page '' > /dev/null; page a.txt > /dev/null
echo "expired: $(($(count cache_hits) - before)) from the cache"
sleep 0.2
page '' > /dev/null; page a.txt > /dev/null
echo "again: $(($(count cache_hits) - before)) from the cache"
rmmod khttpd && umount www && echo "unmounted"
