"""Repositories made from PyPI packages by version and hash: wheels, C sources, C++ headers."""

_PYTHON = "/usr/bin/python3"

def _install(ctx, kind, lock):
    """Runs the installer; returns the folder that holds the unpacked packages."""
    ctx.report_progress("unpacking %s (once, about two minutes)" % lock.basename)
    result = ctx.execute(
        [str(ctx.path(ctx.attr.installer)), kind, _PYTHON, str(lock)],
        timeout = 3600,
        quiet = True,
    )
    if result.return_code:
        fail("Installing %s failed; run the same command again to take it up.\n%s" %
             (lock.basename, result.stderr))
    return result.stdout.strip().split("\n")[-1]

def _python_tag(ctx):
    program = "import sys; print('cp%d%d' % sys.version_info[:2])"
    result = ctx.execute([_PYTHON, "-c", program])
    if result.return_code:
        fail("%s does not run: %s" % (_PYTHON, result.stderr))
    return result.stdout.strip()

# Not linked: bindings to Python, plug-ins and profilers; libcaffe2_nvrtc needs the driver's
# libcuda and is opened at run time where there is a GPU; libnvvm belongs to the compiler.
_NOT_LINKED = [
    "libtorch_python",
    "libshm",
    "libtorch_global_deps",
    "libcaffe2_nvrtc",
    "libnvtx3interop",
    "nvshmem_",
    "libnvperf",
    "libpcsamp",
    "libcheckpoint",
    "libnvblas",
    "libcufftw",
    "libcufile_rdma",
    "libcusolverMg",
    "libnvvm",
]

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "torch",
    srcs = glob(["lib/*.so*"], exclude = {not_linked}),
    hdrs = glob(["torch_include/**/*.h", "torch_include/**/*.hpp", "torch_include/**/*.cuh"]),
    includes = ["torch_include", "torch_include/torch/csrc/api/include", "cuda_include"],
    deps = [":cuda_headers"],
)

# Without the libraries for GPUs, which are half of a program's start: for programs that leave GPUs to other processes.
cc_library(
    name = "torch_cpu",
    srcs = glob([
        "lib/libc10.so",
        "lib/libcudart.so*",
        "lib/libcupti.so*",
        "lib/libgomp.so*",
        "lib/libtorch_cpu.so",
    ]),
    hdrs = glob(["torch_include/**/*.h", "torch_include/**/*.hpp", "torch_include/**/*.cuh"]),
    includes = ["torch_include", "torch_include/torch/csrc/api/include", "cuda_include"],
    deps = [":cuda_headers"],
)

cc_library(
    name = "cuda_headers",
    hdrs = glob(["cuda_include/**"]),
    includes = ["cuda_include"],
)

cc_library(
    name = "cudnn",
    hdrs = glob(["cudnn_include/**/*.h"]),
    includes = ["cudnn_include"],
    deps = [":torch"],
)

cc_library(
    name = "nccl",
    hdrs = glob(["nccl_include/**/*.h"]),
    includes = ["nccl_include"],
    deps = [":torch"],
)

filegroup(
    name = "nvcc",
    srcs = ["cuda_home/bin/nvcc"],
)

filegroup(
    name = "cuda_home_files",
    srcs = glob(["cuda_home/bin/**", "cuda_home/nvvm/bin/**", "cuda_home/nvvm/libdevice/**"]),
)

# One small file stands for the folder of wheels: Bazel need not hash 4.7 GB. It holds the
# folder's name, which is the lock file's hash.
filegroup(
    name = "python_env",
    srcs = ["python_env.txt"],
)

exports_files(["python_env.txt"])
"""

def _pypi_wheels_impl(ctx):
    tag = _python_tag(ctx)
    locks = {value: ctx.path(key) for key, value in ctx.attr.locks.items()}
    if tag not in locks:
        fail("%s is %s; the wheels are pinned for %s." % (_PYTHON, tag, ", ".join(sorted(locks))))
    site = _install(ctx, "wheels", locks[tag])
    ctx.symlink(site + "/nvidia/cu13/include", "cuda_include")
    ctx.symlink(site + "/nvidia/nccl/include", "nccl_include")
    ctx.symlink(site + "/nvidia/cudnn/include", "cudnn_include")
    ctx.symlink(site + "/nvidia/cu13", "cuda_home")

    # torch's include folder without google/ (another Protobuf): one link for each entry.
    include = ctx.path(site + "/torch/include")
    for entry in include.readdir():
        if entry.basename != "google":
            ctx.symlink(entry, "torch_include/" + entry.basename)

    # All shared objects in ONE folder, so that $ORIGIN in their RPATH finds the others.
    folders = [site + "/torch/lib"]
    for package in ctx.path(site + "/nvidia").readdir():
        folders.append(str(package) + "/lib")
    excluded = []
    for folder in folders:
        if not ctx.path(folder).exists:
            continue
        for library in ctx.path(folder).readdir():
            name = library.basename
            if ".so" in name:
                ctx.symlink(library, "lib/" + name)
                for prefix in _NOT_LINKED:
                    if name.startswith(prefix):
                        excluded.append("lib/" + name)
    ctx.file("python_env.txt", "%s\n%s\n" % (_PYTHON, site))
    ctx.file("BUILD", _BUILD.format(not_linked = repr(excluded)))

pypi_wheels = repository_rule(
    implementation = _pypi_wheels_impl,
    attrs = {
        "installer": attr.label(allow_single_file = True),
        "locks": attr.label_keyed_string_dict(allow_files = True),
    },
    environ = ["TRITONRL_CACHE"],
)

_TREE_SITTER_BUILD = """
_QUIET = ["-std=c11", "-w", "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L"]

