#include "trainer/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/hash.h"

namespace tritonrl {
namespace {

class FileDigestTest : public testing::Test {
 protected:
  std::string Digest(const std::string& contents, int64_t part) const {
    EXPECT_TRUE(WriteFileAtomic(path_, contents).ok());
    const auto digest = ChunkedSha256(path_, part);
    EXPECT_TRUE(digest.ok()) << digest.status();
    return digest.value_or("");
  }
  ~FileDigestTest() override { RemoveTree(dir_).IgnoreError(); }

  const std::string dir_ = MakeTempDirectory("file_digest").value();
  const std::string path_ = JoinPath(dir_, "file");
};

// Compares with the SHA-256 of base/hash.h, part by part in order.
TEST_F(FileDigestTest, IsTheDigestOfThePartsDigests) {
  std::string contents;
  for (int i = 0; i < 1000; ++i) contents += static_cast<char>(i * 31 + i / 7);
  for (const int64_t part : {1, 64, 333, 999, 1000, 5000}) {
    std::string digests;
    for (size_t at = 0; at < contents.size(); at += part) {
      digests += absl::HexStringToBytes(Sha256Hex(absl::string_view(contents).substr(at, part)));
    }
    EXPECT_EQ(Digest(contents, part), Sha256Hex(digests)) << part;
  }
  EXPECT_EQ(Digest("", 64), Sha256Hex(""));
}

TEST_F(FileDigestTest, OneChangedByteAnywhereShows) {
  std::string contents(300, 'x');
  const std::string digest = Digest(contents, 100);
  for (const size_t at : {0, 99, 100, 250, 299}) {
    std::string other = contents;
    other[at] ^= 1;
    EXPECT_NE(Digest(other, 100), digest) << at;
  }
  EXPECT_NE(Digest(contents.substr(1), 100), digest);
}

TEST_F(FileDigestTest, AFileThatIsNotThereIsNamed) {
  const auto digest = ChunkedSha256(path_);
  EXPECT_TRUE(absl::IsNotFound(digest.status())) << digest.status();
  EXPECT_NE(digest.status().message().find(path_), std::string::npos);
}

TEST_F(FileDigestTest, AFileOfAnotherSizeIsCalledTruncatedOnlyIfItIsShorter) {
  const auto verify = [&](const std::string& contents) {
    EXPECT_TRUE(WriteFileAtomic(path_, contents).ok());
    return std::string(VerifyManifest(dir_).message());
  };
  ASSERT_TRUE(WriteFileAtomic(path_, "four").ok());
  const auto entries = DescribeFiles(dir_, {"file"});
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_TRUE(WriteManifest(dir_, {*entries}).ok());
  EXPECT_EQ(verify("four"), "");
  EXPECT_EQ(verify("two"), path_ + " has 3 bytes but 4 were written: it is truncated");
  EXPECT_EQ(verify("seven"), path_ + " has 5 bytes but 4 were written");
}

}  // namespace
}  // namespace tritonrl
