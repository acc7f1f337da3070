#include "verify/pipeline/progress_recorder.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace tritonrl {

void ParallelForUntil(size_t count, int parallel, const std::function<bool(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  const auto run = [&] {
    while (!stopped) {
      const size_t i = next++;
      if (i >= count) return;
      if (!work(i)) stopped = true;
    }
  };
  const auto threads = static_cast<int>(
      std::clamp<int64_t>(parallel, 1, std::max<int64_t>(static_cast<int64_t>(count), 1)));
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
}

ProgressRecorder::ProgressRecorder(const ProgressOptions& progress,
                                   std::unique_ptr<JsonlJournal> file)
    : total_(progress.total), done_(progress.first), file_(std::move(file)), progress_(progress) {}

absl::Status ProgressRecorder::Keep(const std::string& line) {
  ++done_;
  return file_ == nullptr ? absl::OkStatus() : file_->Append(line);
}

void ProgressRecorder::Show(const std::string& counts) {
  if (done_ < total_) progress_.Tick(done_, counts);
}

void ProgressRecorder::Finish(const std::string& counts) { progress_.Line(done_, counts); }

}  // namespace tritonrl
