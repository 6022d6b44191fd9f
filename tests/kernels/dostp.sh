# The module dostp: golden frames and hostile ones, a user-space node as its partner, and all that may go
# while it is busy: link, interface, namespace, module. Says a line for each; ends with the first that fails.
mkdir -p /run/netns
# Frames of messages received so far. Both counters come from one read: a control frame between two would be
# counted in one alone.
data_received() { awk '{ count[$1] = $2 } END { print count["frames_received"] - count["control_received"] }' /proc/net/dostp/stats; }
# Under KASAN what was freed is held back for a while, unless the cache is shrunk.
objects() {
  echo 1 2>/dev/null > /sys/kernel/slab/skbuff_head_cache/shrink
  awk '$1 == "skbuff_head_cache" { print $2 }' /proc/slabinfo
}

insmod /modules/dostp.ko family=2 2>&1 | head -n 1
insmod /modules/pair.ko || exit 1
insmod /modules/dostp.ko interface=pair1 || exit 2
dmesg | sed -n 's/^.*dostp: family/told: family/p' | sort -u
ip link set pair0 address 02:00:00:00:00:07 && ip link set pair1 address 02:00:00:00:00:08 || exit 3
ip link set pair0 up && ip link set pair1 up && ip addr add 10.0.0.8/24 dev pair1 || exit 4
dostp-guest calls || exit 5
dostp-guest golden pair0 /bin/golden-frames || exit 6
dostp-guest hostile pair0 /bin/golden-frames || exit 7
dostp-guest reflect pair0 || exit 37
dostp-guest flood pair0 20000 || exit 8
echo 0 > /proc/sys/net/dostp/cluster
dostp-guest shared pair0 || exit 31

# A node in user space at the other end: each speaks first once.
ip netns add far && ip link set pair0 netns far || exit 9
ip netns exec far ip link set lo up
ip netns exec far ip link set pair0 up && ip netns exec far ip addr add 10.0.0.7/24 dev pair0 || exit 10
ip netns exec far staunch dostp serve --interface pair0 > served 2>&1 &
served=$!
until grep -q ring served; do sleep 0.2; done
for bytes in 0 1 64 1484 1485 16384 65000 262144; do
  dostp-guest ask 10.0.0.7 7 5 $bytes || { cat /proc/net/dostp/stats; exit 11; }
done
echo 1 > /proc/sys/net/dostp/sum
dostp-guest ask 10.0.0.7 7 5 3000 || exit 12
echo 0 > /proc/sys/net/dostp/sum
until grep -q '10.0.0.7 02:00:00:00:00:07 boot 0x' /proc/net/dostp/peers; do sleep 0.1; done
echo "peers: known"
dostp-guest echo 7 > echoed &
echoed=$!
until grep -q ready echoed; do sleep 0.2; done
ip netns exec far staunch dostp ping 10.0.0.8 --interface pair0 -c 3 -i 100ms -s 5000 -W 20s | tail -n 2 || exit 14

# Sockets keep the module; the link goes and comes back; the user-space node sees it again.
rmmod dostp 2>/dev/null && exit 15
ip link set pair1 down && ip link set pair1 up
until dostp-guest ask 10.0.0.7 7 1 10 2>/dev/null; do sleep 0.2; done
kill $echoed $served
wait $echoed $served 2>/dev/null

# Both interfaces take 9000 bytes: that is found before anything is sent, so already the first message of one
# such frame is one frame. Then the way takes less than both tell: the module finds it, says so, and goes on with
# frames of 1500.
ip link set pair1 mtu 9000 && ip netns exec far ip link set pair0 mtu 9000 || exit 22
ip netns exec far staunch dostp serve --interface pair0 > served 2>&1 &
served=$!
until grep -q ring served; do sleep 0.2; done
until grep -q '^10.0.0.7 .* mtu 9000 ' /proc/net/dostp/peers; do sleep 0.2; done
until ip netns exec far staunch dostp peers --interface pair0 | grep -q '^10.0.0.8 .*MTU 9000 .*heard'; do sleep 0.2; done
before=$(data_received)
dostp-guest ask 10.0.0.7 7 10 8984 || exit 23
frames=$(($(data_received) - before))
[ $frames = 10 ] && echo "large: a frame a message" || { echo "large: $frames frames of 10 messages"; exit 24; }
dostp-guest ask 10.0.0.7 7 5 262144 || exit 25
ip netns exec far ip link set pair0 mtu 1500 && echo pair1 > /proc/sys/net/dostp/interface || exit 26
until dmesg | grep -q 'frames of 9000 bytes do not reach 0x0007, frames of 1500 are sent'; do sleep 0.2; done
dostp-guest ask 10.0.0.7 7 5 9001 || exit 27
echo "small: told"
kill $served
wait $served 2>/dev/null

