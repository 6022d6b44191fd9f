"""The codec hpack, spoken to by lines: words of hex, each behind a dash.

codec.py encode SEED COUNT    random blocks: the block, then names and values
codec.py decode               reads a block a line: an empty word, then names and values
"""

import random
import sys

from hpack import Decoder, Encoder


def say(*words):
    print(" ".join("-" + word.hex() for word in words))


def encode(seed, count):
    chance = random.Random(seed)
    encoder = Encoder()
    names = [b":path", b"accept", b"user-agent", b"x-one", b"x-two", b"cookie", b"referer"]
    values = [bytes(chance.choices(range(32, 127), k=size)) for size in (0, 1, 9, 40, 300, 3000)]
    for _ in range(count):
        if chance.random() < 0.05:
            encoder.header_table_size = chance.choice([0, 64, 500, 4096])
        fields = []
        for _ in range(chance.randrange(12)):
            value = chance.choice(values) if chance.random() < 0.7 else chance.randbytes(chance.randrange(60))
            fields.append((chance.choice(names), value, chance.random() < 0.1))
        block = encoder.encode(fields, huffman=chance.random() < 0.7)
        say(block, *(part for name, value, _ in fields for part in (name, value)))


def decode():
    decoder = Decoder()
    for line in sys.stdin:
        fields = decoder.decode(bytes.fromhex(line.strip()), raw=True)
        say(b"", *(part for field in fields for part in (field[0], field[1])))


if sys.argv[1] == "encode":
    encode(int(sys.argv[2]), int(sys.argv[3]))
else:
    decode()
