// Measures how fast a folder of safetensors loads, compared with plain reads of the same bytes.
// Both start with a cold page cache, as far as the system honours posix_fadvise.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "bench/harness/harness.h"
#include "model/weights/safetensors.h"
#include "model/weights/weights.h"
#include "model/weights/weights_load.h"

ABSL_FLAG(std::string, dir, "", "Folder with config.json and *.safetensors.");
ABSL_FLAG(bool, bf16, true, "Weights in bfloat16, else in fp32.");
ABSL_FLAG(int, threads, 8, "Threads of the plain reading.");
ABSL_FLAG(bool, warm, false, "With the files in the page cache, if they fit.");

namespace tritonrl {
namespace {

constexpr int64_t kBlock = int64_t{16} << 20;

void DropPageCache(const std::string& path) {
  if (absl::GetFlag(FLAGS_warm)) return;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  fdatasync(fd);  // the page cache only drops clean pages
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

absl::Status ReadBlock(const std::string& path, int64_t at, int64_t size) {
  thread_local std::vector<char> room(kBlock);
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  return ReadAt(fd.get(), at, size, room.data(), path);
}

// Reads all files in blocks, with one buffer per thread, and returns the seconds.
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

absl::Status Run(Bench* bench) {
  if (bench->device() != "cpu" && bench->device() != "cuda:0") {
    return absl::InvalidArgumentError("--device is cpu or cuda:0");
  }
  const std::string dir = UserPath(absl::GetFlag(FLAGS_dir));
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::OpenFolder(dir));
  std::set<std::string> paths;
  for (const auto& [name, entry] : reader.entries()) paths.insert(entry.path);
  double gigabytes = 0;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
    gigabytes += static_cast<double>(size) / 1e9;
  }
  const auto plain = [&](bool) -> absl::StatusOr<double> {
    for (const std::string& path : paths) DropPageCache(path);
    return ReadPlainly(paths);
  };
  const auto load = [&](bool) -> absl::StatusOr<double> {
    for (const std::string& path : paths) DropPageCache(path);
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(LoadWeights(dir, at::Device(bench->device()),
                                absl::GetFlag(FLAGS_bf16) ? at::kBFloat16 : at::kFloat)
                        .status());
    return absl::ToDoubleSeconds(absl::Now() - start);
  };
  ASSIGN_OR_RETURN(const auto seconds, bench->Measure({plain, load}));
  const double plain_s = Fastest(seconds[0]), load_s = Fastest(seconds[1]);
  bench->set_subject("loading of weights");
  bench->set_peer_name("plain reading");
  bench->Add(absl::StrCat(gigabytes, " GB, ", bench->device()),
             {{"time", load_s, "s", plain_s, std::nullopt, seconds[1]},
              {"rate", gigabytes / load_s, "GB/s", gigabytes / plain_s, std::nullopt,
               Rates(gigabytes, seconds[1])}});
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "How fast weights are loaded from a folder.",
                      .warmup = 0,
                      .repeats = 1,
                      .device = "cpu"},
                     argc, argv, tritonrl::Run);
}
