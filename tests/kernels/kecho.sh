# kecho in each of its ways: bytes come back, zero bytes too, and it unloads with a connection open.
for mode in kthread wq-percpu wq-unbound ready softirq; do
  insmod /modules/kecho.ko mode=$mode || exit 1
  printf 'hello\0world\n' | nc -w 2 127.0.0.1 12345 | od -c | head -n 1
  sleep 600 | nc 127.0.0.1 12345 > /dev/null &
  until grep -q 'accepted 2' /sys/module/kecho/parameters/counts; do sleep 0.1; done
  rmmod kecho || exit 2
  echo "$mode unloaded"
done
insmod /modules/kecho.ko mode=fast && exit 3
dmesg | sed -n 's/^.*kecho: /told: /p' | sort -u
exit 0
