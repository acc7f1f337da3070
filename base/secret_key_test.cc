#include "base/secret_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

class SecretKeyTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("secret_key");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
    path_ = JoinPath(folder_, "state/tritonrl/seed_key");
    unsetenv("TRITONRL_SEED_KEY");
    setenv("XDG_STATE_HOME", JoinPath(folder_, "state").c_str(), 1);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }
  void ExpectUnusable(const std::string& why) {
    const auto key = InstallationKey();
    EXPECT_TRUE(absl::IsFailedPrecondition(key.status())) << key.status();
    EXPECT_THAT(std::string(key.status().message()), HasSubstr(why));
    EXPECT_THAT(std::string(key.status().message()), HasSubstr(path_));
  }

  std::string folder_, path_;
};

// RFC 4231 has no test with a key of 32 bytes; Python's hmac gave this number.
TEST_F(SecretKeyTest, IsHmacSha256) {
  const auto key =
      SecretKey::Parse("000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F");
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key->Hash64("a text"), 5381446134737501995u);
  EXPECT_NE(SecretKey().Hash64("a text"), key->Hash64("a text"));
  for (const std::string& wrong : {std::string(), std::string(63, '0'), std::string(64, 'g')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(SecretKey::Parse(wrong).status()));
  }
}

TEST_F(SecretKeyTest, AnInstallationKeepsItsKey) {
  const auto first = InstallationKey();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*InstallationKey(), *first);
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
  EXPECT_EQ(info.st_size, 32);
  EXPECT_EQ(ListDirectory(DirName(path_))->size(), 1);  // no temporary file
  ASSERT_TRUE(RemoveTree(path_).ok());
  EXPECT_FALSE(*InstallationKey() == *first);
}

TEST_F(SecretKeyTest, ProcessesThatBeginAtOnceAgree) {
  std::vector<SecretKey> keys(8);
  std::vector<std::thread> threads;
  for (SecretKey& key : keys) threads.emplace_back([this, &key] { key = *ReadOrMakeKey(path_); });
  for (std::thread& thread : threads) thread.join();
  for (const SecretKey& key : keys) EXPECT_EQ(key, keys[0]);
  EXPECT_FALSE(keys[0] == SecretKey());
}

TEST_F(SecretKeyTest, AFileThatCannotBeUsedIsAnError) {
  ASSERT_TRUE(InstallationKey().ok());
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  ExpectUnusable("not this user's alone");
  ASSERT_TRUE(WriteFileAtomic(path_, "short", 0600).ok());
  ExpectUnusable("is not a file of 32 bytes");
}

TEST_F(SecretKeyTest, WithoutAHomeFolderTheProcessHasOne) {
  unsetenv("XDG_STATE_HOME");
  setenv("HOME", JoinPath(folder_, "nowhere").c_str(), 1);
  const auto key = InstallationKey();
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(*InstallationKey(), *key);
  EXPECT_FALSE(*key == SecretKey());
}

TEST_F(SecretKeyTest, TheVariableComesFirst) {
  const std::string hex(64, 'a');
  setenv("TRITONRL_SEED_KEY", hex.c_str(), 1);
  EXPECT_EQ(*InstallationKey(), *SecretKey::Parse(hex));
  EXPECT_FALSE(FileExists(path_));
  setenv("TRITONRL_SEED_KEY", "secret", 1);
  const auto key = InstallationKey();
  EXPECT_TRUE(absl::IsInvalidArgument(key.status()));
  EXPECT_THAT(std::string(key.status().message()), HasSubstr("TRITONRL_SEED_KEY"));
  EXPECT_THAT(std::string(key.status().message()), testing::Not(HasSubstr("secret")));
  unsetenv("TRITONRL_SEED_KEY");
}

}  // namespace
}  // namespace tritonrl
