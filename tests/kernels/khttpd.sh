# khttpd from outside: what it serves and what not, and parameters that cannot be. Peers that do not keep to
# the rules are in kernel-strain.
umask 022
here=$(pwd)
mkdir -p www/many
echo hello > www/a.txt
echo secret > secret
ln -s ../secret www/out
ln -s a.txt www/in
echo run > www/run; chmod 755 www/run
echo hidden > www/mine; chmod 600 www/mine
for i in $(seq 500); do : > www/many/a-file-with-a-name-of-some-length-$i; done

load() { insmod /modules/khttpd.ko root=$here/www listen=127.0.0.1:80 "$@"; }
# The server ends a connection of HTTP/1.0, and then nc ends.
ask() { printf 'GET %s HTTP/1.0\r\n\r\n' "$1" | timeout 60 nc 127.0.0.1 80; }
status() { ask "$1" | head -n 1 | cut -d ' ' -f 2; }
log() { dmesg | grep "khttpd: $1" | tail -n 1 | sed 's/.*khttpd: /told: /'; }

insmod /modules/khttpd.ko 2>/dev/null; log root
load root=/nowhere 2>/dev/null; log root
load mode=odd 2>/dev/null; log mode
load connections=0 2>/dev/null; log connections
load head_ms=1 2>/dev/null; log head_ms
load listen=nowhere 2>/dev/null; log listen
load listen=127.0.0.1:80,127.0.0.1:80 2>/dev/null; log listen
grep -q '^khttpd ' /proc/modules || echo "nothing is left"

for mode in kthread wq ready softirq; do
	load mode=$mode listing=1 || exit 1
	echo "$mode statuses: $(for name in /a.txt /in /out /run /mine /many /nothing; do status $name; done | tr '\n' ' ')"
	echo "$mode listed: $(ask /many/ | grep -c 'a-file')"
	rmmod khttpd && echo "$mode unloaded"
done
