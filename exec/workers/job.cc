#include "exec/workers/job.h"

namespace tritonrl {
namespace {

template <typename T>
T Smaller(T request, T pool) {
  if (request <= 0) return pool;
  return pool <= 0 || request < pool ? request : pool;
}

}  // namespace

void WaitedTime::Begin() {
  absl::MutexLock lock(&mutex_);
  if (waits_++ == 0) since_ = clock_->Now();
}

void WaitedTime::End() {
  absl::MutexLock lock(&mutex_);
  if (--waits_ == 0) ended_ += clock_->Now() - since_;
}

absl::Duration WaitedTime::Total() const {
  absl::MutexLock lock(&mutex_);
  return waits_ > 0 ? ended_ + (clock_->Now() - since_) : ended_;
}

ExecLimits DefaultLimits() {
  ExecLimits limits;
  limits.set_wall_seconds(30);
  limits.set_cpu_seconds(60);
  limits.set_memory_bytes(int64_t{2} << 30);
  limits.set_processes(64);
  limits.set_output_bytes(64 << 20);
  limits.set_file_bytes(64 << 20);
  limits.set_tmp_bytes(128 << 20);
  limits.set_shm_bytes(64 << 20);
  limits.set_open_files(256);
  return limits;
}

ExecLimits EffectiveLimits(const ExecLimits& request, const ExecLimits& pool) {
  ExecLimits limits;
  limits.set_wall_seconds(Smaller(request.wall_seconds(), pool.wall_seconds()));
  limits.set_cpu_seconds(Smaller(request.cpu_seconds(), pool.cpu_seconds()));
  limits.set_memory_bytes(Smaller(request.memory_bytes(), pool.memory_bytes()));
  limits.set_processes(Smaller(request.processes(), pool.processes()));
  limits.set_output_bytes(Smaller(request.output_bytes(), pool.output_bytes()));
  limits.set_file_bytes(Smaller(request.file_bytes(), pool.file_bytes()));
  limits.set_tmp_bytes(Smaller(request.tmp_bytes(), pool.tmp_bytes()));
  limits.set_shm_bytes(Smaller(request.shm_bytes(), pool.shm_bytes()));
  limits.set_open_files(Smaller(request.open_files(), pool.open_files()));
  return limits;
}

}  // namespace tritonrl