# A message that waits for its address is cut as its receiver takes it.
ip netns exec far ip link set pair0 mtu 600 || exit 28
ip netns exec far staunch dostp serve --interface pair0 > served 2>&1 &
served=$!
until grep -q ring served; do sleep 0.2; done
unresolved() { awk '$1 == "dropped_unresolved" { print $2 }' /proc/net/dostp/stats; }
before=$(unresolved)
ip link set pair1 mtu 1500
dostp-guest ask 10.0.0.7 7 1 20000 || exit 29
[ $(unresolved) = $before ] || exit 30
kill $served
wait $served 2>/dev/null
ip netns exec far ip link set pair0 mtu 1500

# Neither address of a network of two (RFC 3021) stands for all.
ip addr flush dev pair1 && ip addr add 10.0.0.6/31 dev pair1 || exit 32
ip netns exec far ip addr flush dev pair0 && ip netns exec far ip addr add 10.0.0.7/31 dev pair0 || exit 33
: > served
ip netns exec far staunch dostp serve --interface pair0 > served 2>&1 &
served=$!
until grep -q ring served; do sleep 0.2; done
dostp-guest ask 10.0.0.7 7 5 31 || exit 34
kill $served
wait $served 2>/dev/null
ip addr flush dev pair1 && ip addr add 10.0.0.8/24 dev pair1 || exit 35
ip netns exec far ip addr flush dev pair0 && ip netns exec far ip addr add 10.0.0.7/24 dev pair0 || exit 36

# A namespace with a node and a socket goes.
ip netns exec far sh -c 'echo pair0 > /proc/sys/net/dostp/interface'
ip netns exec far dostp-guest echo 9 > far &
far=$!
until grep -q ready far; do sleep 0.2; done
dostp-guest ask 10.0.0.7 9 20 1485 || exit 16

# A newcomer with an address that is held gives up, and its sockets say so; the holder goes on, also if it has
# just begun anew with another MTU.
ip netns exec far ip addr flush dev pair0
ip link set pair1 mtu 1400 && ip link set pair1 mtu 1500
ip netns exec far ip addr add 10.0.0.8/24 dev pair0
until ip netns exec far grep -q 'refused 1' /proc/net/dostp/stats; do sleep 0.2; done
ip netns exec far dostp-guest ask 10.0.0.9 9 1 1 | grep -o 'Address already in use'
grep 'refused' /proc/net/dostp/stats
dmesg | sed -n 's/^.*dostp: pair0: address 0x0008 is held by \(.*\), not taken by \(.*\);.*/told: \1 has it, \2 not/p'
ip netns del far
kill $far
wait $far 2>/dev/null
until [ -e /sys/class/net/pair0 ]; do sleep 0.2; done

# The module goes under load, then the interface does; then both come and go the other way round.
ip link set pair0 up && ip link set pair1 up
dostp-guest storm pair0 &
storm=$!
sleep 2
until rmmod dostp 2>/dev/null; do sleep 0.2; done
wait $storm || exit 17
insmod /modules/dostp.ko interface=pair1 || exit 18
dostp-guest echo 2000 > echoed &
echoed=$!
until grep -q ready echoed; do sleep 0.2; done
dostp-guest storm pair0 > /dev/null &
storm=$!
sleep 2
grep under_way /proc/net/dostp/stats
kill $storm
rmmod pair || exit 19
kill $echoed
wait 2>/dev/null
until rmmod dostp 2>/dev/null; do sleep 0.2; done
insmod /modules/dostp.ko && grep dropped_short /proc/net/dostp/stats && rmmod dostp || exit 20
objects=$(objects)
[ "$objects" -lt 500 ] && echo "frames left: few" || { echo "frames left: $objects"; exit 21; }
echo unloaded
