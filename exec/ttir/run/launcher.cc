#include "exec/ttir/run/launcher.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "exec/ttir/run/kernels/kernels.h"

namespace tritonrl::ttir {

namespace {

// A thread takes about this long to start.
constexpr absl::Duration kAlone = absl::Microseconds(100);

// The bits of an argument in its buffer.
absl::StatusOr<uint64_t> BitsOf(const CompiledKernel& kernel, size_t index,
                                const KernelArgument& argument) {
  const CompiledKernel::Argument& formal = kernel.arguments[index];
  const bool is_tensor = argument.kind == KernelArgument::Kind::kTensor;
  if (formal.type.is_pointer() != is_tensor) {
    return absl::InvalidArgumentError(absl::StrCat(
        "argument ", formal.name, " of kernel ", kernel.name, " is ", formal.type.ToString(),
        ", and the launch gives ", is_tensor ? "a tensor" : "a number"));
  }
  if (is_tensor) {
    const auto address = reinterpret_cast<uint64_t>(argument.data);
    if ((address & ~static_cast<uint64_t>(kAddressMask)) != 0 || argument.storage_bytes < 0) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", formal.name, " of kernel ",
                                                     kernel.name, " has no valid address"));
    }
    return address | static_cast<uint64_t>(index + 1) << kAddressBits;
  }
  const bool is_float = argument.kind == KernelArgument::Kind::kFloat;
  if (formal.type.is_integer()) {
    if (is_float) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", formal.name, " of kernel ",
                                                     kernel.name, " is ", formal.type.ToString(),
                                                     ", and the launch gives a float"));
    }
    const auto bits = static_cast<uint64_t>(argument.integer);
    return formal.type.is(ScalarKind::kI1) ? bits & 1 : bits;
  }
  const double number = is_float ? argument.number : static_cast<double>(argument.integer);
  if (formal.type.is(ScalarKind::kF64)) return std::bit_cast<uint64_t>(number);
  const KernelSet& kernels = BestKernels();
  const Unary round = kernels.round(formal.type.element(), /*toward_zero=*/false);
  auto value = static_cast<float>(number);
  if (round != nullptr) {
    kernels.to_odd_float(Lane::kF64, true)(&value, &number, 1);
    round(&value, &value, 1);
  }
  return std::bit_cast<uint32_t>(value);
}

void Add(const LaunchCounts& counts, LaunchCounts* sum) {
  sum->load_bytes += counts.load_bytes;
  sum->store_bytes += counts.store_bytes;
  sum->atomic_bytes += counts.atomic_bytes;
  sum->sector_bytes += counts.sector_bytes;
  sum->unique_bytes += counts.unique_bytes;
  sum->flops += counts.flops;
  sum->dot_flops += counts.dot_flops;
  sum->tensor_flops += counts.tensor_flops;
}

}  // namespace

Launcher::Launcher(const CompiledKernel& kernel, const std::array<int32_t, 3>& grid,
                   const LaunchOptions& options)
    : kernel_(kernel), options_(options), threads_(options.threads) {
  state_.kernel = &kernel;
  state_.options = &options;
  state_.grid = grid;
  if (options.counts != nullptr) *options.counts = LaunchCounts();
  if (options.check == nullptr) return;
  *options.check = LaunchFindings();
  checker_.emplace(&state_);
  threads_ = 1;
}

absl::Status Launcher::Bind(absl::Span<const KernelArgument> arguments) {
  if (arguments.size() != kernel_.arguments.size()) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel_.name, " has ",
                                                   kernel_.arguments.size(), " arguments and got ",
                                                   arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    ASSIGN_OR_RETURN(const uint64_t bits, BitsOf(kernel_, i, arguments[i]));
    bits_.push_back(bits);
    CheckDivisibility(i, arguments[i]);
    if (arguments[i].kind != KernelArgument::Kind::kTensor) continue;
    MemoryRegion region{absl::StrCat("argument ", kernel_.arguments[i].name),
                        reinterpret_cast<int64_t>(arguments[i].storage), arguments[i].storage_bytes,
                        arguments[i].shadow};
    if (arguments[i].view_bytes >= 0) {
      region.view_begin = reinterpret_cast<int64_t>(arguments[i].data);
      region.view_end = region.view_begin + arguments[i].view_bytes;
    }
    state_.memory.SetArgument(i, std::move(region));
    has_shadows_ = has_shadows_ || arguments[i].shadow != nullptr;
  }
  for (const ReachableMemory& memory : options_.reachable) {
    state_.memory.AddReachable(
        {memory.name, reinterpret_cast<int64_t>(memory.data), memory.bytes, memory.shadow});
    has_shadows_ = has_shadows_ || memory.shadow != nullptr;
  }
  state_.memory.Sort();
  return options_.counts == nullptr ? absl::OkStatus() : StartCounting();
}

