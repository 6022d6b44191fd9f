# The gate on one end of a veth, in each of $forms. What is said is compared in gate.rs.
umask 022
ip link add va type veth peer name vb && ip link set va up && ip link set vb up || exit 1
before=$(cat /proc/sys/net/ipv4/tcp_syncookies)
echo 2 > /proc/sys/net/ipv4/tcp_syncookies
# Begins with these words, waits until the gate stands, and ends it.
try() {
	name=$1
	shift
	staunch gate --interface va --json "$@" > said 2>&1 & gate=$!
	until grep -q '"event":"start"' said; do
		kill -0 $gate 2> /dev/null || { cat said; exit 2; }
		sleep 0.1
	done
	kill -TERM $gate
	wait $gate
	echo "$name: ended with $?"
}
for form in $forms; do
	case $form in
	drop) try $form ;;
	reset) try $form --mode reset ;;
	either) try $form --policy either --dry-run ;;
	cookie) try $form --mode cookie ;;
	most) try $form --mode cookie --port 80,443,8080 --allow 192.0.2.0/24 --deny 198.51.100.0/24,2001:db8::/32 ;;
	lines) try $form --port 80,443,8080 --allow 192.0.2.0/24,2001:db8::/32 --deny 198.51.100.0/24 ;;
	esac
done
ip -details link show va | grep -q 'prog/xdp' || echo "nothing is attached"
# As it was, for others in this machine.
echo $before > /proc/sys/net/ipv4/tcp_syncookies
ip link del va
