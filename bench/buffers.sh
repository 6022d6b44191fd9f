# Counts where received buffers come from (crates/gate/examples/gate-buffers.rs), on each kind of interface.
# It is run in namespaces of its own, as root of them, here or in an emulated machine: `cargo xtask buffers`.
# Words are pairs of cards, each two names of interfaces that lie on one line; a veth pair is made besides.
umask 022
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill $server; rm -r $folder' EXIT
mkdir -p /run/netns
for bytes in 500 5000 50000 500000; do head -c $bytes /dev/zero > $folder/$bytes; done
ip netns add near && ip netns add far || exit 1
ip -n near link set lo up
ip -n far link set lo up

# Puts both ends where they belong, and says what is counted at the near one.
count() {
	name=$1 near=$2 far=$3
	shift 3
	ip -n near addr add 10.0.0.1/24 dev $near && ip -n far addr add 10.0.0.2/24 dev $far || exit 2
	ip -n near link set $near up && ip -n far link set $far up || exit 3
	ip netns exec near staunch serve $folder --listen 10.0.0.1:80 --workers 1 --io epoll > $folder/said 2>&1 &
	server=$!
	ip netns exec near gate-buffers $name $near far 10.0.0.1:80 "$@" || { cat $folder/said; exit 4; }
	kill $server && wait $server
	server=
	ip -n near addr flush dev $near
	ip -n far addr flush dev $far
	ip -n near link set $near down
	ip -n far link set $far down
}

ip -n near link add near0 type veth peer name far0 netns far || exit 5
count veth near0 far0
count veth-gate near0 far0 gate
while [ $# -ge 3 ]; do
	ip link set $2 netns near && ip link set $3 netns far || exit 6
	count $1 $2 $3
	shift 3
done
