"""Computes with NumPy what disttrain draws at random for a job, so that a peer begins with the same parameters and
trains on the same records. See common/random.h, common/initialize.h and input/order.h, which these functions
follow."""
import numpy as np

MASK = 0xFFFFFFFF


def stream_of(purpose, number=0):
    """The 64-bit FNV-1a hash of a purpose and a number."""
    value = 14695981039346656037
    for byte in purpose.encode() + number.to_bytes(8, "little"):
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def blocks(seed, stream, count):
    """The first `count` blocks of a stream: uint32 [count, 4]."""
    index = np.arange(count, dtype=np.uint64)
    counter = [index & MASK, index >> np.uint64(32), np.full(count, stream & MASK, np.uint64),
               np.full(count, stream >> 32, np.uint64)]
    key = [seed & MASK, seed >> 32]
    for _ in range(10):
        product0, product1 = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [(product1 >> np.uint64(32)) ^ counter[1] ^ np.uint64(key[0]), product1 & MASK,
                   (product0 >> np.uint64(32)) ^ counter[3] ^ np.uint64(key[1]), product0 & MASK]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return np.stack(counter, axis=1).astype(np.uint32)


def normal(seed, variable, shape, deviation):
    """The initial values of a variable with the initializer normal(deviation)."""
    elements = int(np.prod(shape))
    bits = blocks(seed, stream_of("initial value of " + variable), (elements + 3) // 4).astype(np.float64)
    radius = np.sqrt(-2.0 * np.log((bits[:, 0::2] + 0.5) / 2**32))
    angle = 2.0 * np.pi * bits[:, 1::2] / 2**32
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
    return (deviation * pairs.reshape(-1)[:elements]).astype(np.float32).reshape(shape)


def epoch_order(seed, epoch, records):
    """The records of an epoch in the order of their positions, with data.shuffle = "epoch"."""
    lefts = int(np.ceil(np.sqrt(records)))
    lefts += lefts * lefts < records
    rights = (records + lefts - 1) // lefts
    words = blocks(seed, stream_of("shuffle", epoch), 4).reshape(-1).astype(np.uint64)
    keys = words[0::2] | words[1::2] << np.uint64(32)

    def scaled(bits, bound):
        bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return ((bits ^ bits >> np.uint64(31)) >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)

    def passed(numbers):
        left, right = numbers % np.uint64(lefts), numbers // np.uint64(lefts)
        for turn in range(0, 8, 2):
            left = (left + scaled(keys[turn] ^ right, lefts)) % np.uint64(lefts)
            right = (right + scaled(keys[turn + 1] ^ left, rights)) % np.uint64(rights)
        return left + right * np.uint64(lefts)

    order = passed(np.arange(records, dtype=np.uint64))
    while np.any(order >= records):
        order = np.where(order >= records, passed(order), order)
    return order.astype(np.int64)
