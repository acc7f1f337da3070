// What the kernel analysis knows of one value inside a Triton kernel.
#ifndef TRITONRL_VERIFY_LINTER_KERNEL_TAINT_H_
#define TRITONRL_VERIFY_LINTER_KERNEL_TAINT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tritonrl::lint {

// What a value may depend on; bit i stands for parameter i (63 for all beyond).
struct Taint {
  uint64_t params = 0;              // computed from the parameter itself: pointers and sizes
  uint64_t loaded = 0;              // computed from memory behind the parameter
  bool arith = false;               // an operation was applied to loaded data
  bool nonnegative = false;         // a number that is not below 0
  bool index = false;               // depends on program_id or arange
  bool structural = false;          // compares indices with each other (a triangle, a band)
  std::string address;              // pointers: what was added; loaded copies: where from
  std::optional<double> constant;   // its number, where certain; booleans are 0 and 1
  std::optional<std::string> text;  // its string, where certain; kNoneText for None
  // Not 0: the value is scale * (what load number `load` gave) + offset, so that disguised copies
  // (x * 1, -(-x), x + 0) and disguised zeros (x * 0, x - x) show.
  int load = 0;
  double scale = 1, offset = 0;

  static constexpr char kNoneText[] = "\1None";
  static Taint Number(double value);

  bool IsCopy() const { return load != 0 && scale == 1 && offset == 0; }
  bool IsFixed() const { return load != 0 && scale == 0; }
};

Taint Join(const Taint& a, const Taint& b);  // one or the other
Taint Mix(const Taint& a, const Taint& b);   // result of an operation on both
// Equal in all that flows on; loads have new numbers in each pass and do not count.
bool Settled(const Taint& a, const Taint& b);
// Truth as a condition, where certain.
std::optional<bool> Truth(const Taint& t);
// `op` on both where that is a number or stays a multiple of one load; else Mix.
Taint Arithmetic(absl::string_view op, const Taint& a, const Taint& b);
Taint Comparison(absl::string_view op, const Taint& a, const Taint& b);
Taint Negated(Taint t);
// True when both are certainly the same loaded value.
bool SameLoad(const Taint& a, const Taint& b);
// Cuts a canonical text to the length up to which texts are kept.
void ClipText(std::string* text);
inline constexpr int kMaxAddressText = 300;

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_KERNEL_TAINT_H_
