#include "model/weights/weights_load.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <c10/util/ParallelGuard.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/weights/model_folder.h"
#include "model/weights/safetensors.h"

namespace tritonrl {
namespace {

constexpr int64_t kChunkElements = int64_t{8} << 20;
// More readers than a disk needs to be busy, because some copy between memories while others read.
constexpr int kReaders = 8;
constexpr size_t kHugePage = size_t{2} << 20;

// Elements of a stored tensor and their place in the flat buffer: `runs` runs of `run` elements
// each. The runs begin `stride` elements apart in the tensor and are contiguous in the buffer.
struct Chunk {
  const SafetensorsEntry* entry = nullptr;
  int64_t begin = 0, run = 0;  // in the tensor
  int64_t to = 0;              // in the flat buffer
  int64_t runs = 1, stride = 0;
  int64_t count() const { return runs * run; }
};

// Refuses tensors that the model does not have: it would compute something else than the files'
// author did. A tied head and RoPE's frequencies may be stored, as they repeat what is known.
absl::Status RefuseUnexpectedTensors(const ParameterLayout& layout, const ModelConfig& config,
                                     const SafetensorsReader& reader) {
  absl::flat_hash_set<absl::string_view> known;
  for (const ParameterInfo& info : layout.parameters) known.insert(info.name);
  const SafetensorsEntry* first = nullptr;
  std::string name;
  int64_t more = -1;
  for (const auto& [tensor, entry] : reader.entries()) {
    const bool repeated = (tensor == "lm_head.weight" && config.tie_word_embeddings) ||
                          absl::EndsWith(tensor, "rotary_emb.inv_freq");
    if (repeated || known.contains(tensor)) continue;
    if (++more > 0) continue;
    first = &entry;
    name = tensor;
  }
  if (first == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      first->path, ": tensor ", name, more > 0 ? absl::StrCat(" (and ", more, " more)") : "",
      " is not part of the model that config.json describes: ",
      UnexpectedTensorHint(name, config.num_layers)));
}

// Checks all shapes before any allocation, so that a wrong folder fails at once.
absl::Status CheckEntries(const std::string& dir, const ModelConfig& config,
                          const SafetensorsReader& reader) {
  const ParameterLayout layout(config);
  for (const ParameterInfo& info : layout.parameters) {
    const auto found = reader.entries().find(info.name);
    if (found == reader.entries().end()) {
      const bool without_prefix = absl::StartsWith(info.name, "model.") &&
                                  reader.entries().contains(info.name.substr(strlen("model.")));
      return absl::NotFoundError(absl::StrCat(
          dir, ": tensor ", info.name, " is missing, which config.json asks for with shape [",
          absl::StrJoin(info.shape, ", "), "]", MissingTensorHint(info.name, without_prefix)));
    }
    if (found->second.shape != info.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(found->second.path, ": tensor ", info.name, " has shape [",
                       absl::StrJoin(found->second.shape, ", "), "], config.json asks for [",
                       absl::StrJoin(info.shape, ", "), "]"));
    }
    if (!c10::isFloatingType(found->second.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(found->second.path, ": tensor ", info.name,
                                                     " does not hold floating-point numbers"));
    }
  }
  return RefuseUnexpectedTensors(layout, config, reader);
}

std::vector<Chunk> InFileOrder(std::vector<Chunk> chunks) {
  std::sort(chunks.begin(), chunks.end(), [](const Chunk& a, const Chunk& b) {
    return std::tie(a.entry->path, a.entry->begin, a.begin) <
           std::tie(b.entry->path, b.entry->begin, b.begin);
  });
  return chunks;
}

// Returns the chunks of `parts` of the flat buffer (of the whole buffer if empty), in file order.
std::vector<Chunk> Cut(const ParameterLayout& layout, const SafetensorsReader& reader,
                       absl::Span<const FlatRange> parts) {
  const FlatRange all = {0, layout.flat_size};
  std::vector<Chunk> chunks;
  for (const ParameterInfo& info : layout.parameters) {
    for (const FlatRange& part : parts.empty() ? absl::MakeConstSpan(&all, 1) : parts) {
      int64_t at = std::max(part.begin, info.offset);
      const int64_t end = std::min(part.end, info.offset + info.size);
      for (; at < end; at += kChunkElements) {
        chunks.push_back({&reader.entries().at(info.name), at - info.offset,
                          std::min(kChunkElements, end - at), at});
      }
    }
  }
  return InFileOrder(std::move(chunks));
}

// Returns the chunks of the files' tensors that a rank holds. `whole` is the layout of the whole
// model, `part` that of the rank's shard.
std::vector<Chunk> CutShard(const ParameterLayout& whole, const ParameterLayout& part, int rank,
                            const SafetensorsReader& reader) {
  std::vector<Chunk> chunks;
  for (size_t p = 0; p < part.parameters.size(); ++p) {
    const ParameterInfo& info = part.parameters[p];
    const ShardSlice slice = ShardSliceOf(whole.parameters[p], info, rank);
    // Whole rows are contiguous, so one run may span several of them.
    const bool whole_rows = slice.columns == slice.width;
    const int64_t run = whole_rows ? kChunkElements : slice.columns;
    const int64_t most = whole_rows ? kChunkElements : std::max(run, kChunkElements / run * run);
    for (int64_t at = 0; at < info.size; at += most) {
      const int64_t count = std::min(most, info.size - at);
      Chunk& chunk = chunks.emplace_back();
      chunk.entry = &reader.entries().at(info.name);
      chunk.begin =
          slice.row * slice.width + slice.column + (whole_rows ? at : at / run * slice.width);
      chunk.run = whole_rows ? count : run;
      chunk.to = info.offset + at;
      chunk.runs = count / chunk.run;
      chunk.stride = slice.width;
    }
  }
  return InFileOrder(std::move(chunks));
}

