#include "exec/device/cuda/cuda_arena.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

// Sizes of physical pieces: few, so that those of one storage fit the next.
constexpr int64_t kPieceBytes[] = {int64_t{512} << 20, int64_t{32} << 20, int64_t{2} << 20};

CUdeviceptr Address(const char* at) { return reinterpret_cast<CUdeviceptr>(at); }

CUmemAllocationProp Properties(int device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

}  // namespace

CudaArena::CudaArena(CudaContext* context, char* base, int64_t bytes, int64_t granularity)
    : Arena(base, bytes, granularity, /*guard=*/granularity),
      context_(context),
      granularity_(granularity) {}

absl::StatusOr<std::unique_ptr<CudaArena>> CudaArena::Create(CudaContext* context, uintptr_t base,
                                                             int64_t bytes) {
  const Driver& driver = context->driver();
  const CUmemAllocationProp properties = Properties(context->index());
  size_t granularity = 0;
  RETURN_IF_ERROR(driver.ToStatus(driver.cuMemGetAllocationGranularity(
                                      &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                                  "find the GPU's page size"));
  const int64_t block = std::max<int64_t>(static_cast<int64_t>(granularity), kPieceBytes[2]);
  CUdeviceptr got = 0;
  RETURN_IF_ERROR(driver.ToStatus(
      driver.cuMemAddressReserve(&got, static_cast<size_t>(2 * bytes), static_cast<size_t>(block),
                                 static_cast<CUdeviceptr>(base), 0),
      "reserve the arena's addresses"));
  return std::unique_ptr<CudaArena>(
      new CudaArena(context, reinterpret_cast<char*>(got), bytes, block));
}

CudaArena::~CudaArena() {
  if (context_->poisoned()) return;  // the driver may wait for ever; the process ends anyway
  Reset();
  Trim();
  context_->driver().cuMemAddressFree(Address(base()), static_cast<size_t>(2 * bytes()));
}

c10::Device CudaArena::device() const {
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(context_->index())};
}

absl::StatusOr<CudaArena::Piece> CudaArena::TakePiece(int64_t bytes) {
  std::vector<Piece>& kept = unused_[bytes];
  if (!kept.empty()) {
    const Piece piece = kept.back();
    kept.pop_back();
    return piece;
  }
  const Driver& driver = context_->driver();
  const CUmemAllocationProp properties = Properties(context_->index());
  Piece piece;
  piece.bytes = bytes;
  CUresult result = driver.cuMemCreate(&piece.handle, static_cast<size_t>(bytes), &properties, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    Trim();
    CatchTorch([] { c10::cuda::CUDACachingAllocator::emptyCache(); }).IgnoreError();
    result = driver.cuMemCreate(&piece.handle, static_cast<size_t>(bytes), &properties, 0);
  }
  RETURN_IF_ERROR(driver.ToStatus(result, "get GPU memory"));
  physical_bytes_ += bytes;
  return piece;
}

absl::StatusOr<CudaArena::Piece> CudaArena::SharedPiece() {
  if (!shared_.has_value()) {
    ASSIGN_OR_RETURN(shared_, TakePiece(kPieceBytes[0]));
    shared_->is_shared = true;
  }
  return *shared_;
}

absl::Status CudaArena::Map(char* at, int64_t bytes, bool shared) {
  const Driver& driver = context_->driver();
  std::vector<Piece>& pieces = mapped_[at];
  const int64_t total = InBlocks(bytes);
  int64_t done = 0;
  absl::Status status;
  for (const int64_t size : kPieceBytes) {
    while (status.ok() && total - done >= size) {
      const bool is_shared = shared && size == kPieceBytes[0];
      const absl::StatusOr<Piece> piece = is_shared ? SharedPiece() : TakePiece(size);
      status = piece.status();
      if (!status.ok()) break;
      status = driver.ToStatus(
          driver.cuMemMap(Address(at + done), static_cast<size_t>(size), 0, piece->handle, 0),
          "map GPU memory");
      if (!status.ok()) {
        if (!is_shared) unused_[size].push_back(*piece);
        break;
      }
      pieces.push_back(*piece);
      done += size;
    }
  }
  CUmemAccessDesc access = {};
  access.location = Properties(context_->index()).location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (status.ok()) {
    status =
        driver.ToStatus(driver.cuMemSetAccess(Address(at), static_cast<size_t>(total), &access, 1),
                        "open GPU memory");
  }
  if (!status.ok()) Unmap(at);
  return status;
}

void CudaArena::Unmap(char* at) {
  const auto found = mapped_.find(at);
  if (found == mapped_.end()) return;
  char* place = at;
  for (const Piece& piece : found->second) {
    context_->driver().cuMemUnmap(Address(place), static_cast<size_t>(piece.bytes));
    place += piece.bytes;
    if (!piece.is_shared) unused_[piece.bytes].push_back(piece);
  }
  mapped_.erase(found);
}

absl::Status CudaArena::Commit(char* place, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  RETURN_IF_ERROR(Map(place, bytes));
  const absl::Status tags = Map(place + tag_distance(), bytes, /*shared=*/ignores_tags_);
  if (!tags.ok()) Unmap(place);
  return tags;
}

absl::StatusOr<uint8_t*> CudaArena::CommitTags(char* place, int64_t bytes) {
  auto* const tags = reinterpret_cast<uint8_t*>(place + tag_distance());
  RETURN_IF_ERROR(CatchTorch([&] { FillBytes(device(), tags, 0, bytes); }));
  return tags;
}

void CudaArena::Decommit(char* place, int64_t bytes) {
  if (bytes == 0 || context_->poisoned()) return;
  // Work that is queued may still use it.
  CatchTorch([&] { WaitFor(device()); }).IgnoreError();
  Unmap(place);
  Unmap(place + tag_distance());
}

void CudaArena::Reset() {
  if (context_->poisoned()) return;
  if (!mapped_.empty()) CatchTorch([&] { WaitFor(device()); }).IgnoreError();
  while (!mapped_.empty()) Unmap(mapped_.begin()->first);
  if (shared_.has_value()) {
    shared_->is_shared = false;
    unused_[shared_->bytes].push_back(*shared_);
    shared_.reset();
  }
  ignores_tags_ = false;
  ForgetPlaces();
}

void CudaArena::Trim() {
  for (auto& [size, pieces] : unused_) {
    for (const Piece& piece : pieces) context_->driver().cuMemRelease(piece.handle);
    physical_bytes_ -= size * static_cast<int64_t>(pieces.size());
    pieces.clear();
  }
}

}  // namespace tritonrl::device
