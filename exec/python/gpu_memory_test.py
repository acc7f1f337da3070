"""Windows of shared memory, and the channel that passes their descriptors (a GPU's windows are the same to their users)."""

import mmap
import os
import socket
import unittest

import testing  # first: it finds the others
import torch

import gpu_memory
import layout
from channel import Control

SIZE = 4096


class WindowTest(unittest.TestCase):
    def setUp(self):
        self.window, self.fd = gpu_memory.Window.create(SIZE, "interpreter")

    def tearDown(self):
        self.window.close()

    def test_both_sides_see_what_is_written(self):
        self.assertEqual(int(self.window.bytes.sum()), 0)
        other = gpu_memory.Window.open(self.fd, SIZE, "interpreter")
        other.bytes[5] = 7
        self.assertEqual(int(self.window.bytes[5]), 7)
        self.window.bytes[6] = 8
        self.assertEqual(int(other.bytes[6]), 8)
        with self.assertRaises(OSError):  # open() closed it
            os.fstat(self.fd)
        other.close()
        other.close()  # once more does nothing
        self.assertIsNone(other.bytes)

    def test_nobody_can_take_the_memory_away(self):
        for size in (0, SIZE // 2, 2 * SIZE):
            with self.assertRaises(PermissionError):
                os.ftruncate(self.fd, size)
        os.close(self.fd)

    def test_a_wrong_size_is_said(self):
        for size, message in ((0, "in_bytes and out_bytes"), (2 * SIZE, "instead of")):
            with self.assertRaisesRegex(ValueError, message):
                gpu_memory.Window.open(os.dup(self.fd), size, "interpreter")
        os.close(self.fd)

    def test_sizes_are_whole_pages(self):
        sizes = [gpu_memory.round_up(size, "interpreter") for size in (0, 1, 4096, 4097)]
        self.assertEqual(sizes, [4096, 4096, 4096, 8192])
        os.close(self.fd)


class MemoryTest(unittest.TestCase):
    """layout.Writer and layout.Reader on a tensor of bytes."""

    def setUp(self):
        self.memory = torch.zeros(SIZE, dtype=torch.uint8)
        self.writer, self.reader = layout.Writer(self.memory, addresses=True), layout.Reader(self.memory)

    def test_values_come_back(self):
        values = [
            torch.randn(3, 4).t(),
            torch.tensor(True),
            {"a": torch.arange(5), "b": (torch.empty(0, 2), 2.5, None)},
            torch.randn(6).to(torch.float8_e5m2),
            torch.randn(4, dtype=torch.complex64).conj(),
        ]
        got = self.reader.get(self.writer.put(values))
        for a, b in zip(layout.tensors(values), layout.tensors(got)):
            self.assertEqual((a.shape, a.dtype, a.stride()), (b.shape, b.dtype, b.stride()))
            self.assertTrue(a.resolve_conj().double().equal(b.double()) if not a.is_complex() else a.equal(b))

    def test_copies_are_fresh(self):
        node = self.writer.put(torch.ones(3))
        got = self.reader.get(node)
        self.memory.zero_()
        self.assertEqual(got.tolist(), [1, 1, 1])

    def test_no_room_and_no_such_place(self):
        self.assertIsNone(self.writer.put(torch.zeros(SIZE))["tensor"]["offset"])
        node = self.writer.put(torch.zeros(2))
        for offset in (-8, SIZE - 4):
            node["tensor"]["offset"] = offset
            with self.assertRaisesRegex(ValueError, "outside its memory"):
                self.reader.get(node)


class ControlTest(unittest.TestCase):
    def test_descriptors_go_with_a_message(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fds = [os.memfd_create(name) for name in ("a", "b")]
        os.ftruncate(fds[1], SIZE)
        Control(theirs.fileno()).send({"opened": 1}, fds)
        data, received, _, _ = socket.recv_fds(ours, 100, 4)
        self.assertEqual((data, len(received)), (b'{"opened": 1}', 2))
        mmap.mmap(received[1], SIZE).close()
        Control(theirs.fileno()).send({"next": 2})  # the socket is still open
        self.assertEqual(ours.recv(100), b'{"next": 2}')
        for fd in (*fds, *received):
            os.close(fd)
        ours.close()
        theirs.close()


if __name__ == "__main__":
    unittest.main()
