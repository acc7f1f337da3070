"""Attempts to talk to somebody."""

import os


def _connect(family, kind, address, data=b"escape"):
    with socket.socket(family, kind) as out:
        out.settimeout(2)
        out.connect(address)
        out.send(data)


def connect_over_tcp():
    port = PARAM["tcp_port"]
    return each(
        loopback=lambda: _connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)),
        any=lambda: _connect(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", port)),
        v6=lambda: _connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", port)),
        outside=lambda: _connect(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)),
    )


def send_over_udp():
    port = PARAM["udp_port"]
    return each(
        loopback=lambda: _connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port)),
        broadcast=lambda: _connect(socket.AF_INET, socket.SOCK_DGRAM, ("255.255.255.255", port)),
        name=lambda: socket.getaddrinfo("example.org", 80),
    )


def connect_to_abstract_sockets():
    name = "\0" + PARAM["abstract_name"]
    return each(
        stream=lambda: _connect(socket.AF_UNIX, socket.SOCK_STREAM, name),
        datagram=lambda: _connect(socket.AF_UNIX, socket.SOCK_DGRAM, name),
        init=lambda: _connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0/org/freedesktop/systemd1/private"),
    )


def connect_to_sockets_by_path():
    paths = [PARAM["socket_path"], "/run/dbus/system_bus_socket", "/var/run/docker.sock", "/dev/log"]
    return each(**{path: lambda path=path: _connect(socket.AF_UNIX, socket.SOCK_STREAM, path) for path in paths})


def netlink_to_the_kernel():
    """Lists links, brings one up, listens for the host's events."""

    def talk(protocol, message):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as out:
            out.bind((0, 0))
            out.send(message)
            return len(out.recv(65536))

    links = struct.pack("IHHII B", 17, 18, 0x301, 1, 0, 0)
    return each(
        links=lambda: talk(0, links),
        audit=lambda: talk(9, struct.pack("IHHII", 16, 1000, 5, 1, 0)),
        events=lambda: talk(15, b"\0" * 16),
    )


def vsock_to_the_host():
    """Not in any network namespace: the way from a virtual machine to its host."""
    actions = {}
    for cid in (2, 1, 0, 3):
        actions[f"cid {cid}"] = lambda cid=cid: _connect(40, socket.SOCK_STREAM, (cid, PARAM["vsock_port"]))
    actions["device"] = lambda: os.open("/dev/vsock", os.O_RDWR)
    return each(**actions)


def raw_packets():
    return each(
        packet=lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3),
        icmp=lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
        ping=lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1),
    )


def every_other_family():
    """Each family is a part of the kernel with a history."""
    made = []
    for family in range(46):
        for kind in (1, 2, 3, 5):
            fd = LIBC.socket(family, kind, 0)
            if fd >= 0:
                made.append(family)
                os.close(fd)
    return f"families made: {sorted(set(made))}"


def listen_for_the_next_candidate():
    """A name taken for good, by a process that stays."""
    if os.fork() != 0:
        return "left"
    try:
        os.setsid()
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind("\0" + PARAM["mark"])
        server.listen()
    finally:
        time.sleep(1000)


def pass_descriptors_around():
    """Descriptors sent to nobody stay alive in the kernel; the pair itself is allowed."""
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    count = 0
    left.setblocking(False)
    try:
        while count < 10000:
            fds = struct.pack("2i", left.fileno(), right.fileno())
            left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            count += 1
    except OSError as error:
        return f"{name_of(error)} after {count} messages"
    return f"DONE {count}"
