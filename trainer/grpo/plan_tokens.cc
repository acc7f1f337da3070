#include "trainer/grpo/plan_tokens.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tritonrl {

int PlanTokens(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
               const ResponseStyle& style) {
  // The bytes before the repair of UTF-8, because a repaired character is longer than the bytes of
  // its tokens. The repair changes no ASCII character, so both texts have the same tags and fences.
  std::string text;
  std::vector<size_t> ends;
  ends.reserve(tokens.size());
  for (const int32_t token : tokens) {
    text += tokenizer.TokenBytes(token);
    ends.push_back(text.size());
  }
  return CountPlanTokens(ends, PlanBytes(text, style));
}

}  // namespace tritonrl
