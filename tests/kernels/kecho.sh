# kecho in each of its ways: bytes come back, answers are right, it unloads under load, and lost parameters are told.
head -c 100000 /dev/urandom > sent
for mode in kthread wq-percpu wq-unbound ready softirq; do
  insmod /modules/kecho.ko mode=$mode || exit 1
  (cat sent; sleep 1) | nc 127.0.0.1 12345 > back &
  until [ "$(wc -c < back)" -ge 100000 ]; do sleep 0.05; done
  cmp sent back || exit 2
  # Five clients live, and one of them is in the middle of its bytes.
  for one in 1 2 3 4; do (echo $one; sleep 600) | nc 127.0.0.1 12345 > live$one & done
  (cat /dev/zero) | nc 127.0.0.1 12345 > /dev/null &
  for one in 1 2 3 4; do until test -s live$one; do sleep 0.05; done; done
  rmmod kecho || exit 3
  test -d /sys/module/kecho && exit 4
  echo "$mode: echoed, unloaded under load"
done

insmod /modules/kecho.ko speaks=lab port=8090 mode=softirq || exit 5
staunch load http://127.0.0.1:8090/100 -c 8 -n 800 --json kept > /dev/null 2>&1 || exit 6
staunch load http://127.0.0.1:8090/5000 -c 8 -n 200 --no-keep-alive --json closed > /dev/null 2>&1 || exit 7
in_time() { grep -o '"in_time": *[0-9]*' $1 | head -n 1 | grep -o '[0-9]*$'; }
echo "answered: $(in_time kept) $(in_time closed)"
echo "paper: $(printf '12\n' | nc 127.0.0.1 8090 | wc -c)"
rmmod kecho

# A queue with a processor's workers serves 256 who keep their worker, and not the next one.
insmod /modules/kecho.ko mode=wq-percpu idle_s=86400 || exit 8
for one in $(seq 256); do (sleep 600) | nc 127.0.0.1 12345 > /dev/null & done
until grep -q 'accepted 256' /sys/module/kecho/parameters/counts; do sleep 0.1; done
(echo late; sleep 600) | nc 127.0.0.1 12345 > late &
until grep -q 'accepted 257' /sys/module/kecho/parameters/counts; do sleep 0.1; done
sleep 1
echo "257th of wq-percpu: $(wc -c < late) bytes"
kill $(jobs -p | head -n 20) 2> /dev/null
rmmod kecho

insmod /modules/kecho.ko connections_max=2 || exit 9
for one in 1 2; do (echo $one; sleep 600) | nc 127.0.0.1 12345 > full$one & done
for one in 1 2; do until test -s full$one; do sleep 0.05; done; done
echo "third of two: $(echo x | nc 127.0.0.1 12345 | wc -c) bytes"
grep refused /sys/module/kecho/parameters/counts
rmmod kecho

insmod /modules/kecho.ko idle_s=1 || exit 10
sleep 600 | nc 127.0.0.1 12345
grep expired /sys/module/kecho/parameters/counts
rmmod kecho

insmod /modules/kecho.ko mode=fast && exit 11
insmod /modules/kecho.ko speaks=latin && exit 12
insmod /modules/kecho.ko idle_s=0 && exit 13
nc -l -p 12345 & sleep 1
insmod /modules/kecho.ko && exit 14
dmesg | sed -n 's/^.*kecho: /told: /p' | sort -u
exit 0
