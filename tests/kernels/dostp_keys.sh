# The module dostp with keys: what its file of keys takes and shows, hostile frames, a node of user space with
# the same keys, rotation, and a node with another key. A line for each step; ends at the first that fails.
mkdir -p /run/netns
keys=/proc/net/dostp/keys
count() { awk -v name="$1" '$1 == name { print $2 }' /proc/net/dostp/stats; }
for name in 1 2 3; do (umask 077 && printf '%064d\n' $name > key$name); done
serve() {
  ip netns exec far staunch dostp serve --interface pair0 "$@" > served 2>&1 &
  served=$!
  until grep -q ring served; do
    kill -0 $served || { cat served; exit 30; }
    sleep 0.2
  done
}
leave() { kill $served && wait $served; }

insmod /modules/pair.ko && insmod /modules/dostp.ko interface=pair1 || exit 1
ip link set pair0 address 02:00:00:00:00:07 && ip link set pair1 address 02:00:00:00:00:08 || exit 2
ip link set pair0 up && ip link set pair1 up && ip addr add 10.0.0.8/24 dev pair1 || exit 3

for words in "slot 2 none" "slot 0 12" "slot 0" "send 1" "mode none" "of" "slot 1 $(cat key1)" "slot 0 $(cat key1)a"; do
  echo "$words" > $keys 2> /dev/null && { echo "taken: $words"; exit 4; }
done
dostp-guest unprivileged || exit 5
staunch dostp keys --send-by 1 2>&1
staunch dostp keys --key-file key1 || exit 6
grep -q "$(cat key1)" $keys && exit 7

secret=$(awk '$1 == "keys" { print $3; exit }' /bin/golden-frames)
for mode in mac aead; do
  echo "slot 0 $secret mode $mode" > $keys
  dostp-guest believe pair0 $secret || exit 8
  until grep -q '^10.0.0.7 .* boot 0x1111111122222222 ' /proc/net/dostp/peers; do sleep 0.1; done
  received=$(count messages_received)
  dostp-guest hostile pair0 /bin/golden-frames || exit 9
  [ $(count messages_received) = $received ] || { cat /proc/net/dostp/stats; exit 25; }
  echo "$mode: $(wc -l < /proc/net/dostp/peers) peer"
  dostp-guest reflect pair0 || exit 31
done
# Windows against replay: one for each port of a sender, within a bound.
echo "mode mac" > $keys && dostp-guest replay pair0 $secret || exit 26
dostp-guest passed pair0 $secret || exit 32

ip netns add far && ip link set pair0 netns far && ip netns exec far ip link set lo up || exit 10
ip netns exec far ip link set pair0 up && ip netns exec far ip addr add 10.0.0.7/24 dev pair0 || exit 11
dostp-guest echo 7 > echoed &
echoed=$!
for mode in mac aead; do
  staunch dostp keys --key-file key1 --remove 1 --send-by 0 --mode $mode > /dev/null || exit 12
  serve --key-file key1 --key-file key2 --mode $mode
  for bytes in 0 1 1460 1461 1468 1469 65000 262144; do
    dostp-guest ask 10.0.0.7 7 5 $bytes > asked || { cat asked /proc/net/dostp/stats; exit 13; }
    echo "$mode $(cat asked)"
  done
  ip netns exec far staunch dostp ping 10.0.0.8 --interface pair0 -c 3 -i 100ms -s 5000 -W 20s \
    --key-file key1 --mode $mode | tail -n 2 | sed "s/^/$mode /"

  # Both slots are accepted, so nothing is lost while the module goes from one to the other and back.
  # Messages go before, during and behind that, whichever of both is slow.
  touch rotating
  while test -e rotating; do dostp-guest ask 10.0.0.7 7 4000 100 || exit 1; done > asked &
  asker=$!
  until test -s asked; do kill -0 $asker || { cat /proc/net/dostp/stats; exit 17; }; sleep 0.1; done
  staunch dostp keys --slot 1 --key-file key2 > /dev/null || exit 15
  staunch dostp keys --send-by 1 | tr '\n' ' ' && echo
  staunch dostp keys --send-by 0 > /dev/null && staunch dostp keys --send-by 1 > /dev/null || exit 16
  rm rotating
  wait $asker || { cat asked /proc/net/dostp/stats; exit 18; }
  echo "$mode $(tail -n 1 asked)"

  # Without the first secret the module drops what is sent by it, and hears a node that sends by the second.
  # A message to that node is lost until it believes the module's boot number: hence the wait.
  staunch dostp keys --remove 0 > /dev/null || exit 19
  dropped=$(count dropped_auth)
  leave
  # Its farewell is one frame, which may be lost: a ping is sealed by the same secret.
  tries=0
  until [ $(count dropped_auth) -gt $dropped ]; do
    [ $((tries += 1)) -le 20 ] || { cat /proc/net/dostp/stats; exit 28; }
    ip netns exec far staunch dostp ping 10.0.0.8 --interface pair0 -c 1 -W 1s --key-file key1 --mode $mode \
      > pinged 2>&1
  done
  serve --key-file none --key-file key2 --send-by-second --mode $mode
  until grep -q '10.0.0.8 is there' served; do sleep 0.1; done
  dostp-guest ask 10.0.0.7 7 5 3000 || exit 21
  leave

  # A node with another key is not heard and not learnt: to the module, no node is at its address.
  serve --key-file key3 --mode $mode
  echo pair1 > /proc/sys/net/dostp/interface
  dropped=$(count dropped_auth)
  timeout 5 dostp-guest ask 10.0.0.7 7 1 1 > asked && { echo "a stranger answers"; exit 22; }
  ip netns exec far staunch dostp ping 10.0.0.8 --interface pair0 -c 1 -W 1s --key-file key3 --mode $mode \
    > asked 2>&1 && { cat asked; exit 27; }
  [ $(count dropped_auth) -gt $dropped ] && [ $(wc -l < /proc/net/dostp/peers) = 0 ] || {
    cat /proc/net/dostp/stats /proc/net/dostp/peers
    exit 23
  }
  echo "$mode: a stranger is not heard"
  leave
done

# Both nodes without keys again.
staunch dostp keys --off
serve
dostp-guest ask 10.0.0.7 7 5 1485 || exit 24
leave
kill $echoed
wait 2> /dev/null
until rmmod dostp 2> /dev/null; do sleep 0.2; done
echo unloaded