cc_library(
    name = "core",
    srcs = glob(["core/lib/src/**/*.c", "core/lib/src/**/*.h"], exclude = ["core/lib/src/lib.c"]),
    hdrs = glob(["core/lib/include/**/*.h"]),
    copts = _QUIET + ["-Iexternal/tree_sitter/core/lib/src"],
    includes = ["core/lib/include"],
)

cc_library(
    name = "python",
    srcs = glob(["grammar/src/*.c", "grammar_include/tree_sitter/*.h"]),
    copts = _QUIET + ["-Iexternal/tree_sitter/grammar_include"],
    visibility = ["//visibility:public"],
    deps = [":core"],
)
"""

def _pypi_sources_impl(ctx):
    folder = _install(ctx, "sources", ctx.path(ctx.attr.lock))
    for entry in ctx.path(folder).readdir():
        if entry.basename.startswith("tree-sitter-0") or entry.basename.startswith("tree_sitter-0"):
            ctx.symlink(str(entry) + "/tree_sitter/core", "core")
            # The grammar includes <tree_sitter/parser.h>, which lies in the core's lib/src.
            ctx.symlink(str(entry) + "/tree_sitter/core/lib/src", "grammar_include/tree_sitter")
        elif "python" in entry.basename:
            ctx.symlink(entry, "grammar")
    ctx.file("BUILD", _TREE_SITTER_BUILD)

pypi_sources = repository_rule(
    implementation = _pypi_sources_impl,
    attrs = {
        "installer": attr.label(allow_single_file = True),
        "lock": attr.label(allow_single_file = True),
    },
    environ = ["TRITONRL_CACHE"],
)

_CUDNN_FRONTEND_BUILD = """
cc_library(
    name = "cudnn_frontend",
    hdrs = glob(["include/**"]),
    defines = ["CUDNN_FRONTEND_SKIP_JSON_LIB"],
    includes = ["include"],
    visibility = ["//visibility:public"],
    deps = ["@pypi//:cudnn"],
)
"""

def _pypi_headers_impl(ctx):
    folder = _install(ctx, "headers", ctx.path(ctx.attr.lock))
    ctx.symlink(folder + "/include", "include")
    ctx.file("BUILD", _CUDNN_FRONTEND_BUILD)

pypi_headers = repository_rule(
    implementation = _pypi_headers_impl,
    attrs = {
        "installer": attr.label(allow_single_file = True),
        "lock": attr.label(allow_single_file = True),
    },
    environ = ["TRITONRL_CACHE"],
)

_FLASHINFER_BUILD = """
# One small file stands for the 60 MB of headers: it holds the folder's name, which is the lock
# file's hash. The compiler finds them by FLASHINFER_COPTS.
cc_library(
    name = "flashinfer",
    hdrs = ["flashinfer.h"],
    visibility = ["//visibility:public"],
)
"""

# In this order, and before the CCCL of the CUDA compiler, which is too old for them: with -I,
# since what Bazel itself passes for a library's folders (-isystem) comes after the compiler's own.
FLASHINFER_COPTS = ["-Iexternal/flashinfer/" + folder for folder in [
    "include",
    "cccl/cub",
    "cccl/libcudacxx/include",
    "cccl/thrust",
    "cutlass/include",
    "cutlass/tools/util/include",
]]

def _pypi_flashinfer_impl(ctx):
    folder = _install(ctx, "headers", ctx.path(ctx.attr.lock))
    for part in ["include", "cccl", "cutlass"]:
        ctx.symlink(folder + "/flashinfer/data/" + part, part)
    ctx.file("flashinfer.h", "// %s\n" % folder.split("/")[-1])
    ctx.file("BUILD", _FLASHINFER_BUILD)

pypi_flashinfer = repository_rule(
    implementation = _pypi_flashinfer_impl,
    attrs = {
        "installer": attr.label(allow_single_file = True),
        "lock": attr.label(allow_single_file = True),
    },
    environ = ["TRITONRL_CACHE"],
)
