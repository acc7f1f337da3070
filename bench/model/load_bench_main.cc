// bazel run //bench/model:load_bench -- --dir=FOLDER: how fast weights are read from a folder of
// safetensors, beside the plain reading of the same bytes. Both begin with files that the system
// has not in memory (as far as it follows posix_fadvise).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/weights/safetensors.h"
#include "model/weights/weights.h"
#include "model/weights/weights_load.h"

ABSL_FLAG(std::string, dir, "", "folder with config.json and *.safetensors");
ABSL_FLAG(std::string, device, "cpu", "cpu or cuda:0");
ABSL_FLAG(bool, bf16, true, "weights in bfloat16, else in fp32");
ABSL_FLAG(int, threads, 8, "of the plain reading");
ABSL_FLAG(bool, warm, false, "with the files in the system's memory, if they fit");

namespace tritonrl {
namespace {

constexpr int64_t kBlock = int64_t{16} << 20;

void DropPageCache(const std::string& path) {
  if (absl::GetFlag(FLAGS_warm)) return;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  fdatasync(fd);  // what is not written yet cannot be forgotten
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

absl::Status ReadBlock(const std::string& path, int64_t at, int64_t size) {
  thread_local std::vector<char> room(kBlock);
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  return ReadAt(fd.get(), at, size, room.data(), path);
}

// Seconds to read all files in blocks, into a buffer for each thread.
absl::StatusOr<double> ReadPlainly(const std::set<std::string>& paths) {
  absl::Mutex mutex;
  absl::Status status;
  const absl::Time start = absl::Now();
  {
    ThreadPool pool(absl::GetFlag(FLAGS_threads));
    for (const std::string& path : paths) {
      ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
      for (int64_t at = 0; at < size; at += kBlock) {
        pool.Schedule([&, path, at, size] {
          const absl::Status read = ReadBlock(path, at, std::min(kBlock, size - at));
          absl::MutexLock lock(&mutex);
          status.Update(read);
        });
      }
    }
  }
  RETURN_IF_ERROR(status);
  return absl::ToDoubleSeconds(absl::Now() - start);
}

absl::Status Run() {
  const std::string device = absl::GetFlag(FLAGS_device);
  if (device != "cpu" && device != "cuda:0") {
    return absl::InvalidArgumentError("--device is cpu or cuda:0");
  }
  const std::string dir = UserPath(absl::GetFlag(FLAGS_dir));
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::OpenFolder(dir));
  std::set<std::string> paths;
  for (const auto& [name, entry] : reader.entries()) paths.insert(entry.path);
  double bytes = 0;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
    bytes += static_cast<double>(size);
    DropPageCache(path);
  }
  ASSIGN_OR_RETURN(const double plain, ReadPlainly(paths));
  for (const std::string& path : paths) DropPageCache(path);
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(
      const auto weights,
      LoadWeights(dir, at::Device(device), absl::GetFlag(FLAGS_bf16) ? at::kBFloat16 : at::kFloat));
  const double loaded = absl::ToDoubleSeconds(absl::Now() - start);
  const nlohmann::ordered_json line{{"bytes", bytes},
                                    {"plain_s", plain},
                                    {"plain_gb_per_s", bytes / plain / 1e9},
                                    {"load_s", loaded},
                                    {"load_gb_per_s", bytes / loaded / 1e9}};
  std::printf("%s\n", line.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("How fast weights are loaded from a folder.", argc, argv);
  const absl::Status status = tritonrl::Run();
  if (!status.ok()) std::fprintf(stderr, "load_bench: %s\n", tritonrl::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
