"""One wrapper macro for each kind of target, so that options live in one place."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//third_party:cuda.bzl", "cuda_objects")
load("//third_party:proto.bzl", "cc_proto_sources")

_COPTS = [
    "-Wall",
    "-Werror",
    # Tensor sizes are int64_t as in LibTorch, and size() of containers is unsigned: a cast at each
    # comparison of the two would hide more than the warning shows.
    "-Wno-sign-compare",
    "-Wno-unknown-pragmas",
    # GCC 12 gives these for sound code of std::string that comes out of a precompiled header.
    "-Wno-array-bounds",
    "-Wno-restrict",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
    # Headers of single operators instead of all of ATen: halves the compile time.
    "-DAT_PER_OPERATOR_HEADERS",
]

# Tests need no optimized code; -O1 reduces the compile time by a quarter.
TEST_COPTS = ["-O1"]

def _with_precompiled(header, copts):
    """The precompiled header's library and the options that include it.

    It fits its own flags only: files with other options are compiled without it."""
    if copts:
        return [], copts
    return ["//third_party:" + header], ["-include", "third_party/%s.h" % header]

def tritonrl_cc_library(name, deps = [], copts = [], **kwargs):
    """A C++ library; Abseil is always there."""
    precompiled, copts = _with_precompiled("common_headers", copts)
    cc_library(
        name = name,
        deps = deps + precompiled + ["//third_party:absl"],
        copts = _COPTS + copts,
        **kwargs
    )

def tritonrl_cc_binary(name, srcs = None, deps = [], copts = [], **kwargs):
    """A C++ program; its source is name_main.cc unless srcs says otherwise."""
    precompiled, copts = _with_precompiled("common_headers", copts)
    cc_binary(
        name = name,
        srcs = srcs or [name + "_main.cc"],
        deps = deps + precompiled + ["//third_party:absl"],
        copts = _COPTS + copts,
        **kwargs
    )

def tritonrl_cc_test(name, srcs = None, deps = [], copts = [], size = "small", **kwargs):
    """A GoogleTest in name.cc (unless srcs says otherwise); its main comes with it."""
    precompiled, copts = _with_precompiled("test_headers", copts)
    cc_test(
        name = name,
        srcs = srcs or [name + ".cc"],
        size = size,
        deps = deps + precompiled + ["//third_party:gtest_main", "//third_party:absl"] + select({
            "//third_party:with_tsan": ["//third_party:absl_tsan"],
            "//conditions:default": [],
        }),
        copts = _COPTS + TEST_COPTS + copts,
        **kwargs
    )

def tritonrl_proto_library(name, srcs, deps = [], grpc = False, visibility = None):
    """C++ code of Protobuf messages: include "package/file.pb.h" (grpc = True: "file.grpc.pb.h" too)."""
    cc_proto_sources(
        name = name + "_sources",
        srcs = srcs,
        deps = [dep + "_sources" for dep in deps],
        grpc = grpc,
        visibility = visibility,
    )
    native.filegroup(
        name = name + "_headers",
        srcs = [":" + name + "_sources"],
        output_group = "headers",
    )
    cc_library(
        name = name,
        srcs = [":" + name + "_sources"],
        hdrs = [":" + name + "_headers"],
        copts = ["-w"],
        deps = deps + ["//third_party:protobuf"] + (["//third_party:grpc"] if grpc else []),
        visibility = visibility,
    )

def tritonrl_cuda_library(
        name,
        srcs,
        hdrs = [],
        deps = [],
        copts = [],
        architectures = None,
        third_party_kernels = False,
        **kwargs):
    """CUDA C++ compiled by the pinned nvcc; links into any C++ target. Warnings are errors.

    architectures: those of GPUs to compile for, else sm_80, sm_89 and sm_90a.
    third_party_kernels: the sources instantiate another project's kernels; warnings are off."""
    cuda_objects(
        name = name + "_objects",
        srcs = srcs,
        hdrs = hdrs,
        deps = deps + ["//third_party:torch", "//third_party:absl"],
        copts = copts,
        architectures = architectures,
        third_party_kernels = third_party_kernels,
    )
    cc_library(
        name = name,
        srcs = [":" + name + "_objects"],
        hdrs = hdrs,
        deps = deps + ["//third_party:torch", "//third_party:absl"],
        linkstatic = True,
        **kwargs
    )

def tritonrl_py_test(name, srcs, main = None, data = [], args = [], size = "small", env = {}, **kwargs):
    """A Python test run by the pinned wheels' interpreter from the workspace's root.

    srcs are test files; the first (or main) is executed; everything it imports is in data."""
    main = main or srcs[0]
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tools:run_python.sh"],
        args = ["$(location %s)" % main] + args,
        data = srcs + data + ["//third_party:python_env"],
        env = env,
        **kwargs
    )

def tritonrl_sh_test(name, srcs, data = [], size = "small", **kwargs):
    """A shell test."""
    native.sh_test(
        name = name,
        size = size,
        srcs = srcs,
        data = data,
        **kwargs
    )

def tritonrl_py_binary(name, main, data = [], args = [], **kwargs):
    """A Python program run by the pinned wheels' interpreter."""
    native.sh_binary(
        name = name,
        srcs = ["//tools:run_python.sh"],
        args = ["$(location %s)" % main] + args,
        data = [main] + data + ["//third_party:python_env"],
        **kwargs
    )
