#include "exec/device/testing/fake_compiler.h"

#include <string.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl::device {
namespace {

class FakeKernel : public LaunchableKernel {
 public:
  explicit FakeKernel(std::string text) : text_(std::move(text)) {}

  absl::Status Launch(const std::array<int32_t, 3>&, absl::Span<const LaunchArgument> arguments,
                      const LaunchSettings& settings) const override {
    if (settings.expired && settings.expired()) {
      return absl::DeadlineExceededError("a kernel did not finish in time");
    }
    if (text_ == "add") return Add(arguments, settings);
    if (text_ == "scale") return Scale(arguments, settings);
    if (text_ == "table") return Table(arguments, settings);
    return absl::OutOfRangeError("an access out of bounds, line 3 of kernel.py");
  }

 private:
  static absl::Status Check(absl::Span<const LaunchArgument> arguments, size_t pointers, size_t all,
                            int64_t count) {
    if (arguments.size() != all) return absl::InvalidArgumentError("another number of arguments");
    for (size_t i = 0; i < pointers; ++i) {
      const LaunchArgument& pointer = arguments[i];
      if (pointer.kind != LaunchArgument::Kind::kPointer) {
        return absl::InvalidArgumentError("an argument is not a pointer");
      }
      const int64_t left = pointer.storage + pointer.storage_bytes - pointer.data;
      if (reinterpret_cast<uintptr_t>(pointer.data) % sizeof(float) != 0) {
        return absl::OutOfRangeError("a misaligned access");
      }
      if (count < 0 || count > left / static_cast<int64_t>(sizeof(float))) {
        return absl::OutOfRangeError("an access out of bounds, line 2 of kernel.py");
      }
    }
    return absl::OkStatus();
  }
  static uint8_t* ShadowOf(const LaunchArgument& pointer) {
    return pointer.shadow + (pointer.data - pointer.storage);
  }
  static void Mark(uint8_t* shadow, int64_t floats, const LaunchSettings& settings) {
    memset(shadow, settings.shadow_tag, static_cast<size_t>(floats) * sizeof(float));
  }
  // `shadow`: of `out`.
  static void AddFloats(const char* x, const char* y, char* out, int64_t count, uint8_t* shadow,
                        const LaunchSettings& settings) {
    for (int64_t i = 0; i < count; ++i) {
      const float sum = reinterpret_cast<const float*>(x)[i] + reinterpret_cast<const float*>(y)[i];
      reinterpret_cast<float*>(out)[i] = sum;
    }
    Mark(shadow, count, settings);
  }
  static absl::Status Add(absl::Span<const LaunchArgument> arguments,
                          const LaunchSettings& settings) {
    const int64_t count = arguments.size() == 4 ? arguments[3].integer : 0;
    RETURN_IF_ERROR(Check(arguments, 3, 4, count));
    AddFloats(arguments[0].data, arguments[1].data, arguments[2].data, count,
              ShadowOf(arguments[2]), settings);
    return absl::OkStatus();
  }
  static absl::Status Scale(absl::Span<const LaunchArgument> arguments,
                            const LaunchSettings& settings) {
    const int64_t count = arguments.size() == 3 ? arguments[1].integer : 0;
    RETURN_IF_ERROR(Check(arguments, 1, 3, count));
    float* const x = reinterpret_cast<float*>(arguments[0].data);
    for (int64_t i = 0; i < count; ++i) x[i] *= static_cast<float>(arguments[2].number);
    Mark(ShadowOf(arguments[0]), count, settings);
    return absl::OkStatus();
  }
  static absl::Status Table(absl::Span<const LaunchArgument> arguments,
                            const LaunchSettings& settings) {
    const int64_t count = arguments.size() == 2 ? arguments[1].integer : 0;
    RETURN_IF_ERROR(Check(arguments, 1, 2, 6));
    uint64_t addresses[3];
    memcpy(addresses, arguments[0].data, sizeof(addresses));
    char* data[3] = {};
    uint8_t* shadow = nullptr;  // of the last one
    for (int i = 0; i < 3; ++i) {
      for (const ReachableStorage& storage : settings.reachable) {
        const auto begin = reinterpret_cast<uint64_t>(storage.data);
        if (addresses[i] >= begin && count >= 0 && count <= storage.bytes / 4 &&
            addresses[i] + static_cast<uint64_t>(count) * 4 <=
                begin + static_cast<uint64_t>(storage.bytes)) {
          data[i] = storage.data + (addresses[i] - begin);
          shadow = storage.shadow + (addresses[i] - begin);
        }
      }
      if (data[i] == nullptr || addresses[i] % 4 != 0) {
        return absl::OutOfRangeError("an address that is no tensor's");
      }
    }
    AddFloats(data[0], data[1], data[2], count, shadow, settings);
    return absl::OkStatus();
  }

  std::string text_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const LaunchableKernel>> FakeCompiler::CompileTtir(
    absl::string_view text, const KernelOptions&) {
  if (text != "add" && text != "scale" && text != "table" && text != "wild") {
    return absl::InvalidArgumentError("not executable: tt.xyz, line 12 of kernel.py");
  }
  ++compiled_;
  return std::make_shared<FakeKernel>(std::string(text));
}

}  // namespace tritonrl::device
