# Run inside the booted Debian, after the service was started. Each line that begins with `==` is looked at.
ask() {
    exec 3<>/dev/tcp/127.0.0.1/8080 || return
    printf 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' >&3
    timeout 10 cat <&3 | grep -c "${1:-Staunch is running</h1>}"
    exec 3<&-
}
state() { systemctl show -P "$1" staunch.service; }
# Waits until a command has this output, for 20 s at most.
await() {
    for _ in $(seq 200); do
        [ "$($1)" = "$2" ] && return
        sleep 0.1
    done
    echo "never: $1 is $2"
}

first=$(state MainPID)
echo "== started: $(state ActiveState), $(state Type), page $(ask)"
echo "== confined: $(grep -h -E '^(NoNewPrivs|CapEff|Seccomp):' "/proc/$first/status" | tr '\t\n' ' ;')"
echo "== user: $(stat -c %U "/proc/$first")"

systemctl reload staunch.service
echo "== reloaded: code $?, same process $([ "$(state MainPID)" = "$first" ] && echo yes), page $(ask)"

# As the welcome page says: the folder of a site, wherever it is, then a reload.
mkdir -p /srv/site
echo 'My own site: Staunch is running</h1>' >/srv/site/index.html
sed -i 's#^root = .*#root = "/srv/site"#' /etc/staunch/staunch.toml
systemctl reload staunch.service
echo "== first instruction: code $?, $(state ActiveState), page $(ask 'My own site')"
staunch -t 2>&1 | tail -n 1
echo "== tested without a word: code ${PIPESTATUS[0]}"
echo "== commands: $(staunch status | grep -c running) $(staunch top --once | grep -c '^requests')"
staunch reload
echo "== reload by hand: code $?, page $(ask 'My own site')"
sed -i 's#^root = .*#root = "/srv/nowhere"#' /etc/staunch/staunch.toml
staunch reload
echo "== reload of what is not there: code $?, page $(ask 'My own site')"
sed -i 's#^root = .*#root = "/srv/site"#' /etc/staunch/staunch.toml
first=$(state MainPID)

cp /etc/staunch/staunch.toml /right.toml
echo 'lisen = 1' >/etc/staunch/staunch.toml
systemctl reload staunch.service 2>/dev/null
echo "== reloaded wrongly: code $?, $(state ActiveState), page $(ask)"
cp /right.toml /etc/staunch/staunch.toml

another() { [ "$(state MainPID)" != "$first" ] && [ "$(state MainPID)" != 0 ] && echo yes; }
upgrade() {
    systemctl kill --kill-whom=main --signal=USR2 staunch.service
    await another yes
}
upgrade
echo "== upgraded: another process $(another), $(state ActiveState), page $(ask)"

upgraded=$(state MainPID)
kill -9 "$upgraded"
restarted() { [ "$(state MainPID)" != "$upgraded" ] && [ "$(state ActiveState)" = active ] && echo yes; }
await restarted yes
echo "== killed: started anew $(restarted), page $(ask)"

first=$(state MainPID)
upgrade
systemctl stop staunch.service
echo "== stopped: $(state Result), code $(state ExecMainStatus)"
echo "control groups: $(stat -fc %T /sys/fs/cgroup)"
journalctl --unit staunch.service --no-pager --output cat
