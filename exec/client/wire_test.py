"""Frames and values: round trips, bounds, and an executor that is gone or sends no replies."""

import enum
import json
import math
import os
import socket
import struct
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "workers", "python")]

import numpy
import torch

from client import wire
from client.session import Session


def frame(reply, payload=b""):
    header = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return struct.pack("<II", len(header), len(payload)) + header + payload


class ConnectionTest(unittest.TestCase):
    def setUp(self):
        self.ours, theirs = socket.socketpair()
        self.addCleanup(self.ours.close)
        self.addCleanup(theirs.close)
        for sock in (self.ours, theirs):
            sock.settimeout(20)
        self.connection = wire.Connection(theirs)

    def test_a_request_and_its_reply(self):
        self.ours.sendall(frame({"out": 1}, b"abc"))
        reply, payload = self.connection.exchange({"do": "begin"}, (b"xy", b"z"))
        self.assertEqual((reply, bytes(payload)), ({"out": 1}, b"abc"))
        data = self.ours.recv(1000)
        header, size = struct.unpack("<II", data[:8])
        self.assertEqual((json.loads(data[8 : 8 + header]), data[8 + header :], size), ({"do": "begin"}, b"xyz", 3))

    def test_no_reply_ends_the_connection_for_good(self):
        for data in (b"", b"\x01", frame({})[:-1], frame(b"{"), frame(b"[]"), frame(b"\xff"), frame({}) + b"x"):
            with self.subTest(data=data):
                ours, theirs = socket.socketpair()
                connection = wire.Connection(theirs)
                ours.sendall(data)
                ours.shutdown(socket.SHUT_WR)
                for _ in range(2):
                    with self.assertRaises(wire.ProtocolError):
                        connection.exchange({"do": "begin"})
                ours.close()
                theirs.close()

    def test_replies_are_bounded(self):
        for header, payload in ((wire.MAX_HEADER + 1, 0), (2, wire.MAX_PAYLOAD + 1), (0xFFFFFFFF, 0xFFFFFFFF)):
            with self.subTest(header=header, payload=payload):
                self.ours.sendall(struct.pack("<II", header, payload))
                with self.assertRaisesRegex(wire.ProtocolError, "a reply of"):
                    self.connection.exchange({"do": "begin"})
                self.setUp()

    def test_a_request_that_is_too_large_is_not_sent(self):
        with self.assertRaisesRegex(ValueError, "too large"):
            self.connection.exchange({"text": "x" * (wire.MAX_HEADER + 1)})
        self.ours.sendall(frame({"fine": True}))
        self.assertEqual(self.connection.exchange({})[0], {"fine": True})

    def test_numbers_that_json_lacks_are_never_written(self):
        with self.assertRaises(ValueError):
            self.connection.exchange({"x": math.nan})

    def test_a_refusal_and_an_error_are_exceptions(self):
        session = Session()
        session.connection = self.connection
        self.ours.sendall(frame({"error": "no such size"}))
        with self.assertRaisesRegex(RuntimeError, "^no such size$"):
            session.call({"do": "op"})
        self.assertFalse(session.refused)
        self.ours.sendall(frame({"refused": "aten::mm computes"}))
        with self.assertRaisesRegex(RuntimeError, "^refused: aten::mm computes$"):
            session.call({"do": "op"})
        self.assertTrue(session.refused)

    def test_freed_storages_go_with_the_next_request(self):
        session = Session()
        session.connection = self.connection
        session.freed.extend([7, 9])
        for sent in ({"do": "x", "free": [7, 9]}, {"do": "x"}):
            self.ours.sendall(frame({}))
            session.call({"do": "x"})
            data = self.ours.recv(1000)
            self.assertEqual(json.loads(data[8:]), sent)


class ValueTest(unittest.TestCase):
    def round_trip(self, value):
        payload = wire.Payload()
        node = json.loads(json.dumps(wire.encode(value, payload.add), allow_nan=False))
        raw = memoryview(b"".join(payload.parts))
        return wire.decode(node, lambda kind, node: wire.host_tensor(node[kind], raw))

    def test_values(self):
        for value in (
            None, True, -3, 2.5, "text", [1, [2]], (1, (2, None)), {"a": (1,), 3: [2]}, 1 + 2j, complex(0, math.inf),
            torch.float8_e4m3fn, torch.strided, torch.channels_last, math.inf, -math.inf, torch.device("cuda", 0),
        ):  # fmt: skip
            self.assertEqual(self.round_trip(value), value)
        self.assertTrue(math.isnan(self.round_trip(math.nan)))
        one = enum.IntEnum("E", "A").A
        for value in (numpy.int64(3), numpy.float32(0.5), numpy.bool_(True), numpy.complex64(1j), one):
            got = self.round_trip(value)
            self.assertEqual(got, value)
            self.assertIn(type(got), (int, float, bool, complex))

    def test_configurations(self):
        node = {"config": [["width", 4], ["inner", {"config": [["rate", {"float": "inf"}]]}]]}
        config = wire.decode(node, None)
        self.assertEqual((config.width, config["inner"].rate), (4, math.inf))

    def test_host_tensors(self):
        base = torch.arange(24).reshape(4, 6)
        for tensor in (
            base.to(torch.int16).t(), base.to(torch.bfloat16)[::2], base.to(torch.bool), torch.tensor(1.5),
            torch.empty(0, 3), torch.complex(base.float(), base.float()).conj(), base.to(torch.float8_e5m2),
        ):  # fmt: skip
            got = self.round_trip(tensor)
            self.assertEqual(got.dtype, tensor.dtype)
            self.assertTrue(torch.equal(got.to(torch.complex64), tensor.to(torch.complex64)))

    def test_what_cannot_be_sent(self):
        endless = []
        endless.append(endless)
        for value in (object(), {1, 2}, {(1,): 2}, endless, torch.eye(2).to_sparse(), numpy.ones(3)):
            with self.assertRaises((TypeError, ValueError)):
                self.round_trip(value)

    def test_contents_outside_of_the_payload(self):
        for at, shape in ((0, [5]), (-4, [1]), (13, [1]), (0, [-1])):
            with self.assertRaises(wire.ProtocolError):
                wire.host_tensor({"at": at, "shape": shape, "dtype": "float32"}, memoryview(bytes(16)))
        for name in ("Tensor", "no_such", 3):
            with self.assertRaises(wire.ProtocolError):
                wire.dtype_of(name)


if __name__ == "__main__":
    unittest.main()
