// The one look-up behind the linter's tables: names, written as words of a text, to what they are.
#ifndef TRITONRL_VERIFY_LINTER_NAME_TABLE_H_
#define TRITONRL_VERIFY_LINTER_NAME_TABLE_H_

#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tritonrl::lint {

// `Use` is an enum, or a set of bits: a word in several rows has the bits of all of them.
template <typename Use>
class NameTable {
 public:
  // Rows of a use and its words, which must be literals: the table keeps views.
  NameTable(std::initializer_list<std::pair<Use, absl::string_view>> rows) {
    for (const auto& [use, words] : rows) {
      for (absl::string_view word : absl::StrSplit(words, ' ', absl::SkipEmpty())) {
        auto [it, fresh] = uses_.emplace(word, use);
        if constexpr (std::is_integral_v<Use>) {
          if (!fresh) it->second |= use;
        }
      }
    }
  }

  std::optional<Use> Find(absl::string_view name) const {
    auto it = uses_.find(name);
    if (it == uses_.end()) return std::nullopt;
    return it->second;
  }

 private:
  absl::flat_hash_map<absl::string_view, Use> uses_;
};

inline bool StartsWithAny(absl::string_view name,
                          std::initializer_list<absl::string_view> prefixes) {
  for (absl::string_view prefix : prefixes) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_NAME_TABLE_H_
