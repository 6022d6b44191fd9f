# `staunch kernel` with $module: what cannot be loaded, then a folder with a space in its name, served, seen and
# unloaded.
umask 022
mkdir "my site"
echo hello > "my site/a.txt"
load() { staunch kernel load --module $module "$@" 2>&1; }

staunch kernel status > /dev/null
echo "before: $?"
load --root "my site" --listen nowhere
load --root "my site" cache_kib=99999999
load --root /nowhere
echo "told: $(load --root "my site" --listen 127.0.0.1:80 --mode softirq listing=1 hand_over=/api)"
printf 'GET /a.txt HTTP/1.0\r\n\r\n' | timeout 60 nc 127.0.0.1 80 | tail -n 1
staunch kernel status
staunch kernel status --json
# Held open, by this shell.
exec 9< /dev/khttpd
staunch kernel unload 2>&1
exec 9<&-
echo "told: $(staunch kernel unload)"
staunch kernel unload
echo "after: $?"
