#include "verify/linter/kernel_taint.h"

#include <cmath>

namespace tritonrl::lint {
namespace {

bool Is(const std::optional<double>& constant, double value) {
  return constant.has_value() && *constant == value;
}

// True for x op c that gives back x.
bool IsIdentity(absl::string_view op, const std::optional<double>& right) {
  if (op == "+" || op == "-") return Is(right, 0);
  if (op == "*" || op == "/" || op == "**" || op == "//") return Is(right, 1);
  return false;
}

std::optional<double> Fold(absl::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/" && b != 0) return a / b;
  if (op == "//" && b != 0) return std::floor(a / b);
  if (op == "%" && a >= 0 && b > 0) return std::fmod(a, b);
  if ((op == "&" || op == "|") && (a == 0 || a == 1) && (b == 0 || b == 1))
    return op == "&" ? a * b : std::fmax(a, b);
  return std::nullopt;
}

// x op c for a multiple of a load; false when it is none any more.
bool Scale(absl::string_view op, double c, Taint* x) {
  if (op == "+" || op == "-") {
    x->offset += op == "+" ? c : -c;
  } else if (op == "*" || (op == "/" && c != 0)) {
    x->scale = op == "*" ? x->scale * c : x->scale / c;
    x->offset = op == "*" ? x->offset * c : x->offset / c;
  } else {
    return false;
  }
  return std::isfinite(x->scale) && std::isfinite(x->offset);
}

// a op b as a multiple of one load; false when it is none.
bool Affine(absl::string_view op, const Taint& a, const Taint& b, Taint* out) {
  if (a.load != 0 && b.constant.has_value()) {
    *out = a;
    out->arith = true;
    return Scale(op, *b.constant, out);
  }
  if (b.load != 0 && a.constant.has_value() && (op == "+" || op == "*" || op == "-")) {
    *out = op == "-" ? Negated(b) : b;
    out->arith = true;
    return Scale(op == "-" ? "+" : op, *a.constant, out);
  }
  if (a.load == 0 || a.load != b.load || (op != "+" && op != "-")) return false;
  const double sign = op == "+" ? 1 : -1;
  *out = a;
  out->arith = true;
  out->scale += sign * b.scale;
  out->offset += sign * b.offset;
  return true;
}

}  // namespace

Taint Taint::Number(double value) {
  Taint t;
  t.constant = value;
  t.nonnegative = value >= 0;
  return t;
}

void ClipText(std::string* text) {
  if (text->size() > kMaxAddressText) text->resize(kMaxAddressText);
}

bool SameLoad(const Taint& a, const Taint& b) {
  return a.load != 0 && a.load == b.load && a.scale == b.scale && a.offset == b.offset;
}

Taint Join(const Taint& a, const Taint& b) {
  Taint t;
  t.params = a.params | b.params;
  t.loaded = a.loaded | b.loaded;
  t.arith = a.arith || b.arith;
  t.index = a.index || b.index;
  t.structural = a.structural || b.structural;
  t.nonnegative = a.nonnegative && b.nonnegative;
  const bool a_empty = a.params == 0 && a.loaded == 0, b_empty = b.params == 0 && b.loaded == 0;
  t.address = a_empty                             ? b.address
              : b_empty || a.address == b.address ? a.address
                                                  : a.address + "|" + b.address;
  ClipText(&t.address);
  if (a.constant == b.constant) t.constant = a.constant;
  if (a.text == b.text) t.text = a.text;
  if (SameLoad(a, b)) {
    t.load = a.load;
    t.scale = a.scale;
    t.offset = a.offset;
  }
  return t;
}

Taint Mix(const Taint& a, const Taint& b) {
  Taint t = Join(a, b);
  t.constant.reset();
  t.text.reset();
  t.load = 0;
  t.nonnegative = false;
  if (t.loaded != 0) t.arith = true;
  return t;
}

bool Settled(const Taint& a, const Taint& b) {
  return a.params == b.params && a.loaded == b.loaded && a.arith == b.arith && a.index == b.index &&
         a.structural == b.structural && a.nonnegative == b.nonnegative &&
         a.constant == b.constant && a.text == b.text && a.address == b.address &&
         (a.load == 0) == (b.load == 0);
}

std::optional<bool> Truth(const Taint& t) {
  if (t.constant.has_value()) return *t.constant != 0;
  if (t.text.has_value()) return !t.text->empty() && *t.text != Taint::kNoneText;
  return std::nullopt;
}

Taint Negated(Taint t) {
  if (t.constant.has_value()) return Taint::Number(-*t.constant);
  if (t.loaded != 0) t.arith = true;
  t.scale = -t.scale;
  t.offset = -t.offset;
  t.nonnegative = false;
  return t;
}

Taint Arithmetic(absl::string_view op, const Taint& a, const Taint& b) {
  if (a.constant.has_value() && b.constant.has_value()) {
    if (std::optional<double> folded = Fold(op, *a.constant, *b.constant)) {
      Taint t = Taint::Number(*folded);
      t.params = a.params | b.params;
      return t;
    }
  }
  if (op == "&" && (Is(a.constant, 0) || Is(b.constant, 0))) return Taint::Number(0);
  if (a.loaded != 0 && IsIdentity(op, b.constant)) return a;
  if (b.loaded != 0 && (op == "+" || op == "*") && IsIdentity(op, a.constant)) return b;
  Taint affine;
  if (Affine(op, a, b, &affine)) return affine;
  Taint t = Mix(a, b);
  const bool grows = op == "+" || op == "*" || op == "//" || op == "%" || op == "/";
  t.nonnegative = grows && a.nonnegative && b.nonnegative;
  return t;
}

Taint Comparison(absl::string_view op, const Taint& a, const Taint& b) {
  if (a.text.has_value() && b.text.has_value()) {
    if (op == "==" || op == "is") return Taint::Number(*a.text == *b.text ? 1 : 0);
    if (op == "!=" || op == "is not") return Taint::Number(*a.text != *b.text ? 1 : 0);
  }
  const bool ints = a.constant.has_value() && b.constant.has_value();
  if (ints) {
    const double x = *a.constant, y = *b.constant;
    if (op == "<") return Taint::Number(x < y ? 1 : 0);
    if (op == "<=") return Taint::Number(x <= y ? 1 : 0);
    if (op == ">") return Taint::Number(x > y ? 1 : 0);
    if (op == ">=") return Taint::Number(x >= y ? 1 : 0);
    if (op == "==") return Taint::Number(x == y ? 1 : 0);
    if (op == "!=") return Taint::Number(x != y ? 1 : 0);
  }
  // Sizes, indices and their sums are never negative.
  if (a.nonnegative && b.constant.has_value() && *b.constant <= 0) {
    if (op == ">=") return Taint::Number(1);
    if (op == "<") return Taint::Number(0);
    if (*b.constant < 0 && (op == "==" || op == "<=")) return Taint::Number(0);
  }
  if (b.nonnegative && a.constant.has_value() && *a.constant <= 0) {
    if (op == "<=") return Taint::Number(1);
    if (op == ">") return Taint::Number(0);
  }
  Taint t = Mix(a, b);
  t.structural = t.structural || (a.index && b.index);
  return t;
}

}  // namespace tritonrl::lint
