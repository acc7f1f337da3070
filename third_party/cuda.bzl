"""CUDA C++ with the compiler of the pinned wheels: no CUDA installed on the machine is used."""

_ARCHITECTURES = ["80", "89", "90a"]  # A100, L40S, H100/H200

def _cuda_objects_impl(ctx):
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    headers = depset(ctx.files.hdrs, transitive = [context.headers for context in contexts])
    objects = []
    for source in ctx.files.srcs:
        output = ctx.actions.declare_file("_objs/%s/%s.o" % (ctx.label.name, source.basename))
        arguments = ctx.actions.args()
        arguments.add_all(["-c", "-std=c++20", "-O3", "--expt-relaxed-constexpr", "--extended-lambda"])

        arguments.add_all(["-Xcompiler", "-fPIC"])
        if ctx.attr.third_party_kernels:
            # nvcc passes the templates of other projects to the host compiler as if they were ours.
            arguments.add_all(["-Xcompiler", "-w", "-diag-suppress", "177,550"])
        else:
            arguments.add_all(["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Werror"])
            arguments.add_all(["-Xcompiler", "-Wno-sign-compare,-Wno-unknown-pragmas"])
        for architecture in ctx.attr.architectures:
            arguments.add("-gencode=arch=compute_%s,code=sm_%s" % (architecture, architecture))
        for context in contexts:
            arguments.add_all(context.defines, before_each = "-D")
            arguments.add_all(context.includes, before_each = "-isystem")
            arguments.add_all(context.quote_includes, before_each = "-I")
            arguments.add_all(context.system_includes, before_each = "-isystem")
        arguments.add_all(["-I", ".", "-I", ctx.bin_dir.path])
        arguments.add_all(ctx.attr.copts)
        arguments.add_all([source.path, "-o", output.path])

        # nvcc's intermediate files carry fixed names: each action has its own TMPDIR.
        ctx.actions.run_shell(
            command = "export TMPDIR=$(mktemp -d) && trap 'rm -rf \"$TMPDIR\"' EXIT && \"$@\"",
            arguments = [ctx.executable._nvcc.path, arguments],
            inputs = depset([source], transitive = [headers]),
            tools = [ctx.executable._nvcc] + ctx.files._cuda_home,
            outputs = [output],
            use_default_shell_env = True,
            mnemonic = "Nvcc",
            progress_message = "Compiling %s for %s" % (source.short_path, ", ".join(ctx.attr.architectures)),
        )
        objects.append(output)
    return [DefaultInfo(files = depset(objects))]

cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "architectures": attr.string_list(default = _ARCHITECTURES),
        # The sources instantiate another project's kernels: their warnings are off.
        "third_party_kernels": attr.bool(),
        "_nvcc": attr.label(
            default = "@pypi//:nvcc",
            allow_single_file = True,
            executable = True,
            cfg = "host",
        ),
        "_cuda_home": attr.label(default = "@pypi//:cuda_home_files"),
    },
)
