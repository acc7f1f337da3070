// Learns a byte-level BPE vocabulary from a corpus and writes tokenizer.json and
// tokenizer_config.json.

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "model/tokenizer/bpe_trainer.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(std::string, corpus, "", "Text file, or .jsonl file with one object a line.");
ABSL_FLAG(std::vector<std::string>, fields, (std::vector<std::string>{"prompt", "response"}),
          "Text fields of each line's object (.jsonl only).");
ABSL_FLAG(std::string, out, "", "Folder for tokenizer.json and tokenizer_config.json.");
ABSL_FLAG(int, vocab_size, 768, "Ids in all, with 256 bytes and 5 added tokens.");
ABSL_FLAG(int, min_count, 2, "A pair seen less often is not merged.");

namespace tritonrl {
namespace {

absl::Status AddJsonLines(const std::string& path, absl::string_view text,
                          const std::vector<std::string>& fields, BpeTrainer* trainer) {
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const nlohmann::json object =
        nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    for (const std::string& field : fields) {
      if (!object.is_object() || !object.contains(field) || !object[field].is_string()) {
        return absl::InvalidArgumentError(absl::StrCat(path, ":", number,
                                                       ": not a JSON object with a text field \"",
                                                       field, "\" (see --fields)"));
      }
      trainer->AddText(object[field].get_ref<const std::string&>());
    }
  }
  return absl::OkStatus();
}

absl::Status Run() {
  if (absl::GetFlag(FLAGS_corpus).empty() || absl::GetFlag(FLAGS_out).empty()) {
    return absl::InvalidArgumentError("--corpus=FILE and --out=FOLDER are needed");
  }
  const std::string corpus = UserPath(absl::GetFlag(FLAGS_corpus));
  const std::string out = UserPath(absl::GetFlag(FLAGS_out));
  BpeTrainerOptions options;
  options.vocab_size = absl::GetFlag(FLAGS_vocab_size);
  options.min_count = absl::GetFlag(FLAGS_min_count);
  ASSIGN_OR_RETURN(BpeTrainer trainer, BpeTrainer::Create(options));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(corpus));
  if (absl::EndsWith(corpus, ".jsonl")) {
    RETURN_IF_ERROR(AddJsonLines(corpus, text, absl::GetFlag(FLAGS_fields), &trainer));
  } else {
    trainer.AddText(text);
  }
  absl::StatusOr<std::string> json = trainer.Train();
  if (!json.ok()) return AddContext(json.status(), corpus);
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::FromJson(*json, "just trained"));
  RETURN_IF_ERROR(CreateDirectories(out));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(out, "tokenizer.json"), absl::StrCat(*json, "\n")));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(out, "tokenizer_config.json"),
                                  TokenizerConfigJson("<|im_end|>", "<|endoftext|>")));
  std::cout << JoinPath(out, "tokenizer.json") << ": " << tokenizer.vocab_size() << " ids from "
            << trainer.num_pieces() << " pieces of text\n";
  if (tokenizer.vocab_size() < options.vocab_size) {
    std::cout << "(fewer than the " << options.vocab_size << " asked for: no further pair occurs "
              << options.min_count << " times)\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram(
      "Learns a byte-level BPE vocabulary.\n"
      "  bazel run //model/tokenizer:train_tokenizer -- --corpus=sft.jsonl --out=FOLDER",
      argc, argv);
  const absl::Status status = tritonrl::Run();
  if (!status.ok()) {
    std::cerr << "train_tokenizer: " << tritonrl::Message(status) << "\n";
    return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
  }
  return 0;
}
