#include "exec/device/window.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 45;

class HostWindow : public Window {
 public:
  HostWindow(char* base, int64_t bytes) : Window(base, bytes) {}
  ~HostWindow() override { munmap(base(), static_cast<size_t>(bytes())); }

 protected:
  absl::Status Map() override {
    if (mprotect(base(), static_cast<size_t>(bytes()), PROT_READ | PROT_WRITE) == 0) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(absl::StrCat("cannot map a window: ", strerror(errno)));
  }
  void Unmap() override { mprotect(base(), static_cast<size_t>(bytes()), PROT_NONE); }
};

class ReservedWindow : public Window {
 public:
  ReservedWindow(int fd, char* base, int64_t bytes) : Window(base, bytes), fd_(fd) {}
  ~ReservedWindow() override {
    munmap(base(), static_cast<size_t>(bytes()));
    close(fd_);
  }
  int fd() const override { return fd_; }

 protected:
  absl::Status Map() override { return absl::InternalError("a window that is another's"); }
  void Unmap() override {}

 private:
  const int fd_;
};

absl::StatusOr<char*> Reserve(int64_t bytes, int flags, int fd) {
  if (bytes <= 0 || bytes > kMostBytes) return absl::InvalidArgumentError("a window of no size");
  void* const base =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE, flags | MAP_NORESERVE, fd, 0);
  if (base != MAP_FAILED) return static_cast<char*>(base);
  return absl::ResourceExhaustedError(absl::StrCat("no addresses for a window: ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Window>> OpenHostWindow(int fd, int64_t bytes) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size < bytes) {
    return absl::InvalidArgumentError("a window that is smaller than was said");
  }
  ASSIGN_OR_RETURN(char* const base, Reserve(bytes, MAP_SHARED, fd));
  return std::make_unique<HostWindow>(base, bytes);
}

absl::StatusOr<std::unique_ptr<Window>> ReserveWindow(int fd, int64_t bytes) {
  const absl::StatusOr<char*> base = Reserve(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (base.ok()) return std::make_unique<ReservedWindow>(fd, *base, bytes);
  close(fd);
  return base.status();
}

MappedWindow::MappedWindow(Window* window) : window_(window) {
  if (window_ != nullptr && window_->mapped_++ == 0) status_ = window_->Map();
}

MappedWindow::~MappedWindow() {
  if (window_ != nullptr && --window_->mapped_ == 0 && status_.ok()) window_->Unmap();
}

}  // namespace tritonrl::device
