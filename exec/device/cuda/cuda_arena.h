// The arena on a GPU: virtual addresses as on the CPU, physical memory under each storage.
//
// Tags lie at a constant distance behind the data, so that a kernel finds a byte's tag without a
// table. Physical memory is kept for the next storage or candidate, as the driver is slow to make
// it; what it holds is overwritten before a candidate sees it.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_CUDA_ARENA_H_
#define TRITONRL_EXEC_DEVICE_CUDA_CUDA_ARENA_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "exec/device/arena.h"
#include "exec/device/cuda/context.h"

namespace tritonrl::device {

class CudaArena : public Arena {
 public:
  // The addresses are those of `base` if the driver grants them, else others. ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<CudaArena>> Create(CudaContext* context,
                                                           uintptr_t base = kArenaBase,
                                                           int64_t bytes = kArenaBytes);
  ~CudaArena() override;

  c10::Device device() const override;
  absl::Status Commit(char* place, int64_t bytes) override;
  void Decommit(char* place, int64_t bytes) override;
  absl::StatusOr<uint8_t*> CommitTags(char* place, int64_t bytes) override;
  void set_ignores_tags(bool ignores) override { ignores_tags_ = ignores; }
  void DecommitTags(uint8_t*) override {}
  void Reset() override;

  // From a byte to its tag.
  int64_t tag_distance() const { return bytes(); }
  // Physical memory, in use or kept.
  int64_t physical_bytes() const { return physical_bytes_; }
  void Trim() override;

 private:
  struct Piece {
    CUmemGenericAllocationHandle handle = 0;
    int64_t bytes = 0;
    bool is_shared = false;
  };
  CudaArena(CudaContext* context, char* base, int64_t bytes, int64_t granularity);

  absl::StatusOr<Piece> TakePiece(int64_t bytes);
  absl::StatusOr<Piece> SharedPiece();
  // With `shared` all pieces of the largest size are one and the same.
  absl::Status Map(char* at, int64_t bytes, bool shared = false);
  void Unmap(char* at);

  CudaContext* context_;
  int64_t granularity_;
  std::map<char*, std::vector<Piece>> mapped_;    // by the begin of a storage or of its tags
  std::map<int64_t, std::vector<Piece>> unused_;  // by size
  int64_t physical_bytes_ = 0;
  bool ignores_tags_ = false;
  std::optional<Piece> shared_;  // for tags; in use until Reset
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_CUDA_ARENA_H_
