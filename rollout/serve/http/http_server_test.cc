#include "rollout/serve/http/http_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/file.h"

namespace tritonrl {
namespace {

TEST(HttpServer, StopRefusesNewConnectionsWhileARequestIsAnswered) {
  absl::Notification begun, finish;
  HttpServer server({});
  server.Get("/slow", [&](const httplib::Request&, httplib::Response& response) {
    begun.Notify();
    finish.WaitForNotification();
    response.set_content("done", "text/plain");
  });
  ASSERT_TRUE(server.Start().ok());
  const auto get = [&](const char* path) {
    return httplib::Client("127.0.0.1", server.port()).Get(path);
  };
  auto slow = std::async(std::launch::async, get, "/slow");
  begun.WaitForNotification();
  auto stopped = std::async(std::launch::async, [&] { server.Stop(absl::Seconds(60)); });
  const absl::Time deadline = absl::Now() + absl::Seconds(4);
  httplib::Error error = httplib::Error::Success;
  while (error != httplib::Error::Connection && absl::Now() < deadline) {
    error = get("/").error();
  }
  EXPECT_EQ(error, httplib::Error::Connection);
  finish.Notify();
  const httplib::Result answer = slow.get();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "done");
  stopped.get();
}

TEST(ApiKey, ComesFromAPrivateFileOrTheEnvironment) {
  const std::string dir = MakeTempDirectory("key").value();
  const std::string file = JoinPath(dir, "key");
  ASSERT_TRUE(WriteFileAtomic(file, "  from-the-file-123456\n").ok());
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(LoadApiKey(file, "from-the-environment").value_or(""), "from-the-file-123456");
  EXPECT_EQ(LoadApiKey("", "from-the-environment").value_or(""), "from-the-environment");
  EXPECT_EQ(LoadApiKey("", nullptr).value_or("?"), "");
  EXPECT_EQ(LoadApiKey("", "").value_or("?"), "");
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(LoadApiKey(file, nullptr).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(LoadApiKey(dir, nullptr).status()));
  EXPECT_TRUE(absl::IsNotFound(LoadApiKey(dir + "/none", nullptr).status()));
  for (const char* bad : {"short", "two words of a long key"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(LoadApiKey("", bad).status())) << bad;
  }
  EXPECT_TRUE(RemoveTree(dir).ok());
}

TEST(ApiKey, IsComparedWhole) {
  const std::string key = "0123456789abcdef";
  EXPECT_TRUE(HasApiKey("Bearer 0123456789abcdef", key));
  EXPECT_TRUE(HasApiKey("bearer  0123456789abcdef ", key));
  for (const char* wrong : {"", "0123456789abcdef", "Bearer", "Bearer ", "Bearer 0123456789abcde",
                            "Bearer 0123456789abcdefg", "Bearer X123456789abcdef"}) {
    EXPECT_FALSE(HasApiKey(wrong, key)) << wrong;
  }
}

TEST(ApiKey, LoopbackAddresses) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "10.0.0.1", "::", "example.org", "", "128.0.0.1"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace tritonrl
