# Instructions of a round trip by the module and by UDP, over the same cable between two namespaces.
mkdir -p /run/netns
insmod /modules/pair.ko && insmod /modules/dostp.ko interface=pair1 || exit 1
ip netns add far && ip link set pair0 netns far || exit 2
ip link set pair1 up && ip addr add 10.0.0.8/24 dev pair1 || exit 3
ip netns exec far sh -c 'ip link set pair0 up && ip addr add 10.0.0.7/24 dev pair0' || exit 4
ip netns exec far sh -c 'echo pair0 > /proc/sys/net/dostp/interface' || exit 5
dostp-guest count 170 64 || exit 6
# The same round trips by nodes with keys, in each mode.
secret=$(printf %064d 1)
for mode in mac aead; do
  echo "slot 0 $secret mode $mode" > /proc/net/dostp/keys || exit 7
  ip netns exec far sh -c "echo 'slot 0 $secret mode $mode' > /proc/net/dostp/keys" || exit 8
  dostp-guest count 170 64 > counts || exit 9
  sed -n "s/^count: dostp/count: $mode/p" counts
done
