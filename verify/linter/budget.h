// How much work one program may cause.
#ifndef TRITONRL_VERIFY_LINTER_BUDGET_H_
#define TRITONRL_VERIFY_LINTER_BUDGET_H_

#include <cstddef>
#include <cstdint>

namespace tritonrl::lint {

// Counts work in units of about ten nanoseconds: an object looked at, an alternative compared, a
// handful of numbers or letters copied. Whatever takes time or memory that grows with what the
// program has made so far counts here, not only statements and expressions, so that time and memory
// are bounded for any source.
class Budget {
 public:
  explicit Budget(uint64_t units) : left_(units) {}

  void Spend(uint64_t units) { left_ = units < left_ ? left_ - units : 0; }
  // `count` pairs of a search in a list of `length`, of which eight take a unit.
  void SpendSearch(uint64_t count, uint64_t length) { Spend(count * length / 8); }
  bool used_up() const { return left_ == 0; }
  void UseUp() { left_ = 0; }

 private:
  uint64_t left_;
};

// One more level of a recursion while it lives.
class Nested {
 public:
  explicit Nested(int* depth) : depth_(depth) { ++*depth_; }
  ~Nested() { --*depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int* depth_;
};

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_BUDGET_H_
