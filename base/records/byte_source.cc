#include "base/records/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/git_lfs.h"
#include "base/records/parquet_source.h"
#include "base/status.h"

namespace tritonrl {
namespace {

class PlainSource : public ByteSource {
 public:
  PlainSource(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    while (true) {
      const ssize_t n = read(fd_.get(), to, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, "read", path_);
      consumed_ += n;
      return static_cast<size_t>(n);
    }
  }
  int64_t consumed() const override { return consumed_; }

 private:
  const std::string path_;
  const ScopedFd fd_;
  int64_t consumed_ = 0;
};

// A gzip file of one or several members.
class GzipSource : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<GzipSource>> Make(const std::string& path,
                                                          std::unique_ptr<ByteSource> file) {
    std::unique_ptr<GzipSource> source(new GzipSource(path, std::move(file)));
    // 16: the data has gzip's header.
    if (inflateInit2(&source->stream_, 16 + MAX_WBITS) != Z_OK) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory to decompress ", path));
    }
    source->ready_ = true;
    return source;
  }
  ~GzipSource() override {
    if (ready_) inflateEnd(&stream_);
  }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size) {
      if (stream_.avail_in == 0) {
        ASSIGN_OR_RETURN(const size_t n, file_->Read(buffer_.data(), buffer_.size()));
        stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_in = static_cast<uInt>(n);
        if (n == 0 && in_member_) {
          return absl::DataLossError(absl::StrCat(path_, ": the gzip data ends too early"));
        }
        if (n == 0) return size_t{0};
      }
      // Padding after the last member.
      if (!in_member_ && stream_.next_in[0] == 0) {
        ++stream_.next_in;
        --stream_.avail_in;
        continue;
      }
      in_member_ = true;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        in_member_ = false;
        inflateReset(&stream_);
      } else if (result != Z_OK) {
        return absl::DataLossError(absl::StrCat(path_, ": the gzip data is damaged (",
                                                stream_.msg != nullptr ? stream_.msg : "inflate",
                                                ")"));
      }
    }
    return size - stream_.avail_out;
  }
  int64_t consumed() const override { return file_->consumed(); }

 private:
  GzipSource(std::string path, std::unique_ptr<ByteSource> file)
      : path_(std::move(path)), file_(std::move(file)), buffer_(1 << 18) {}

  const std::string path_;
  const std::unique_ptr<ByteSource> file_;
  std::vector<char> buffer_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool in_member_ = false;  // bytes of a member that has not ended were read
};

// The names of other compressed files, by their first bytes.
std::string OtherCompression(absl::string_view head) {
  if (absl::StartsWith(head, "\x28\xB5\x2F\xFD")) return "zstd";
  if (absl::StartsWith(head, "\xFD\x37zXZ")) return "xz";
  if (absl::StartsWith(head, "BZh")) return "bzip2";
  if (absl::StartsWith(head, "PK\x03\x04")) return "zip";
  return "";
}

}  // namespace

absl::StatusOr<OpenedSource> OpenByteSource(const std::string& path,
                                            const std::vector<std::string>& columns) {
  // Without O_NONBLOCK, open() of a named pipe would block until a writer opens it.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  OpenedSource opened;
  opened.bytes = std::make_unique<PlainSource>(path, fd);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": not a plain file"));
  }
  opened.file_bytes = info.st_size;
  char head[64] = {};
  const ssize_t n = pread(fd, head, sizeof(head), 0);
  if (n < 0) return ErrnoStatus(errno, "read", path);
  const absl::string_view start(head, n);
  RETURN_IF_ERROR(RefuseGitLfsPointer(start, path));
  if (const std::string name = OtherCompression(start); !name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is a ", name, " file; decompress it, or compress it with gzip instead"));
  }
  if (absl::StartsWith(start, "\x1F\x8B")) {
    opened.kind = FileKind::kGzip;
    ASSIGN_OR_RETURN(opened.bytes, GzipSource::Make(path, std::move(opened.bytes)));
  } else if (absl::StartsWith(start, "PAR1")) {
    opened.kind = FileKind::kParquet;
    RETURN_IF_ERROR(OpenParquetSource(path, columns, &opened));
  } else if (absl::EndsWith(path, ".parquet")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no Parquet file: it does not begin with PAR1"));
  }
  return opened;
}

}  // namespace tritonrl
