// All third-party libraries in one process: each one answers a small question.

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <cudnn.h>
#include <cudnn_frontend_version.h>
#include <curl/curl.h>
#include <google/protobuf/timestamp.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <mpi.h>
#include <nccl.h>
#include <pcre2.h>
#include <seccomp.h>
#include <tree_sitter/api.h>
#include <unicode/normalizer2.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "third_party/link_test/scale_kernel.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace tritonrl {
namespace {

TEST(LinkTest, LibTorchMultiplies) {
  EXPECT_EQ(at::mm(at::ones({2, 3}), at::ones({3, 2})).sum().item<float>(), 12.0f);
}

TEST(LinkTest, CudaCodeIsLinkedAndReportsAMissingDevice) {
  int devices = 0;
  const bool present = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  at::Tensor values = at::ones({4}, present ? at::kCUDA : at::kCPU);
  const int error = ScaleOnDevice(values.data_ptr<float>(), 4, 3.0f);
  EXPECT_EQ(error == 0, present);
  EXPECT_EQ(values.sum().item<float>(), present ? 12.0f : 4.0f);
}

TEST(LinkTest, CudnnAndItsGraphsHaveThePinnedVersions) {
  EXPECT_EQ(cudnnGetVersion(), CUDNN_VERSION);
  EXPECT_EQ(CUDNN_FRONTEND_VERSION, 13200);
}

TEST(LinkTest, NcclHasThePinnedVersion) {
  int version = 0;
  ASSERT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, NCCL_VERSION_CODE);
}

TEST(LinkTest, ProtobufAndGrpcAndAbseil) {
  google::protobuf::Timestamp stamp;
  stamp.set_seconds(7);
  google::protobuf::Timestamp copy;
  ASSERT_TRUE(copy.ParseFromString(stamp.SerializeAsString()));
  EXPECT_EQ(copy.seconds(), 7);
  EXPECT_EQ(grpc::Version().substr(0, 4), "1.51");
  EXPECT_EQ(absl::NotFoundError(absl::StrCat("a", 1)).message(), "a1");
}

TEST(LinkTest, SeccompKnowsSystemCalls) {
  EXPECT_EQ(seccomp_syscall_resolve_name("read"), SCMP_SYS(read));
  EXPECT_EQ(seccomp_syscall_resolve_name("no_such_call"), __NR_SCMP_ERROR);
}

TEST(LinkTest, MpiKnowsItsVersion) {
  int major = 0, minor = 0;
  ASSERT_EQ(MPI_Get_version(&major, &minor), MPI_SUCCESS);
  EXPECT_GE(major, 3);
}

TEST(LinkTest, HttpServerFindsAFreePort) {
  httplib::Server server;
  EXPECT_GT(server.bind_to_any_port("127.0.0.1"), 0);
}

TEST(LinkTest, TextLibraries) {
  EXPECT_EQ(nlohmann::json::parse("{\"a\": [1, 2]}")["a"][1], 2);
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
  ASSERT_TRUE(U_SUCCESS(status));
  EXPECT_EQ(nfc->normalize(icu::UnicodeString::fromUTF8("e\xcc\x81"), status).length(), 1);
  char version[64];
  EXPECT_GT(pcre2_config(PCRE2_CONFIG_VERSION, version), 0);
  EXPECT_NE(curl_version_info(CURLVERSION_NOW), nullptr);
}

TEST(LinkTest, ZlibComputesAChecksum) {
  EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>("123456789"), 9), 0xCBF43926u);
}

TEST(LinkTest, TreeSitterParsesPython) {
  TSParser* parser = ts_parser_new();
  ASSERT_TRUE(ts_parser_set_language(parser, tree_sitter_python()));
  const std::string source = "def f(x):\n  return x\n";
  TSTree* tree = ts_parser_parse_string(parser, nullptr, source.data(), source.size());
  EXPECT_FALSE(ts_node_has_error(ts_tree_root_node(tree)));
  ts_tree_delete(tree);
  ts_parser_delete(parser);
}

}  // namespace
}  // namespace tritonrl
