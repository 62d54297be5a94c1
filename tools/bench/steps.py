"""Observes the steps of workers from outside. The kernel counts the bytes that each socket has received (tcp_info, read
with NETLINK_SOCK_DIAG), and all parameters answer each step of a worker. So every `model_bytes` bytes are one step
whose answer has arrived. This works within milliseconds, and without a chief. It needs a cluster with transport.kind = "tcp".

For example, with a model of 318,040 bytes: a worker's count grows from 3,180,400 to 3,498,440. One more answer has
arrived, so one more step is done.
"""
import os
import socket
import struct
import time

SOCK_DIAG_BY_FAMILY = 20
NLMSG_DONE, NLM_F_REQUEST_DUMP = 3, 0x301
INET_DIAG_INFO = 2
STATES = (1 << 1) | (1 << 8)  # established, close-wait
BYTES_RECEIVED = 128          # in struct tcp_info
PERIOD = 0.002


class SocketCounters:
    """Reads the bytes received so far by every TCP socket whose remote port is one of these, by inode."""

    def __init__(self, ports):
        self.ports = set(ports)
        self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 4)
        self.netlink.settimeout(5)
        body = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), STATES) + bytes(48)
        self.request = struct.pack("=IHHII", 16 + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 1, 0) + body

    def read(self):
        counters = {}
        self.netlink.send(self.request)
        while True:
            data, at = self.netlink.recv(1 << 18), 0
            while at < len(data):
                length, kind = struct.unpack_from("=IH", data, at)
                if kind == NLMSG_DONE:
                    return counters
                if kind != SOCK_DIAG_BY_FAMILY:
                    raise OSError(f"sock_diag answered with message type {kind}, expected {SOCK_DIAG_BY_FAMILY}: load the "
                                  "kernel module inet_diag")
                if struct.unpack_from(">H", data, at + 16 + 6)[0] in self.ports:
                    inode = struct.unpack_from("=I", data, at + 16 + 68)[0]
                    counters[inode] = self.received(data, at + 16 + 72, at + length)
                at += (length + 3) & ~3

    @staticmethod
    def received(data, at, end):
        while at + 4 <= end:
            length, kind = struct.unpack_from("=HH", data, at)
            if kind == INET_DIAG_INFO:
                return struct.unpack_from("=Q", data, at + 4 + BYTES_RECEIVED)[0]
            at += (length + 3) & ~3
        return 0


class StepWatch:
    """The steps of a cluster's workers. Call sample() every few milliseconds: it sees what has happened since the
    last."""

    def __init__(self, cluster, model_bytes):
        self.cluster, self.model_bytes = cluster, model_bytes
        ports = [int(address.rsplit(":", 1)[1]) for task, address in cluster.addresses.items() if task.startswith("ps")]
        self.counters = SocketCounters(ports)
        self.owners = {}    # socket's inode -> worker that has it open, or None for another process
        self.last = {}      # socket's inode -> bytes received until the last sample
        self.bytes = {}     # worker -> bytes that all its sockets have received, closed ones too
        self.moved = {}     # worker -> time at which its number of steps last grew
        self.gaps = {}      # worker -> the longest time without a step since reset()
        self.blind = 0.0    # the longest time between two samples since reset()
        self.sampled = None
        self.old = set()
        self.sample()
        self.reset()

    def sample(self):
        now, counters = time.time(), self.counters.read()
        if any(inode not in self.owners for inode in counters):
            self.find_owners(counters)
        for inode, count in counters.items():
            worker = self.owners[inode]
            if worker is not None:
                self.grow(now, worker, count - self.last.get(inode, 0))
        self.last = counters
        self.owners = {inode: worker for inode, worker in self.owners.items() if inode in counters}
        if self.sampled is not None:
            self.blind = max(self.blind, now - self.sampled)
        self.sampled = now
        return now

    def grow(self, now, worker, count):
        before = self.bytes.get(worker, 0)
        self.bytes[worker] = before + count
        if self.bytes[worker] // self.model_bytes == before // self.model_bytes:
            return
        self.gaps[worker] = max(self.gaps.get(worker, 0.0), now - self.moved.get(worker, now))
        self.moved[worker] = now

    def find_owners(self, counters):
        for inode in counters:
            self.owners.setdefault(inode, None)
        for task, process in self.cluster.processes.items():
            if not task.startswith("worker"):
                continue
            try:
                for entry in os.scandir(f"/proc/{process.pid}/fd"):
                    link = os.readlink(entry.path)
                    if link.startswith("socket:[") and int(link[8:-1]) in counters:
                        self.owners[int(link[8:-1])] = task
            except OSError:
                continue  # the worker has ended, or has closed a socket since scandir()

    def watch(self, seconds):
        """Samples for so many seconds."""
        end = time.time() + seconds
        while self.sample() < end:
            time.sleep(PERIOD)

    def until_all_step(self, workers):
        """Samples until each of the workers has made a step from now on. A worker that has just joined takes a
        moment."""
        began = self.sample()
        while any(self.moved.get(worker, 0.0) <= began for worker in workers):
            if self.sample() - began > 60:
                raise TimeoutError(f"not all of {', '.join(workers)} made a step within 60 s")
            time.sleep(PERIOD)

    # These methods report the gaps and the steps that the samples have shown.

    def reset(self):
        """Forgets the gaps so far."""
        self.gaps, self.blind = {}, 0.0

    def longest_gap(self, workers):
        """The longest time without a step of one of these workers, since reset() and up to the last sample."""
        return max(max(self.gaps.get(worker, 0.0), self.sampled - self.moved.get(worker, self.sampled))
                   for worker in workers)

    def total(self):
        """Steps of all workers so far, with fractions: the bytes of a step arrive one after the other."""
        return sum(self.bytes.values()) / self.model_bytes

    def forget_sockets(self):
        """Makes new_steps() count only steps of sockets that don't exist yet."""
        self.old = set(self.last)

    def new_steps(self):
        """Applied steps of sockets that are new since forget_sockets(). The first parameters that a channel receives
        are those that it begins with, so they don't count."""
        received = {}
        for inode, count in self.last.items():
            worker = self.owners.get(inode)
            if worker is not None and inode not in self.old:
                received[worker] = received.get(worker, 0) + count
        return sum(max(0, count // self.model_bytes - 1) for count in received.values())
