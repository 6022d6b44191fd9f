# Mounts a folder again by FUSE, and lets reads of files whose name begins with "slow" hang from 1 MB on,
# with every question about the file, until a line comes on standard input. Ends with that input.
# Says "mounted", and "hangs NAME" for each file of which a read hangs.
import ctypes, os, select, struct, sys

FOLDER, POINT = sys.argv[1], sys.argv[2]
HANG_FROM = 1_000_000
NAMES = sorted(os.listdir(FOLDER))
ENOENT, ENOSYS = 2, 38
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 17, 18, 25, 26
OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 27, 28, 29, 36, 42
FOPEN_DIRECT_IO = 1

device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device
READ_ONLY_AND_SAFE = 1 | 2 | 4
if libc.mount(b"staunch-test", POINT.encode(), b"fuse", READ_ONLY_AND_SAFE, options) != 0:
    sys.exit("cannot mount: " + os.strerror(ctypes.get_errno()))

def attributes(node):
    about = os.stat(FOLDER if node == 1 else os.path.join(FOLDER, NAMES[node - 2]))
    seconds, rest = divmod(about.st_mtime_ns, 10**9)
    return struct.pack(
        "<QQQQQQIIIIIIIIII", node, about.st_size, 0, seconds, seconds, seconds, rest, rest, rest,
        about.st_mode, 1, 0, 0, 0, 4096, 0)

def folder():
    entries = b""
    for place, name in enumerate(NAMES):
        name = name.encode()
        entry = struct.pack("<QQII", place + 2, place + 1, len(name), 8) + name
        entries += entry + bytes(-len(entry) % 8)
    return entries

def answer(unique, content=b"", error=0):
    try:
        os.write(device, struct.pack("<IiQ", 16 + len(content), -error, unique) + content)
    except OSError:
        pass  # The one who asked is gone.

hanging, hung_nodes, is_let_go = [], set(), False

def read(unique, node, body):
    _, offset, size = struct.unpack_from("<QQI", body)
    if node == 1:
        return answer(unique, b"")
    with open(os.path.join(FOLDER, NAMES[node - 2]), "rb") as file:
        file.seek(offset)
        answer(unique, file.read(size))

def serve(opcode, unique, node, body):
    if opcode == INIT:
        answer(unique, struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 64, 48, 65536, 1, 0, 0, 0))
    elif opcode == LOOKUP:
        name = body.rstrip(b"\0").decode()
        if name not in NAMES:
            return answer(unique, error=ENOENT)
        node = NAMES.index(name) + 2
        answer(unique, struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + attributes(node))
    elif opcode == GETATTR:
        answer(unique, struct.pack("<QII", 0, 0, 0) + attributes(node))
    elif opcode in (OPEN, OPENDIR):
        is_direct = node > 1 and "direct" in NAMES[node - 2]
        answer(unique, struct.pack("<QII", node, FOPEN_DIRECT_IO if is_direct else 0, 0))
    elif opcode == READ:
        read(unique, node, body)
    elif opcode == READDIR:
        _, offset, _ = struct.unpack_from("<QQI", body)
        answer(unique, folder() if offset == 0 else b"")
    elif opcode == STATFS:
        answer(unique, bytes(80))
    elif opcode in (RELEASE, RELEASEDIR, FLUSH):
        answer(unique)
    elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
        answer(unique, error=ENOSYS)

def hangs(opcode, node, body):
    if is_let_go or node < 2 or not NAMES[node - 2].startswith("slow"):
        return False
    is_late = opcode == READ and sum(struct.unpack_from("<QI", body, 8)) > HANG_FROM
    if is_late and node not in hung_nodes:
        hung_nodes.add(node)
        print("hangs", NAMES[node - 2], flush=True)
    return is_late or node in hung_nodes and opcode in (READ, GETATTR, FLUSH)

print("mounted", flush=True)
while True:
    ready, _, _ = select.select([device, sys.stdin], [], [])
    if sys.stdin in ready:
        line = sys.stdin.readline()
        is_let_go = True
        for request in hanging:
            serve(*request)
        hanging.clear()
        if not line:
            libc.umount2(POINT.encode(), 2)
            break
        continue
    try:
        request = os.read(device, 1 << 20)
    except OSError:
        break
    _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
    body = request[40:]
    if hangs(opcode, node, body):
        hanging.append((opcode, unique, node, body))
    else:
        serve(opcode, unique, node, body)
