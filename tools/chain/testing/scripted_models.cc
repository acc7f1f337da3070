#include "tools/chain/testing/scripted_models.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tritonrl {

int NumberAfter(absl::string_view mark, absl::string_view text) {
  const size_t at = text.find(mark);
  if (at == absl::string_view::npos) return -1;
  text.remove_prefix(at + mark.size());
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  int number = -1;
  return absl::SimpleAtoi(text.substr(0, digits), &number) ? number : -1;
}

int LevelOfNet(int number) { return 1 + number % 3; }

bool GetsWrongWidth(int number) { return number % 24 == 4; }

MockReply Labeller(const MockRequest& request) {
  if (request.number == 1) return MockReply::Chat("It may be level two.");
  if (request.number == 2) return MockReply::Error(500, "overloaded");
  const int number = NumberAfter("class Net", request.prompt);
  return MockReply::Chat(
      absl::StrCat("Some thoughts.\nReason: by number\nLevel: ", LevelOfNet(number)));
}

MockReply InputWriter(const MockRequest& request) {
  const std::string head = "def get_inputs():\n    return ";
  const size_t begin = request.prompt.find(head);
  if (begin == std::string::npos) return MockReply::Error(400, "the prompt holds no task");
  const std::string function =
      request.prompt.substr(begin, request.prompt.find('\n', begin + head.size()) - begin);
  const auto block = [&](const char* shape) {
    return absl::StrCat("```python\n", absl::StrReplaceAll(function, {{"[4, 4, 4, 4]", shape}}),
                        "\n```\n");
  };
  const int number = NumberAfter("class Net", request.prompt);
  if (GetsWrongWidth(number)) return MockReply::Chat(block("[2, 3, 4, 5]"));
  const bool twice = LevelOfNet(number) == 1;
  return MockReply::Chat(absl::StrCat(block("[2, 3, 5, 4]"), twice ? block("[4, 4, 4, 4]") : ""));
}

}  // namespace tritonrl
