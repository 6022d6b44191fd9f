# Text files, which are programs here, compressed by khttpd: how many bytes each has, after its content was compared.
umask 022
here=$(pwd)
mkdir www
for name in serving.md giving-way.svg load.md cache.c; do cp /bin/$name www/; chmod 644 www/$name; done
sleep 0.3
load() { insmod /modules/khttpd.ko root=$here/www listen=127.0.0.1:80 "$@" || exit 1; }
ask() { name=$1; shift; wget -q -O got "$@" http://127.0.0.1/$name; }

load mode=softirq
for name in serving.md giving-way.svg load.md cache.c; do
  ask $name; cmp got www/$name || exit 2
  # Its gzip is made when it is asked for, beside the requests.
  until ask $name --header "Accept-Encoding: gzip" && ! cmp -s got www/$name; do :; done
  gunzip -c < got | cmp - www/$name || exit 3
  echo "$name: $(stat -c %s got)"
done
ask cache.c; cmp got www/cache.c && echo "plain: whole"
ask cache.c --header "Accept-Encoding: gzip;q=0"; cmp got www/cache.c && echo "refused: plain"
rmmod khttpd
load gzip=N
ask cache.c; ask cache.c --header "Accept-Encoding: gzip"; cmp got www/cache.c && echo "switched off: plain"
rmmod khttpd
