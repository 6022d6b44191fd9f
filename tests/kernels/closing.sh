# A visitor who stays, and four hundred who leave after one answer.
mkdir site
head -c 4000 /dev/zero | tr '\0' x > site/page.txt
url=http://127.0.0.1:8080/page.txt

staunch serve site --io uring --listen 127.0.0.1:8081 > asked 2>&1 &
asked=$!
while kill -0 $asked 2>/dev/null && ! wget -q -O /dev/null http://127.0.0.1:8081/page.txt; do sleep 0.1; done
kill $asked 2>/dev/null
wait $asked
echo "asked for by name: $?"

# The patience is longer than the slowest host takes.
staunch serve site --listen 127.0.0.1:8080 --workers 1 --keep-alive 600s --patience 600s > said 2>&1 &
server=$!
until wget -q -O /dev/null $url; do sleep 0.1; done
grep engine said

(printf 'GET /page.txt HTTP/1.1\r\nHost: a\r\n\r\n'; sleep 600) | nc 127.0.0.1 8080 > idle &
until test -s idle; do sleep 0.1; done

staunch load $url -c 20 -n 400 --no-keep-alive --patience 600s --json answers > /dev/null 2>&1
echo "answered: $(grep -o '"in_time": *[0-9]*' answers | head -1 | grep -o '[0-9]*$')"
# Connections in TIME-WAIT are no sockets.
echo "sockets left: $(sed -n 's/^TCP:.* alloc \([0-9]*\).*/\1/p' /proc/net/sockstat)"
kill -0 $server && echo "server: lives"
