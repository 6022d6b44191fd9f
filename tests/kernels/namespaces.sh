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
request='GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

# The step that begins. Alone none takes more than a few seconds; `watch` ends the script at one that hangs.
step() { echo "$mode: $*" > step; }
watch() {
	until [ "$seconds" = 200 ]; do
		sleep 1
		seconds=$((seconds + 1))
		now=$(cat step)
		[ "$now" = "$was" ] || seconds=0
		was=$now
	done
	echo "no end of the step $was; the others said:"
	cat said
	ps -o pid,ppid,stat,args | grep -v '\[.*\]$'
	netstat -tan
	ip addr
	kill -9 $$
}

within() { name=$1; shift; ip netns exec $name "$@"; }
# Has khttpd listen at these addresses in a namespace; what is said where it cannot be.
tell() { within $1 sh -c "echo $2 > $file" 2>&1 | sed 's/^.*: //'; }
# A connection is counted until khttpd has seen that its peer has closed it.
told() {
	within $1 sh -c "until grep -q '^connections 0$' $file; do sleep 0.1; done; cat $file" | tr '\n' ' '
}
short() { tr -d '\r' | sed -n '1p;$p' | uniq | tr '\n' '|'; }
get() { printf "$request" | nc $1 $2 2>&1 | short; }
get_within() { printf "$request" | within $1 nc $2 $3 2>&1 | short; }
counts() { grep -E "^$1 " /sys/module/khttpd/parameters/counts; }
# A peer that says this, and stays: it has both ends of the pipes, so what it reads of them never ends.
hold() {
	mkfifo $1.in
	nc 10.1.0.2 80 <> $1.in 1<> $1.out 2>/dev/null & peer=$!
	printf "$2" > $1.in
}
# For a shell of its own, which is ended by its process number.
asks() { echo "while :; do printf '$request' | nc $1 $2; done > /dev/null 2>&1"; }

step begins
: > said
watch &
for mode in kthread wq ready softirq; do
	step loaded
	insmod /modules/khttpd.ko root=$here/www mode=$mode hand_over= listen=127.0.0.1:80 $never || exit 2
	for name in one two; do ip netns add $name; ip -n $name link set lo up; done
	step told
	echo "$mode untold: $(told one)"
	tell one 127.0.0.1:81
	tell two 127.0.0.1:82
	echo "$mode one: $(told one)"
	step asked
	echo "$mode here: $(get 127.0.0.1 80) one: $(get_within one 127.0.0.1 81)" \
		"two: $(get_within two 127.0.0.1 82)"
	echo "$mode elsewhere: $(get_within one 127.0.0.1 82) $(get 127.0.0.1 81)"

	step mistold
	# What cannot be changes nothing.
	echo "$mode odd: $(tell one 127.0.0.1:83,nowhere) / $(told one)"
	echo "$mode not ours: $(tell one 127.0.0.1:83,10.9.9.9:80) / $(told one)"
	echo "$mode twice: $(tell one 127.0.0.1:81,127.0.0.1:81) / $(told one)"
	echo "$mode stranger: $(unshare -U -r -n sh -c "echo 127.0.0.1:80 > $file" 2>&1 | sed 's/^.*: //')"
	step told more and none
	tell one 127.0.0.1:81,[::1]:83
	echo "$mode more: $(told one)$(get_within one 127.0.0.1 81) $(get_within one ::1 83)"
	tell one ''
	echo "$mode none: $(told one)$(get_within one 127.0.0.1 81)"

	# The namespace goes, with connections in four states: idle, in a head, in an answer, offered to a process.
	step joined by a cable
	ip link set pair1 netns one
	ip -n one addr add 10.1.0.2/24 dev pair1; ip -n one link set pair1 up
	tell one 10.1.0.2:80
	# The first packets may be lost, before both interfaces know of the cable.
	until get 10.1.0.2 80 | grep -q hello; do :; done
	step nobody is connected
	until counts connections | grep -q ' 0$'; do sleep 0.1; done
	step the device is open
	: > said
	handover idle > said & process=$!
	until grep -q open said; do sleep 0.1; done
	step three are connected
	hold idle 'GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n'; peers=$peer
	hold head 'GET /a.t'; peers="$peers $peer"
	# Nobody reads what this one hears, so it does not hear the end either.
	mkfifo answer.out
	hold answer 'GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n'; deaf=$peer
	until grep -q hello idle.out && within one grep -q '^connections 3$' $file; do sleep 0.1; done
	step a fourth is offered
	# Offered for 10 seconds: in a slow machine it may be answered before the namespace goes.
	hold offered 'POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'; peers="$peers $peer"
	until within one grep -q '^connections 4$' $file || [ -s offered.out ]; do sleep 0.1; done
	step the namespace goes
	ip netns del one
	# The interface comes back when the namespace is freed.
	until ip link show pair1 > /dev/null 2>&1; do sleep 0.1; done
	echo "$mode torn down: $(counts connections)"
	step peers hear the end
	wait $peers
	kill $deaf; wait $deaf 2>/dev/null
	kill $process; wait $process 2>/dev/null
	step the others are asked
	echo "$mode the others: $(get 127.0.0.1 80) $(get_within two 127.0.0.1 82)"
	rm -f *.in *.out

	# Unloaded while both are asked.
	step many are answered
	sh -c "$(asks 127.0.0.1 80)" & asking=$!
	ip netns exec two sh -c "$(asks 127.0.0.1 82)" & asking="$asking $!"
	before=$(counts answered)
	until [ "$(counts answered | cut -d ' ' -f 2)" -gt $((${before#* } + 10)) ]; do sleep 0.1; done
	step unloaded
	rmmod khttpd && echo "$mode unloaded"
	kill $asking; wait $asking 2>/dev/null
	step the other namespace goes
	ip link set pair1 netns two
	ip netns del two
	until ip link show pair1 > /dev/null 2>&1; do sleep 0.1; done
	echo "$mode nothing keeps it"
done
