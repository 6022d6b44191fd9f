-- Wireshark dissector for DOSTP (docs/dostp.md): EtherType 0x88B5, and UDP port 5288.
--
-- Use: tshark -X lua_script:dostp.lua -r FILE, or copy it to the folder of personal Lua plugins.
-- It shows header, greeting and trailer, checks the header's check and the payload's sum, and tells encrypted
-- payloads from plain ones. It must never need more than the frame.

local dostp = Proto("dostp", "DOSTP")

local types = {
    [1] = "DATA", [2] = "HELLO", [3] = "HELLO-REPLY", [4] = "PROBE", [5] = "BYE",
    [6] = "CONFLICT", [7] = "REQUEST", [8] = "REPLY", [9] = "ACK",
}
local modes = { [0] = "mac", [1] = "aead" }

local f = dostp.fields
f.version = ProtoField.uint8("dostp.version", "Version", base.DEC, nil, 0xf0)
f.type = ProtoField.uint8("dostp.type", "Type", base.DEC, types, 0x0f)
f.first = ProtoField.bool("dostp.flags.first", "FIRST", 8, nil, 0x01)
f.final = ProtoField.bool("dostp.flags.final", "FINAL", 8, nil, 0x02)
f.auth = ProtoField.bool("dostp.flags.auth", "AUTH", 8, nil, 0x04)
f.sum_flag = ProtoField.bool("dostp.flags.sum", "SUM", 8, nil, 0x08)
f.priority = ProtoField.bool("dostp.flags.priority", "PRIORITY", 8, nil, 0x10)
f.more = ProtoField.bool("dostp.flags.more", "MORE", 8, nil, 0x20)
f.reserved = ProtoField.uint8("dostp.flags.reserved", "Reserved", base.HEX, nil, 0xc0)
f.source = ProtoField.uint16("dostp.source", "Source address", base.HEX)
f.destination = ProtoField.uint16("dostp.destination", "Destination address", base.HEX)
f.source_port = ProtoField.uint16("dostp.source_port", "Source port", base.DEC)
f.destination_port = ProtoField.uint16("dostp.destination_port", "Destination port", base.DEC)
f.id = ProtoField.uint16("dostp.id", "Message id", base.DEC)
f.length = ProtoField.uint16("dostp.length", "Payload length", base.DEC)
f.sequence = ProtoField.uint8("dostp.sequence", "Sequence", base.DEC)
f.check = ProtoField.uint8("dostp.check", "Check", base.HEX)
f.check_cluster = ProtoField.uint8("dostp.check.cluster", "Cluster number by which the check is right", base.DEC)
f.payload = ProtoField.bytes("dostp.payload", "Payload")
f.boot = ProtoField.uint64("dostp.boot", "Boot number", base.HEX)
f.challenge = ProtoField.uint64("dostp.challenge", "Challenge", base.HEX)
f.echo = ProtoField.uint64("dostp.echo", "Echo", base.HEX)
f.mtu = ProtoField.uint16("dostp.mtu", "MTU", base.DEC)
f.link = ProtoField.ether("dostp.link", "Link address")
f.sum = ProtoField.uint32("dostp.sum", "Checksum (CRC-32C)", base.HEX)
f.mode = ProtoField.uint8("dostp.auth.mode", "Mode", base.DEC, modes, 0x80)
f.slot = ProtoField.uint8("dostp.auth.slot", "Key slot", base.DEC, nil, 0x01)
f.counter = ProtoField.uint64("dostp.auth.counter", "Counter", base.DEC)
f.tag = ProtoField.bytes("dostp.auth.tag", "Tag")