absl::Status Launcher::Run() {
  const absl::Status status = RunAll();
  for (const auto& observer : observers_) {
    if (options_.counts != nullptr) Add(observer->counts(), options_.counts);
  }
  return status;
}

void Launcher::CheckDivisibility(size_t index, const KernelArgument& argument) {
  if (!checker_.has_value() || argument.kind == KernelArgument::Kind::kFloat) return;
  const bool is_tensor = argument.kind == KernelArgument::Kind::kTensor;
  checker_->CheckDivisibility(kernel_.arguments[index],
                              is_tensor ? reinterpret_cast<uint64_t>(argument.data)
                                        : static_cast<uint64_t>(argument.integer));
}

absl::Status Launcher::StartCounting() {
  const int64_t sectors = state_.memory.NumberSectors();
  if (touched_.loaded.Allocate(sectors) && touched_.stored.Allocate(sectors)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("kernel ", kernel_.name, ": no memory to count the sectors of its arguments"));
}

absl::Status Launcher::RunAll() {
  const int64_t total = int64_t{state_.grid[0]} * state_.grid[1] * state_.grid[2];
  Resize(1);
  if (kernel_.arena_bytes > options_.max_buffer_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("kernel ", kernel_.name, " needs ", kernel_.arena_bytes,
                     " bytes of buffers; the limit is ", options_.max_buffer_bytes));
  }
  RETURN_IF_ERROR(Start(0));
  // Small launches end before other threads would have started.
  int64_t done = 0;
  const absl::Time start = absl::Now();
  while (done < total && (threads_ <= 1 || absl::Now() - start < kAlone)) {
    if (!RunOne(programs_[0], done++)) return programs_[0].error;
  }
  return done < total ? RunTogether(done, total) : absl::OkStatus();
}

absl::Status Launcher::RunTogether(int64_t first, int64_t total) {
  // A few parts per thread, so that none waits long for the others; larger ones cost less.
  const int64_t fitting = options_.max_buffer_bytes / kernel_.arena_bytes;
  const int64_t wanted = std::min<int64_t>(threads_, fitting);
  const int64_t part = std::clamp<int64_t>((total - first) / (wanted * 16), 1, 64);
  const int64_t parts = (total - first + part - 1) / part;
  const auto threads = static_cast<int>(std::min(wanted, parts));
  Resize(static_cast<size_t>(threads));
  return ParallelFor(threads, parts, [&](int thread, int64_t number) -> absl::Status {
    Program& program = programs_[static_cast<size_t>(thread)];
    if (program.arena == nullptr) RETURN_IF_ERROR(Start(static_cast<size_t>(thread)));
    const int64_t end = std::min(total, first + (number + 1) * part);
    for (int64_t i = first + number * part; i < end; ++i) {
      if (!RunOne(program, i)) return program.error;
    }
    return absl::OkStatus();
  });
}

void Launcher::Resize(size_t threads) {
  arenas_.resize(threads);
  programs_.resize(threads);
  const bool counts = options_.counts != nullptr;
  while ((counts || has_shadows_) && observers_.size() < threads) {
    observers_.push_back(std::make_unique<Observer>(&state_, counts ? &touched_ : nullptr));
  }
}

absl::Status Launcher::Start(size_t thread) {
  Arena arena(static_cast<std::byte*>(::operator new (static_cast<size_t>(kernel_.arena_bytes) + 64,
                                                      std::align_val_t{64}, std::nothrow)));
  if (arena == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("kernel ", kernel_.name, ": no memory for ",
                                                     kernel_.arena_bytes, " bytes of buffers"));
  }
  for (size_t i = 0; i < bits_.size(); ++i) {
    std::memcpy(arena.get() + kernel_.arguments[i].offset, &bits_[i], sizeof(uint64_t));
  }
  Program& program = programs_[thread];
  program.arena = arena.get();
  program.launch = &state_;
  program.steps_left = options_.max_steps;
  if (checker_.has_value()) program.check = &*checker_;
  if (!observers_.empty()) {
    program.storing = observers_[thread].get();
    program.counting = options_.counts != nullptr ? program.storing : nullptr;
  }
  arenas_[thread] = std::move(arena);
  return RunCode(kernel_.prologue, program) ? absl::OkStatus() : program.error;
}

bool Launcher::RunOne(Program& program, int64_t number) {
  if (options_.expired && options_.expired()) {
    return Fail(program, absl::DeadlineExceededError(
                             absl::StrCat("kernel ", kernel_.name, ": the time limit passed")));
  }
  const int64_t gx = state_.grid[0];
  const int64_t gy = state_.grid[1];
  program.id = {static_cast<int32_t>(number % gx), static_cast<int32_t>(number / gx % gy),
                static_cast<int32_t>(number / (gx * gy))};
  program.steps_left = options_.max_steps;
  if (checker_.has_value()) checker_->BeginProgram(number, program.id);
  return RunCode(kernel_.body, program);
}

}  // namespace tritonrl::ttir
