"""Protobuf and gRPC code generation with Debian's protoc."""

ProtoSources = provider(fields = ["protos"])

def _cc_proto_sources_impl(ctx):
    protos = depset(ctx.files.srcs, transitive = [dep[ProtoSources].protos for dep in ctx.attr.deps])
    sources, headers = [], []
    for proto in ctx.files.srcs:
        stem = proto.basename[:-len(".proto")]
        sources.append(ctx.actions.declare_file(stem + ".pb.cc"))
        headers.append(ctx.actions.declare_file(stem + ".pb.h"))
        if ctx.attr.grpc:
            sources.append(ctx.actions.declare_file(stem + ".grpc.pb.cc"))
            headers.append(ctx.actions.declare_file(stem + ".grpc.pb.h"))
    arguments = ctx.actions.args()
    arguments.add("--proto_path=.")
    arguments.add("--cpp_out=" + ctx.bin_dir.path)
    if ctx.attr.grpc:
        arguments.add("--grpc_out=" + ctx.bin_dir.path)
        arguments.add("--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin")
    arguments.add_all(ctx.files.srcs)
    ctx.actions.run(
        executable = "/usr/bin/protoc",
        arguments = [arguments],
        inputs = protos,
        outputs = sources + headers,
        mnemonic = "Protoc",
        progress_message = "Generating C++ of %s" % ctx.label,
    )
    return [
        DefaultInfo(files = depset(sources)),
        OutputGroupInfo(headers = depset(headers)),
        ProtoSources(protos = protos),
    ]

cc_proto_sources = rule(
    implementation = _cc_proto_sources_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".proto"]),
        "deps": attr.label_list(providers = [ProtoSources]),
        "grpc": attr.bool(),
    },
)
