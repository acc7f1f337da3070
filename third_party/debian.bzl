"""Repositories made from installed Debian packages: Bazel's own rule sets and C++ libraries."""

_COVERAGE_STUB = """
filegroup(
    name = "coverage_report_generator",
    srcs = [],
    visibility = ["//visibility:public"],
)
"""

def _bazel_rules_impl(ctx):
    if not ctx.attr.path:
        ctx.file("BUILD", _COVERAGE_STUB)
        return
    root = ctx.path(ctx.attr.path)
    if not root.exists:
        fail("%s is missing: run ./bazelw, which installs the Debian packages." % root)
    ctx.execute(["cp", "-rL", str(root) + "/.", "."])

    # These two files call a function newer than Bazel 4.2; the tool chain's label does the same.
    for name in ["compiler_flag", "cc_flags_supplier"]:
        file = "cc/private/rules_impl/%s.bzl" % name
        if ctx.path(file).exists:
            text = ctx.read(file)
            text = text.replace(", \"use_cpp_toolchain\"", "")
            text = text.replace("use_cpp_toolchain()", "[\"@bazel_tools//tools/cpp:toolchain_type\"]")
            ctx.file(file, text)

bazel_rules_from_debian = repository_rule(
    implementation = _bazel_rules_impl,
    attrs = {"path": attr.string(doc = "Folder of the rule set; empty: a stub.")},
    local = True,
)

_LIBRARY = """
cc_library(
    name = "{name}",
    hdrs = {hdrs},
    includes = {includes},
    defines = {defines},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

# Shared objects throughout: gRPC comes as shared objects only, and two copies of Abseil in one
# process would not share flags or status payloads.
_ABSL = [
    "bad_optional_access",
    "bad_variant_access",
    "base",
    "city",
    "civil_time",
    "cord",
    "flags_commandlineflag",
    "flags_commandlineflag_internal",
    "flags_config",
    "flags_internal",
    "flags_marshalling",
    "flags_parse",
    "flags_private_handle_accessor",
    "flags_program_name",
    "flags_reflection",
    "flags_usage",
    "flags_usage_internal",
    "hash",
    "int128",
    "low_level_hash",
    "raw_hash_set",
    "raw_logging_internal",
    "spinlock_wait",
    "status",
    "statusor",
    "str_format_internal",
    "strings",
    "strings_internal",
    "synchronization",
    "throw_delegate",
    "time",
    "time_zone",
]

_MPI = "/usr/lib/x86_64-linux-gnu/openmpi/include"

def _library(name, linkopts, defines = [], hdrs = "[]", includes = []):
    return _LIBRARY.format(
        name = name,
        hdrs = hdrs,
        includes = repr(includes),
        defines = repr(defines),
        linkopts = repr(linkopts),
    )

def _check_versions(ctx, text):
    """Fails with one sentence if a package is missing or has another upstream version."""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, wanted = line.split(" ")
        query = ctx.execute(["dpkg-query", "-W", "-f", "${Version}", name])
        if query.return_code or not query.stdout:
            fail("Debian package %s is not installed: run ./bazelw, which installs it." % name)
        found = query.stdout.split(":")[-1]
        if not found.startswith(wanted):
            fail(("Debian package %s has version %s; this build is pinned to %s " +
                  "(third_party/debian_packages.txt).") % (name, found, wanted))

def _debian_packages_impl(ctx):
    _check_versions(ctx, ctx.read(ctx.attr.packages))
    ctx.symlink(_MPI, "openmpi")
    build = "package(default_visibility = [\"//visibility:public\"])\n"
    # Bazel links a cc_library as a shared object without its libraries, so a test that only uses
    # it must carry them whether or not it names one itself.
    build += _library("absl", ["-Wl,--no-as-needed"] + ["-labsl_" + name for name in _ABSL] + ["-lpthread"])
    build += _library("protobuf", ["-lprotobuf"])
    build += _library("grpc", ["-lgrpc++", "-lgrpc", "-lgpr"])
    build += _library("gtest", ["-lgmock", "-lgtest", "-lpthread"])
    build += _library("gtest_main", ["-lgmock_main", "-lgmock", "-lgtest", "-lpthread"])
    build += _library(
        "mpi",
        ["-lmpi"],
        defines = ["OMPI_SKIP_MPICXX=1"],
        hdrs = "glob([\"openmpi/**/*.h\"])",
        includes = ["openmpi"],
    )
    build += _library("json", [])
    build += _library("icu", ["-licuuc", "-licudata"])
    build += _library("pcre2", ["-lpcre2-8"], defines = ["PCRE2_CODE_UNIT_WIDTH=8"])
    build += _library("curl", ["-lcurl"])
    build += _library("crypto", ["-lcrypto"])
    build += _library("seccomp", ["-lseccomp"])
    build += _library("zlib", ["-lz"])
    build += _library(
        "spdlog",
        ["-lspdlog", "-lfmt"],
        defines = ["SPDLOG_SHARED_LIB", "SPDLOG_COMPILED_LIB", "SPDLOG_FMT_EXTERNAL"],
    )
    # The library was compiled with these, and they change its classes.
    build += _library(
        "httplib",
        ["-lcpp-httplib"],
        defines = ["CPPHTTPLIB_%s_SUPPORT" % name for name in ["OPENSSL", "ZLIB", "BROTLI"]],
    )
    ctx.file("BUILD", build)

debian_packages = repository_rule(
    implementation = _debian_packages_impl,
    attrs = {"packages": attr.label(allow_single_file = True)},
)
