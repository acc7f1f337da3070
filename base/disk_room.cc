#include "base/disk_room.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tritonrl {

DiskRoom::~DiskRoom() {
  struct stat info;
  // Cutting a file to its size frees what is reserved behind it.
  if (fd_.valid() && fstat(fd_.get(), &info) == 0) (void)!ftruncate(fd_.get(), info.st_size);
}

absl::Status DiskRoom::Reserve(int64_t bytes) {
  if (!fd_.valid()) {
    fd_.Reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
    if (!fd_.valid()) return ErrnoStatus(errno, "write", path_);
  }
  struct stat info;
  if (fstat(fd_.get(), &info) != 0) return ErrnoStatus(errno, "read", path_);
  if (bytes <= 0 || !S_ISREG(info.st_mode)) return absl::OkStatus();
  int error = 0;
  rlimit limit = {};
  // fallocate does not ask for this limit if the size stays.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<uint64_t>(info.st_size) + static_cast<uint64_t>(bytes) > limit.rlim_cur) {
    error = EFBIG;
  } else {
    do {
      error = fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, info.st_size, bytes) == 0 ? 0 : errno;
    } while (error == EINTR);
  }
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot write ", path_, ": ", strerror(error), "; it needs room for ",
                   BytesText(bytes), "; make room there and run the same command again"));
}

std::string BytesText(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  if (bytes < 1000000) return absl::StrFormat("%.1f kB", static_cast<double>(bytes) / 1e3);
  if (bytes < 1000000000) return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
  return absl::StrFormat("%.1f GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace tritonrl
