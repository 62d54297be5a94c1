"""Free ports for the daemons of a cluster file.

1. The ports are outside of ip_local_port_range, so that no outgoing connection can take one before its daemon does.
2. Each port is locked until this process ends, so that tests that run at the same time don't share one. The folder of
   the locks doesn't depend on TMPDIR, because a test gives the tools that it starts another one.
3. The port 1000 above, where a daemon serves its metrics, is free too.
"""
import fcntl
import os
import random
import socket
from pathlib import Path

LOCKS = Path(f"/tmp/disttrain-ports-{os.getuid()}")
CANDIDATES = [port for thousand in range(20000, 32000, 2000) for port in range(thousand, thousand + 1000)]
HELD = []


def is_free(port):
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def take(port):
    lock = os.open(LOCKS / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    if is_free(port) and is_free(port + 1000):
        HELD.append(lock)
        return True
    os.close(lock)
    return False


def free_ports(count):
    LOCKS.mkdir(exist_ok=True)
    ports = []
    for port in random.sample(CANDIDATES, len(CANDIDATES)):
        if len(ports) == count:
            return ports
        if take(port):
            ports.append(port)
    raise AssertionError(f"of the ports {CANDIDATES[0]} to {CANDIDATES[-1]} only {len(ports)} are free")


def free_address():
    return f"127.0.0.1:{free_ports(1)[0]}"
