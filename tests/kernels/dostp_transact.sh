# Transactions by sockets of the module dostp: with a packet ring of user space at the other end, either side
# calling, with keys and without, and between two nodes of the module. A third of all messages is lost. A line
# for each step; ends at the first that fails.
mkdir -p /run/netns
insmod /modules/pair.ko && insmod /modules/dostp.ko interface=pair1 || exit 1
ip link set pair0 address 02:00:00:00:00:07 && ip link set pair1 address 02:00:00:00:00:08 || exit 2
ip link set pair0 up && ip link set pair1 up && ip addr add 10.0.0.8/24 dev pair1 || exit 3
ip netns add far && ip link set pair0 netns far && ip netns exec far ip link set lo up || exit 4
ip netns exec far ip link set pair0 up && ip netns exec far ip addr add 10.0.0.7/24 dev pair0 || exit 5

# converse NAME WAY-HERE WAY-THERE: a service here and calls from there, then the other way round.
converse() {
  dostp-transact serve $2 5 > here & here=$!
  ip netns exec far dostp-transact serve $3 6 > there & there=$!
  until grep -q serving here && grep -q serving there; do
    kill -0 $here && kill -0 $there || { cat here there; return 1; }
    sleep 0.2
  done
  for bytes in 0 100 20000 100000; do
    ip netns exec far dostp-transact call $3 10.0.0.8 5 6 $bytes || return 2
    dostp-transact call $2 10.0.0.7 6 6 $bytes || return 3
  done
  ip netns exec far dostp-transact end $3 10.0.0.8 5 && dostp-transact end $2 10.0.0.7 6 || return 4
  wait $here && wait $there || return 5
  echo "$1 here: $(tail -n 1 here)"
  echo "$1 there: $(tail -n 1 there)"
}

dostp-transact refusals 10.0.0.7 || exit 6
converse ring module ring:pair0 || { echo "failed: $?"; cat /proc/net/dostp/stats; exit 7; }
(umask 077 && printf '%064d\n' 1 > key)
echo "slot 0 $(cat key) mode aead" > /proc/net/dostp/keys || exit 8
converse keys module ring:pair0:key || { echo "failed: $?"; cat /proc/net/dostp/stats; exit 9; }
echo off > /proc/net/dostp/keys && ip netns exec far sh -c 'echo pair0 > /proc/sys/net/dostp/interface' || exit 10
converse module module module || { echo "failed: $?"; cat /proc/net/dostp/stats; exit 11; }
ip netns del far
until [ -e /sys/class/net/pair0 ]; do sleep 0.2; done
until rmmod dostp 2>/dev/null; do sleep 0.2; done
echo unloaded
