# khttpd in network namespaces: it listens where it is told to, and what it has there ends with the namespace.
# `handover` is tests/kernels/handover.c. What is said is compared in namespaces.rs.
umask 022
here=$(pwd)
file=/proc/net/khttpd
mkdir -p www /run/netns
echo hello > www/a.txt
# More than the sockets of both sides hold.
head -c 20000000 /dev/zero > www/big.bin
insmod /modules/pair.ko && ip addr add 10.1.0.1/24 dev pair0 && ip link set pair0 up || exit 1

# Deadlines that no peer here waits for, however slow the machine is.
never='head_ms=3600000 idle_ms=3600000 write_ms=3600000'

within() { name=$1; shift; ip netns exec $name "$@"; }
# Has khttpd listen at these addresses in a namespace; what is said where it cannot be.
tell() { within $1 sh -c "echo $2 > $file" 2>&1 | sed 's/^.*: //'; }
told() { within $1 cat $file | tr '\n' ' '; }
get() { printf 'GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' | timeout 60 nc $1 $2 2>&1 | tr -d '\r' | sed -n '1p;$p' | uniq | tr '\n' '|'; }
get_within() { printf 'GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' | within $1 timeout 60 nc $2 $3 2>&1 | tr -d '\r' | sed -n '1p;$p' | uniq | tr '\n' '|'; }
counts() { grep -E "^$1 " /sys/module/khttpd/parameters/counts; }
# A peer that says this, and stays; what it hears goes to $1.out.
hold() {
	mkfifo $1.in
	nc 10.1.0.2 80 < $1.in > $1.out 2>/dev/null & peer=$!
	sleep 600 > $1.in & holders="$holders $!"
	printf "$2" > $1.in
}
ask() { while :; do get $1 $2 > /dev/null; done; }
ask_within() { while :; do get_within $1 $2 $3 > /dev/null; done; }

for mode in kthread wq ready softirq; do
	insmod /modules/khttpd.ko root=$here/www mode=$mode hand_over= listen=127.0.0.1:80 $never || exit 2
	for name in one two; do ip netns add $name; within $name ip link set lo up; done
	echo "$mode untold: $(told one)"
	tell one 127.0.0.1:81
	tell two 127.0.0.1:82
	echo "$mode one: $(told one)"
	echo "$mode here: $(get 127.0.0.1 80) one: $(get_within one 127.0.0.1 81) two: $(get_within two 127.0.0.1 82)"
	echo "$mode elsewhere: $(get_within one 127.0.0.1 82) $(get 127.0.0.1 81)"

	# What cannot be changes nothing.
	echo "$mode odd: $(tell one 127.0.0.1:83,nowhere) / $(told one)"
	echo "$mode not ours: $(tell one 127.0.0.1:83,10.9.9.9:80) / $(told one)"
	echo "$mode twice: $(tell one 127.0.0.1:81,127.0.0.1:81) / $(told one)"
	echo "$mode stranger: $(unshare -U -r -n sh -c "echo 127.0.0.1:80 > $file" 2>&1 | sed 's/^.*: //')"
	tell one 127.0.0.1:81,[::1]:83
	echo "$mode more: $(told one)$(get_within one 127.0.0.1 81) $(get_within one ::1 83)"
	tell one ''
	echo "$mode none: $(told one)$(get_within one 127.0.0.1 81)"

	# The namespace goes, with connections in four states: idle, in a head, in an answer, offered to a process.
	ip link set pair1 netns one
	within one ip addr add 10.1.0.2/24 dev pair1; within one ip link set pair1 up
	tell one 10.1.0.2:80
	handover idle > said & process=$!
	until grep -q open said; do sleep 0.1; done
	hold idle 'GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n'; peers=$peer
	hold head 'GET /a.t'; peers="$peers $peer"
	# Nobody reads what this one hears, so it does not hear the end either.
	mkfifo answer.out
	sleep 600 < answer.out & holders="$holders $!"
	hold answer 'GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n'; holders="$holders $peer"
	until grep -q hello idle.out && within one grep -q '^connections 3$' $file; do sleep 0.1; done
	# Offered for 10 seconds: in a slow machine it may be answered before the namespace goes.
	hold offered 'POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'; peers="$peers $peer"
	until within one grep -q '^connections 4$' $file || [ -s offered.out ]; do sleep 0.1; done
	ip netns del one
	# The interface comes back when the namespace is freed.
	until ip link show pair1 > /dev/null 2>&1; do sleep 0.1; done
	echo "$mode torn down: $(counts connections)"
	wait $peers
	kill $holders; wait $holders 2>/dev/null; holders=
	kill $process; wait $process 2>/dev/null
	echo "$mode the others: $(get 127.0.0.1 80) $(get_within two 127.0.0.1 82)"
	rm -f *.in *.out

	# Unloaded while both are asked.
	ask 127.0.0.1 80 & asking=$!
	ask_within two 127.0.0.1 82 & asking="$asking $!"
	before=$(counts answered)
	until [ "$(counts answered | cut -d ' ' -f 2)" -gt $((${before#* } + 10)) ]; do sleep 0.1; done
	rmmod khttpd && echo "$mode unloaded"
	kill $asking; wait $asking 2>/dev/null
	ip link set pair1 netns two
	ip netns del two
	until ip link show pair1 > /dev/null 2>&1; do sleep 0.1; done
	echo "$mode nothing keeps it"
done