// Returns a flat buffer with zeros in the gaps between parameters. The other pages are untouched,
// so that each reader faults in the pages of its own chunks.
at::Tensor UntouchedBuffer(const ParameterLayout& layout, at::Device device, at::ScalarType dtype) {
  at::Tensor flat = at::empty({layout.flat_size}, at::TensorOptions(dtype).device(device));
  if (flat.is_cpu() && flat.nbytes() > 2 * kHugePage) {
    // One page fault for 2 MiB instead of one for 4 KiB. The call fails on systems without huge
    // pages.
    const uintptr_t begin = reinterpret_cast<uintptr_t>(flat.data_ptr());
    const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
    (void)madvise(reinterpret_cast<void*>(first), begin + flat.nbytes() - first, MADV_HUGEPAGE);
  }
  int64_t end = 0;
  for (const ParameterInfo& info : layout.parameters) {
    if (info.offset > end) flat.narrow(0, end, info.offset - end).zero_();
    end = info.offset + info.size;
  }
  flat.narrow(0, end, layout.flat_size - end).zero_();
  return flat;
}

// Threads that read chunks until one of them fails. Each chunk is read straight into the flat
// buffer or through the thread's staging buffer.
class ChunkReaders {
 public:
  ChunkReaders(const std::vector<Chunk>& chunks, const at::Tensor& flat)
      : chunks_(chunks), flat_(flat) {}

  absl::Status Run() {
    {
      const int readers = std::min(kReaders, static_cast<int>(chunks_.size()));
      ThreadPool pool(readers);
      for (int i = 0; i < readers; ++i) {
        pool.Schedule([this] { Note(CatchTorch([this] { return ReadAll(); })); });
      }
    }
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  static absl::Status CatchTorch(const std::function<absl::Status()>& work) {
    try {
      return work();
    } catch (const c10::Error& error) {
      return absl::ResourceExhaustedError(error.what_without_backtrace());
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("out of memory");
    }
  }

  void Note(const absl::Status& status) {
    if (status.ok()) return;
    failed_ = true;
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
  }

  absl::Status ReadAll() {
    const c10::ParallelGuard alone(true);  // ATen copies with this thread only
    at::Tensor staging;
    while (!failed_) {
      const size_t number = next_++;
      if (number >= chunks_.size()) break;
      RETURN_IF_ERROR(Read(chunks_[number], &staging));
    }
    return absl::OkStatus();
  }

  absl::Status Read(const Chunk& chunk, at::Tensor* staging) {
    const at::Tensor place = flat_.narrow(0, chunk.to, chunk.count());
    const int64_t size = static_cast<int64_t>(c10::elementSize(chunk.entry->dtype));
    const auto read = [&chunk](void* to) {
      return ReadStrided(*chunk.entry, chunk.begin, chunk.run, chunk.runs, chunk.stride, to);
    };
    if (place.is_cpu() && place.scalar_type() == chunk.entry->dtype) return read(place.data_ptr());
    if (!staging->defined() || staging->numel() < chunk.count() * size) {
      // The GPU copies directly from pinned memory.
      *staging = at::empty({std::max(kChunkElements, chunk.count()) * size},
                           at::TensorOptions(at::kByte).pinned_memory(place.is_cuda()));
    }
    RETURN_IF_ERROR(read(staging->data_ptr()));
    place.copy_(staging->narrow(0, 0, chunk.count() * size).view(chunk.entry->dtype));
    return absl::OkStatus();
  }

  const std::vector<Chunk>& chunks_;
  const at::Tensor flat_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CannotHold(const std::string& dir, at::Device device, const c10::Error& error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      dir, ": can't hold the weights on ", device.str(), ": ", error.what_without_backtrace()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Weights>> LoadWeightShard(const std::string& dir, at::Device device,
                                                         at::ScalarType dtype,
                                                         const WeightShard& shard) {
  if (shard.ranks == 1) return LoadWeights(dir, device, dtype);
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(dir));
  const absl::StatusOr<ModelConfig> part = ShardConfig(config, shard.ranks);
  if (!part.ok()) return AddContext(part.status(), dir);
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::OpenFolder(dir));
  const ParameterLayout whole(config);
  RETURN_IF_ERROR(CheckEntries(dir, config, reader));
  std::shared_ptr<Weights> weights;
  try {
    weights =
        std::make_shared<Weights>(*part, UntouchedBuffer(ParameterLayout(*part), device, dtype));
  } catch (const c10::Error& error) {
    return CannotHold(dir, device, error);
  }
  const std::vector<Chunk> chunks = CutShard(whole, weights->layout(), shard.rank, reader);
  RETURN_IF_ERROR(AddContext(ChunkReaders(chunks, weights->flat()).Run(), dir));
  return weights;
}

absl::StatusOr<std::shared_ptr<Weights>> LoadWeights(const std::string& dir, at::Device device,
                                                     at::ScalarType dtype,
                                                     absl::Span<const FlatRange> parts) {
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(dir));
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::OpenFolder(dir));
  RETURN_IF_ERROR(CheckEntries(dir, config, reader));
  std::shared_ptr<Weights> weights;
  try {
    if (parts.empty()) {
      weights = std::make_shared<Weights>(config,
                                          UntouchedBuffer(ParameterLayout(config), device, dtype));
    } else {
      weights = std::make_shared<Weights>(config, device, dtype);
    }
  } catch (const c10::Error& error) {
    return CannotHold(dir, device, error);
  }
  const std::vector<Chunk> chunks = Cut(weights->layout(), reader, parts);
  RETURN_IF_ERROR(AddContext(ChunkReaders(chunks, weights->flat()).Run(), dir));
  return weights;
}

}  // namespace tritonrl