local bad = ProtoExpert.new("dostp.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local wrong = ProtoExpert.new("dostp.wrong", "Wrong checksum", expert.group.CHECKSUM, expert.severity.ERROR)
dostp.experts = { bad, wrong }

-- Bits without a library, for every Lua that Wireshark was built with.
local function xor(a, b)
    local result, place = 0, 1
    while a > 0 or b > 0 do
        local x, y = a % 2, b % 2
        if x ~= y then result = result + place end
        a, b, place = (a - x) / 2, (b - y) / 2, place * 2
    end
    return result
end

-- CRC-8/AUTOSAR, by a table.
local crc8 = {}
for byte = 0, 255 do
    local sum = byte
    for _ = 1, 8 do
        sum = sum >= 128 and xor((sum * 2) % 256, 0x2f) or sum * 2
    end
    crc8[byte] = sum
end

local function check_of(buffer, cluster)
    local sum = crc8[xor(0xff, cluster)]
    for at = 0, 14 do
        sum = crc8[xor(sum, buffer(at, 1):uint())]
    end
    return xor(sum, 0xff)
end

-- The check tells one cluster number: for each value there is exactly one by which it is right.
local function cluster_of(buffer)
    local check = buffer(15, 1):uint()
    for cluster = 0, 255 do
        if check_of(buffer, cluster) == check then return cluster end
    end
end

local crc32c = {}
for byte = 0, 255 do
    local sum = byte
    for _ = 1, 8 do
        local low = sum % 2
        sum = (sum - low) / 2
        if low == 1 then sum = xor(sum, 0x82f63b78) end
    end
    crc32c[byte] = sum
end

local function sum_of(buffer, length)
    local sum = 0xffffffff
    for at = 0, length - 1 do
        local low = sum % 256
        sum = xor(crc32c[xor(low, buffer(at, 1):uint())], (sum - low) / 256)
    end
    return xor(sum, 0xffffffff)
end

local function add_greeting(tree, buffer)
    if buffer:len() < 32 then
        tree:add_proto_expert_info(bad, "a greeting has 32 bytes")
        return
    end
    tree:add(f.boot, buffer(0, 8))
    tree:add(f.challenge, buffer(8, 8))
    tree:add(f.echo, buffer(16, 8))
    tree:add(f.mtu, buffer(24, 2))
    tree:add(f.link, buffer(26, 6))
end

-- Adds a trailer of keys; gives its length, and whether the payload is encrypted. No length: it is not whole,
-- and that was told.
local function add_auth(tree, buffer)
    local aead = buffer(0, 1):uint() >= 128
    local length = aead and 24 or 16
    if buffer:len() < length then
        tree:add_proto_expert_info(bad, "the trailer is cut off")
        return nil, aead
    end
    local auth = tree:add(dostp, buffer(0, length), "Authentication")
    auth:add(f.mode, buffer(0, 1))
    auth:add(f.slot, buffer(0, 1))
    auth:add(f.counter, buffer(1, 7))
    auth:add(f.tag, buffer(8, length - 8))
    return length, aead
end

local function add_header(tree, buffer)
    tree:add(f.version, buffer(0, 1))
    tree:add(f.type, buffer(0, 1))
    for _, field in ipairs({ f.first, f.final, f.auth, f.sum_flag, f.priority, f.more, f.reserved }) do
        tree:add(field, buffer(1, 1))
    end
    tree:add(f.source, buffer(2, 2))
    tree:add(f.destination, buffer(4, 2))
    tree:add(f.source_port, buffer(6, 2))
    tree:add(f.destination_port, buffer(8, 2))
    tree:add(f.id, buffer(10, 2))
    tree:add(f.length, buffer(12, 2))
    tree:add(f.sequence, buffer(14, 1))
    tree:add(f.check, buffer(15, 1))
    local cluster = cluster_of(buffer)
    if cluster then
        tree:add(f.check_cluster, buffer(15, 1), cluster):set_generated()
    end
end

-- Whether a bit of the flags is set.
local function has(flags, bit)
    return math.floor(flags / bit) % 2 == 1
end

-- Adds the trailer; gives its length, and whether the payload is encrypted. No length: it is not whole, and
-- that was told.
local function add_trailer(tree, buffer, flags, payload_end)
    local behind = buffer:len() - payload_end
    if has(flags, 4) then
        if behind == 0 then
            tree:add_proto_expert_info(bad, "the trailer is missing")
            return nil, false
        end
        return add_auth(tree, buffer(payload_end, behind):tvb())
    elseif has(flags, 8) then
        if behind < 4 then
            tree:add_proto_expert_info(bad, "the checksum is cut off")
            return nil, false
        end
        local item = tree:add(f.sum, buffer(payload_end, 4))
        if sum_of(buffer, payload_end) ~= buffer(payload_end, 4):uint() then
            item:add_proto_expert_info(wrong)
        end
        return 4, false
    end
    return 0, false
end

-- A frame and what stands behind it. Gives the length of the frame where its end is known.
local function add_frame(root, buffer, pinfo, place)
    if buffer:len() < 16 then
        root:add(dostp, buffer()):add_proto_expert_info(bad, "shorter than a header")
        return
    end
    local flags = buffer(1, 1):uint()
    local kind = buffer(0, 1):uint() % 16
    local length = buffer(12, 2):uint()
    local tree = root:add(dostp, buffer(0, math.min(16 + length, buffer:len())))
    add_header(tree, buffer)
    if place == 1 then
        local name = types[kind] or ("type " .. kind)
        pinfo.cols.info = string.format("%s %04x:%d > %04x:%d id=%d seq=%d len=%d", name,
            buffer(2, 2):uint(), buffer(6, 2):uint(), buffer(4, 2):uint(), buffer(8, 2):uint(),
            buffer(10, 2):uint(), buffer(14, 1):uint(), length)
    end
    if 16 + length > buffer:len() then
        tree:add_proto_expert_info(bad, "the payload is longer than the frame")
        return
    end
    local trailer, aead = add_trailer(tree, buffer, flags, 16 + length)
    if length > 0 then
        local payload = buffer(16, length)
        if kind >= 2 and kind <= 6 then
            add_greeting(tree, payload:tvb())
        else
            tree:add(f.payload, payload, payload:bytes():raw(), aead and "Payload, encrypted" or nil)
        end
    end
    return trailer and 16 + length + trailer
end

-- Whether the frame is one that may be joined to others: version 1, DATA, whole, to a node.
local function may_be_joined(buffer)
    return buffer(0, 1):uint() == 0x11 and buffer(1, 1):uint() % 4 == 3 and buffer(4, 2):uint() ~= 0xffff
end

-- Whether the second frame may stand right behind the first: of the same cluster, between the same ports of
-- the same nodes.
local function may_follow(before, buffer)
    return may_be_joined(before) and may_be_joined(buffer)
        and before(2, 8):bytes() == buffer(2, 8):bytes() and cluster_of(before) == cluster_of(buffer)
end

function dostp.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "DOSTP"
    local rest, before, place = buffer, nil, 1
    while true do
        if before and rest:len() >= 16 and not may_follow(before, rest) then
            root:add(dostp, rest()):add_proto_expert_info(bad, "no frame that may follow one with MORE")
            return
        end
        local length = add_frame(root, rest, pinfo, place)
        if not length or not has(rest(1, 1):uint(), 32) then return end
        if length == rest:len() then
            root:add_proto_expert_info(bad, "no frame follows one with MORE")
            return
        end
        before, rest, place = rest, rest(length, rest:len() - length):tvb(), place + 1
    end
end

DissectorTable.get("ethertype"):add(0x88b5, dostp)
DissectorTable.get("udp.port"):add(5288, dostp)
