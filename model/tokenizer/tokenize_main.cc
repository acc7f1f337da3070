// Encodes texts from standard input and prints one JSON object for each text. It serves to inspect
// a tokenizer and to compare it with another one.
//
// The form of a text is "<number of bytes>\n<bytes>", so that it can contain any bytes.

#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(std::string, tokenizer, "", "Path of a tokenizer.json.");
ABSL_FLAG(bool, parse_special, true, "Whether special tokens in the text are recognised.");
ABSL_FLAG(bool, add_special, false, "Whether to add the begin and end tokens of the file.");
ABSL_FLAG(bool, decode, false,
          "Texts are JSON lists of ids; prints their text with and without special tokens.");

namespace tritonrl {
namespace {

nlohmann::json Answer(const Tokenizer& tokenizer, const std::string& text) {
  if (!absl::GetFlag(FLAGS_decode)) {
    return {{"ids", tokenizer.Encode(text, absl::GetFlag(FLAGS_parse_special),
                                     absl::GetFlag(FLAGS_add_special))}};
  }
  const auto ids = nlohmann::json::parse(text).get<std::vector<int32_t>>();
  return {{"text", tokenizer.Decode(ids)}, {"plain", tokenizer.Decode(ids, true)}};
}

absl::Status Run() {
  ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                   Tokenizer::Load(UserPath(absl::GetFlag(FLAGS_tokenizer))));
  size_t size = 0;
  while (std::cin >> size) {
    std::cin.get();  // The line end.
    std::string text(size, '\0');
    if (!std::cin.read(text.data(), static_cast<std::streamsize>(size))) {
      return absl::InvalidArgumentError("standard input ends inside a text");
    }
    std::cout << Answer(tokenizer, text).dump() << "\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Encodes length-prefixed texts from standard input.", argc, argv);
  const absl::Status status = tritonrl::Run();
  if (!status.ok()) {
    std::cerr << "tokenize: " << tritonrl::Message(status) << "\n";
    return 1;
  }
  return 0;
}
