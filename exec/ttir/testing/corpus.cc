#include "exec/ttir/testing/corpus.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {

namespace {

constexpr char kFolder[] = "exec/ttir/testing/corpus";

}  // namespace

std::vector<CorpusText> ReadCorpus() {
  std::vector<CorpusText> corpus;
  const auto folder = Runfile(kFolder);
  EXPECT_TRUE(folder.ok()) << folder.status();
  if (!folder.ok()) return corpus;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() != ".ttir") continue;
    auto text = ReadFile(entry.path().string());
    EXPECT_TRUE(text.ok()) << text.status();
    if (text.ok()) corpus.push_back({entry.path().filename().string(), *std::move(text)});
  }
  std::sort(corpus.begin(), corpus.end(),
            [](const CorpusText& a, const CorpusText& b) { return a.name < b.name; });
  EXPECT_FALSE(corpus.empty());
  return corpus;
}

std::string CorpusTextOf(const std::string& name) {
  const auto path = Runfile(absl::StrCat(kFolder, "/", name));
  EXPECT_TRUE(path.ok()) << path.status();
  const auto text = path.ok() ? ReadFile(*path) : path;
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

std::string ModuleAround(const std::string& body) {
  return absl::StrCat(
      "#loc = loc(\"kernel.py\":3:0)\n#loc1 = loc(\"kernel.py\":12:8)\nmodule {\n"
      "  tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc(#loc), "
      "%q: !tt.ptr<i32>, %n: i32, %c: i1, %f: f32) attributes {noinline = false} {\n",
      body, "\n  } loc(#loc)\n} loc(#loc)\n");
}

}  // namespace tritonrl::ttir
