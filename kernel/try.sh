# A first look at khttpd, in the emulated machine: a file is served from the kernel, and the module says what it did.
#
#     cargo xtask guest --kernel 6.12 --module khttpd kernel/try.sh
umask 022
mkdir www
echo "hello from the kernel" > www/index.html
insmod /modules/khttpd.ko root=$(pwd)/www listen=127.0.0.1:80 mode=softirq || exit 1
for i in 1 2 3; do
	wget -q -O - http://127.0.0.1/
	sleep 1
done
cat /sys/module/khttpd/parameters/counts
rmmod khttpd && echo "unloaded; the kernel said:"
dmesg | grep khttpd
