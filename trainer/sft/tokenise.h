// Reads, checks and tokenises the files of a data set once, and keeps the tokens in a file.
#ifndef TRITONRL_TRAINER_SFT_TOKENISE_H_
#define TRITONRL_TRAINER_SFT_TOKENISE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/sft/example_encoder.h"
#include "trainer/sft/token_cache.h"

namespace tritonrl {

struct TokeniseOptions {
  std::vector<std::string> paths;
  std::string cache;  // the file for the tokens; its folder is created
  int64_t limit = 0;  // at most this many examples, the first ones; 0: all
  int threads = 1;
  // An example with a token at or beyond this id is a bad one: the model has no row for it. 0: any.
  int64_t vocab_size = 0;
  // Receives lines about the files, their forms, and what became of an old cache. May be null.
  std::function<void(const std::string&)> say;
  bool show_progress = false;  // on stderr, with the time that is left; from 10 MB on
};

// Returns the key of the cache of these files (by path, size and time of change), options and
// encoder. NotFound names a missing file.
absl::StatusOr<std::string> TokenCacheKey(const TokeniseOptions& options,
                                          const ExampleEncoder& encoder);

// Opens the cache, or makes it if there is none, it is damaged, or it was made for another `key`.
// Every example of the files (up to the limit) is parsed. InvalidArgument with the place of the
// first bad example, the expected value, and the number of further bad ones; or if the files hold
// no example.
absl::StatusOr<std::unique_ptr<TokenCache>> TokeniseOnce(const TokeniseOptions& options,
                                                         const std::string& key,
                                                         const ExampleEncoder& encoder);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_TOKENISE_H_
