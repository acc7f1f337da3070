#include "exec/service/wire.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/utf8.h"
#include "exec/service/server_registry.h"
#include "exec/service/testing/request_fuzzer.h"
#include "exec/testing/scripted_backend.h"

namespace tritonrl {
namespace {

RunRequest Request() {
  RunRequest request;
  *request.mutable_request() = SomeRequest();
  return request;
}

TEST(WireTest, RequestsAreCheckedFieldByField) {
  EXPECT_TRUE(CheckRunRequest(Request()).ok());
  const auto complaint = [](void (*spoil)(RunRequest*)) {
    RunRequest request = Request();
    spoil(&request);
    const absl::Status status = CheckRunRequest(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(complaint([](RunRequest* r) { r->mutable_request()->clear_reference_source(); }),
            "request: reference_source is empty");
  EXPECT_EQ(complaint([](RunRequest* r) { r->mutable_request()->clear_candidate_source(); }),
            "request: candidate_source is empty");
  EXPECT_TRUE(absl::StrContains(complaint([](RunRequest* r) {
                                  r->mutable_request()->set_candidate_source(
                                      std::string(3 << 20, 'x'));
                                }),
                                "candidate_source is larger"));
  EXPECT_TRUE(absl::StrContains(
      complaint([](RunRequest* r) { r->mutable_request()->set_rtol(std::nan("")); }), "rtol"));
  EXPECT_TRUE(absl::StrContains(
      complaint([](RunRequest* r) { r->mutable_request()->set_trials(-1); }), "trials"));
  EXPECT_TRUE(absl::StrContains(
      complaint([](RunRequest* r) { r->mutable_request()->set_trials(1001); }), "trials"));
  EXPECT_TRUE(absl::StrContains(complaint([](RunRequest* r) {
                                  r->mutable_request()->mutable_limits()->set_wall_seconds(-1);
                                }),
                                "limits.wall_seconds"));
  EXPECT_TRUE(
      absl::StrContains(complaint([](RunRequest* r) { r->set_memory_bytes(-1); }), "memory_bytes"));
}

TEST(WireTest, AnyTextOfACandidateFitsIntoAnAnswer) {
  RunReply reply;
  ExecResult* result = reply.mutable_result();
  const std::string odd = "caf\xE9 \xFF\xED\xA0\x80 \xF0\x9F";
  result->set_output(odd);
  result->mutable_outcome()->set_message("plain");
  result->mutable_mismatch()->set_want(odd);
  result->add_launches()->set_name(odd);
  (*result->mutable_versions())[odd] = odd;
  (*result->mutable_phase_seconds())[odd] = 1.5;
  MakeTextValid(&reply);
  RunReply copy;
  ASSERT_TRUE(copy.ParseFromString(reply.SerializeAsString()));
  EXPECT_TRUE(IsValidUtf8(copy.result().output()));
  EXPECT_EQ(copy.result().outcome().message(), "plain");
  EXPECT_EQ(copy.result().launches(0).name(), RepairUtf8(odd));
  EXPECT_EQ(copy.result().mismatch().want(), RepairUtf8(odd));
  ASSERT_EQ(copy.result().versions().size(), 1);
  EXPECT_EQ(copy.result().versions().begin()->second, RepairUtf8(odd));
  EXPECT_EQ(copy.result().phase_seconds().begin()->second, 1.5);
}

TEST(WireTest, TheDecoderSurvivesMutatedRequests) {
  const WireFuzzCounts counts = FuzzRequests(20000, /*seed=*/7);
  EXPECT_EQ(counts.inputs, 20000);
  EXPECT_EQ(counts.broken, 0);
  EXPECT_GT(counts.accepted, 1000) << "the inputs must also reach what lies behind the parser";
  EXPECT_LT(counts.accepted, 19000);
}

class PrivateFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("private");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
    file_ = folder_ + "/token";
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }
  static int Mode(const std::string& path) {
    struct stat info = {};
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : -1;
  }

  std::string folder_, file_;
};

TEST_F(PrivateFileTest, OnlyTheOwnerReads) {
  const auto token = TokenFromFile(file_, /*create=*/true);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->size(), 64);
  EXPECT_EQ(Mode(file_), 0600);
  EXPECT_EQ(TokenFromFile(file_, true).value_or(""), *token) << "made once";
  EXPECT_NE(NewToken().value_or(""), NewToken().value_or(""));
  for (const int mode : {0640, 0604, 0620, 0666}) {
    ASSERT_EQ(chmod(file_.c_str(), mode), 0);
    EXPECT_TRUE(absl::IsPermissionDenied(TokenFromFile(file_, true).status())) << mode;
  }
  ASSERT_EQ(chmod(file_.c_str(), 0600), 0);
  ASSERT_EQ(symlink(file_.c_str(), (folder_ + "/link").c_str()), 0);
  EXPECT_FALSE(TokenFromFile(folder_ + "/link", false).ok());
  EXPECT_TRUE(absl::IsNotFound(TokenFromFile(folder_ + "/none", false).status()));
  ASSERT_TRUE(WritePrivateFile(file_, "short\n").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(TokenFromFile(file_, false).status()));
}

TEST_F(PrivateFileTest, TokensCompare) {
  const std::string token(64, 'a');
  EXPECT_TRUE(EqualTokens(token, token));
  EXPECT_FALSE(EqualTokens(token, std::string(63, 'a')));
  EXPECT_FALSE(EqualTokens(token, std::string(63, 'a') + "b"));
  EXPECT_FALSE(EqualTokens("", token));
}

TEST_F(PrivateFileTest, ServersRegisterAndGo) {
  std::vector<std::string> problems;
  EXPECT_TRUE(ReadServerRegistry(folder_, &problems)->empty());
  auto registration =
      ServerRegistration::Create(folder_, {.address = "127.0.0.1:5", .token = "t", .role = "both"});
  ASSERT_TRUE(registration.ok()) << registration.status();
  EXPECT_EQ(Mode((*registration)->file()), 0600);
  EXPECT_EQ(Mode(folder_ + "/servers"), 0700);
  ASSERT_TRUE(WritePrivateFile(folder_ + "/servers/other-1.json", "garbage").ok());
  ASSERT_TRUE(WriteFileAtomic(folder_ + "/servers/open-1.json", "{}").ok());  // mode 644
  auto entries = ReadServerRegistry(folder_, &problems);
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 1);
  EXPECT_EQ((*entries)[0].address, "127.0.0.1:5");
  EXPECT_EQ((*entries)[0].token, "t");
  EXPECT_EQ(problems.size(), 2);
  // Old files of killed servers at the same address do not hide the running server.
  for (const char* name : {"a-1", "z-1"}) {
    ASSERT_TRUE(WritePrivateFile(absl::StrCat(folder_, "/servers/", name, ".json"),
                                 R"({"address":"127.0.0.1:5","token":"old","started":17})")
                    .ok());
  }
  entries = ReadServerRegistry(folder_, &problems);
  ASSERT_EQ(entries->size(), 1);
  EXPECT_EQ((*entries)[0].token, "t");
  const std::string file = (*registration)->file();
  registration->reset();
  EXPECT_FALSE(FileExists(file));
}

}  // namespace
}  // namespace tritonrl
