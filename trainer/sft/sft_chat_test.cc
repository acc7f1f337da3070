// Runs the program //trainer:sft with a chat model as people have them: config.json ends texts with
// another token than the chat template ends turns. Also bad folders and files, and a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/testing/small_disk.h"
#include "model/chat/chat_template.h"
#include "model/chat/testing/chat_folder.h"
#include "model/weights/stop_tokens.h"
#include "nlohmann/json.hpp"
#include "parallel/testing/mpi_launch.h"
#include "rollout/factory/make_engine.h"
#include "rollout/testing/engine_config_text.h"
#include "trainer/sft/chat_encoder.h"
#include "trainer/sft/sft_example.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr int32_t kEndOfText = 258, kImStart = 259, kImEnd = 260;
constexpr char kQuestion[] = "What is 2+2?";
constexpr char kAnswer[] = "It is 4.";
constexpr int kMostTokens = 40;  // of an answer; the taught one has 9

json AddedToken(int32_t id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

class SftChatTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = MakeTempDirectory("sft_chat").value();
    model_ = dir_ + "/model";
    WriteTinyModel(model_);
    json tokenizer = json::parse(ReadFile(model_ + "/tokenizer.json").value());
    tokenizer["added_tokens"].push_back(AddedToken(kImStart, "<|im_start|>"));
    tokenizer["added_tokens"].push_back(AddedToken(kImEnd, "<|im_end|>"));
    Write("model/tokenizer.json", tokenizer.dump());
    Write("model/tokenizer_config.json",
          json{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"eos_token", "<|endoftext|>"}}
              .dump());
    Write("model/chat_template.jinja", kChatMl);
    const json turns = {{{"role", "user"}, {"content", kQuestion}},
                        {{"role", "assistant"}, {"content", kAnswer}}};
    std::string lines;
    for (int i = 0; i < 8; ++i) absl::StrAppend(&lines, json{{"messages", turns}}.dump(), "\n");
    Write("data.jsonl", lines);
    Write("c.textproto",
          absl::StrCat("policy { dir: '", model_,
                       "' random_init: true device: 'cpu' save_dtype: FLOAT32 }\n", "train_data: '",
                       dir_, "/data.jsonl'\n",
                       "optimizer { learning_rate: 1e-2 schedule: COSINE warmup_steps: 5 }\n"
                       "batch_size: 8\nsteps: 200\nmicro_batch_tokens: 400\nlog_every: 20\n"
                       "threads: 1\n"));
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFileAtomic(JoinPath(dir_, name), text).ok());
  }

  std::vector<std::string> Command(const std::string& out,
                                   const std::vector<std::string>& sets = {}) const {
    std::vector<std::string> argv = {Runfile("trainer/sft/sft").value(),
                                     "--config=" + dir_ + "/c.textproto",
                                     "--set=output_dir=" + JoinPath(dir_, out)};
    for (const std::string& set : sets) argv.push_back("--set=" + set);
    return argv;
  }
  CommandResult Run(const std::vector<std::string>& argv) const {
    const auto result =
        RunCommand(argv, {.timeout = absl::Minutes(2), .env = MpiTestEnvironment()});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult());
  }

  std::string dir_, model_;
};

// The greedy answer of our engine, which stops where the files of the folder say so.
struct Answer {
  Ids prompt, tokens;
  FinishReason finish_reason = FinishReason::kFailed;
};

Answer AskEngine(const std::string& folder) {
  const LoadedModel model = LoadModel(folder, at::kCPU).value();
  const ChatTemplate chat = ChatTemplate::Load(folder, {}, model.tokenizer).value();
  GenerateRequest request;
  request.prompt = chat.Encode({{"user", kQuestion}}, /*add_generation_prompt=*/true).value();
  request.sampling.temperature = 0;
  request.sampling.max_tokens = kMostTokens;
  request.sampling.stop_ids = model.stop_ids;  // without the template's own end of turn
  const auto engine =
      MakeBatchedEngine(model.weights, MakeEngineConfig("max_num_seqs: 1"), {.cpu_threads = 1})
          .value();
  EXPECT_TRUE(engine->Submit(request).ok());
  const Sample sample = engine->Next(absl::Now() + absl::Minutes(1)).value();
  return {request.prompt, sample.tokens, sample.finish_reason};
}

json AskTransformers(const std::string& folder) {
  const PythonEnv python = FindPythonEnv().value();
  RunCommandOptions options;
  options.input = json{{"model", folder}, {"question", kQuestion}, {"tokens", kMostTokens}}.dump();
  options.timeout = absl::Minutes(4);
  options.env = python.Environment();
  const auto run = RunCommand(
      {python.interpreter, Runfile("trainer/sft/testing/transformers_answer.py").value()}, options);
  EXPECT_TRUE(run.ok() && run->ok()) << (run.ok() ? run->err : run.status().ToString());
  if (!run.ok()) return {};
  return json::parse(run->out, nullptr, /*allow_exceptions=*/false);
}

TEST_F(SftChatTest, TheTrainedFolderStopsAtTheTemplatesEndOfTurnEverywhere) {
  ASSERT_EQ(StopTokens(model_).value(), Ids{kEndOfText});  // no file names <|im_end|> as an end
  const CommandResult result = Run(Command("run"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr(absl::StrCat("chat template: ", model_,
                                     "/chat_template.jinja; turns end with <|im_end|>")));

  const std::string trained = dir_ + "/run/model";
  const json generation = json::parse(ReadFile(trained + "/generation_config.json").value());
  EXPECT_EQ(generation["eos_token_id"], (json{kEndOfText, kImEnd}));
  for (const char* name : {"/tokenizer.json", "/tokenizer_config.json", "/chat_template.jinja"}) {
    EXPECT_EQ(ReadFile(trained + name).value(), ReadFile(model_ + name).value()) << name;
  }

  Ids taught = LoadModel(trained, at::kCPU)->tokenizer.Encode(kAnswer);
  taught.push_back(kImEnd);
  const Answer ours = AskEngine(trained);
  EXPECT_EQ(ours.tokens, taught);
  EXPECT_EQ(ours.finish_reason, FinishReason::kStop);
  const json theirs = AskTransformers(trained);
  ASSERT_TRUE(theirs.is_object());
  EXPECT_EQ(theirs["prompt"].get<Ids>(), ours.prompt);
  EXPECT_EQ(theirs["answer"].get<Ids>(), taught);
  EXPECT_EQ(theirs["stop_ids"], (json{kEndOfText, kImEnd}));
  // The models of checkpoints are whole folders too.
  const std::string last = dir_ + "/run/checkpoints/step_000200/model";
  for (const char* name : {"/generation_config.json", "/chat_template.jinja"}) {
    EXPECT_EQ(ReadFile(last + name).value(), ReadFile(trained + name).value()) << name;
  }
}

// A folder may name its end token in generation_config.json alone.
TEST_F(SftChatTest, WithoutATemplateTheEndOfGenerationConfigIsTaughtAndKept) {
  json config = json::parse(ReadFile(model_ + "/config.json").value());
  config["eos_token_id"] = nullptr;
  Write("model/config.json", config.dump());
  Write("model/generation_config.json", json{{"eos_token_id", kEndOfText}}.dump());
  const CommandResult result = Run(Command("run", {"steps=1", "policy.chat.template=none"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* folder : {"/run/model", "/run/checkpoints/step_000001/model"}) {
    EXPECT_EQ(StopTokens(dir_ + folder).value(), Ids{kEndOfText}) << folder;
  }
}

TEST_F(SftChatTest, TheLastTaughtTokenIsTheEndOfTurn) {
  const Policy policy = LoadPolicy(TinyPolicyConfig(model_), {.threads = 1}).value();
  EXPECT_EQ(policy.end_token(), kImEnd);
  for (const SftConfig::Teach teach : {SftConfig::LAST, SftConfig::ALL}) {
    const ChatEncoder encoder(*policy.chat, "hash", teach);
    const EncodedExample example =
        encoder
            .Encode({.messages = {{.role = "user", .content = kQuestion},
                                  {.role = "assistant", .content = kAnswer},
                                  {.role = "user", .content = kQuestion},
                                  {.role = "assistant", .content = kAnswer}}})
            .value();
    ASSERT_EQ(example.taught.size(), teach == SftConfig::ALL ? 2 : 1);
    for (const TokenSpan& span : example.taught) {
      const Ids tokens(example.tokens.begin() + span.begin, example.tokens.begin() + span.end);
      EXPECT_EQ(tokens.back(), kImEnd);
      EXPECT_EQ(policy.tokenizer->Decode(tokens), absl::StrCat(kAnswer, "<|im_end|>"));
    }
    EXPECT_EQ(example.taught.back().end, example.tokens.size());
  }
}

TEST_F(SftChatTest, BadFoldersAndFilesAreNamed) {
  const std::string shard = dir_ + "/shard/model-00002-of-00002.safetensors";
  ASSERT_TRUE(CreateDirectories(dir_ + "/shard").ok());
  for (const char* name : {"/config.json", "/tokenizer.json"}) {
    Write(absl::StrCat("shard", name), ReadFile(model_ + name).value());
  }
  json index;
  index["weight_map"]["model.norm.weight"] = BaseName(shard);
  Write("shard/model.safetensors.index.json", index.dump());
  Write("raises.jinja", "{{ raise_exception('This model takes no questions') }}");
  Write("text.parquet", "prompt,response\n");
  const PythonEnv python = FindPythonEnv().value();
  const auto columns = RunCommand(
      {python.interpreter, "-c",
       "import sys, pyarrow\nfrom pyarrow import parquet\n"
       "parquet.write_table(pyarrow.table({'question': ['q'], 'solution': ['s']}), sys.argv[1])\n",
       dir_ + "/columns.parquet"},
      {.env = python.Environment()});
  ASSERT_TRUE(columns.ok()) << columns.status();
  ASSERT_TRUE(columns->ok()) << columns->err;
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"policy.random_init=false", "policy.dir=" + dir_ + "/shard"},
       absl::StrCat(shard,
                    ": is missing, though model.safetensors.index.json lists it; copy or download "
                    "it into the folder")},
      {{"policy.chat.template=" + dir_ + "/raises.jinja"},
       absl::StrCat("policy.chat: chat template (", dir_,
                    "/raises.jinja): This model takes no questions; a template must write a single "
                    "question of a user, so give another one, or \"none\"")},
      {{"train_data=" + dir_ + "/text.parquet"},
       dir_ + "/text.parquet is no Parquet file: it does not begin with PAR1"},
      {{"train_data=" + dir_ + "/columns.parquet"},
       absl::StrCat(dir_, "/columns.parquet (row 1): the fields \"question\", \"solution\" are no ",
                    "known form of example (wanted: ")},
  };
  for (const auto& [sets, sentence] : cases) {
    const CommandResult result = Run(Command("bad", sets));
    EXPECT_EQ(result.exit_code, 1) << sentence;
    EXPECT_THAT(result.err, HasSubstr(sentence));
    EXPECT_FALSE(FileExists(dir_ + "/bad/metrics.jsonl")) << "the run began";
  }
}

// Bytes on a disk whose files have pages of 4 KiB.
int64_t DiskBytes(const std::string& path) {
  constexpr int64_t kPage = 4096;
  if (!DirectoryExists(path)) return (FileSize(path).value() + kPage - 1) / kPage * kPage;
  int64_t bytes = 0;
  const std::vector<std::string> names = ListDirectory(path).value();
  for (const std::string& name : names) bytes += DiskBytes(JoinPath(path, name));
  return bytes;
}

TEST_F(SftChatTest, AFullDiskLosesNoCheckpoint) {
  const std::vector<std::string> sets = {"steps=40", "checkpoint.every=10"};
  const CommandResult whole = Run(Command("whole", sets));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::string run = dir_ + "/whole", checkpoints = run + "/checkpoints";
  const int64_t checkpoint = DiskBytes(JoinPath(checkpoints, "step_000040"));
  const int64_t others = DiskBytes(run) - DiskBytes(checkpoints) - DiskBytes(run + "/model");
  // The first checkpoint fits, the second does not.
  const auto runs = RunOnASmallDisk(
      Command("small", sets), dir_ + "/small", others + checkpoint + checkpoint / 2, dir_ + "/full",
      dir_ + "/done", {.timeout = absl::Minutes(4), .env = MpiTestEnvironment()});
  ASSERT_TRUE(runs.ok()) << runs.status();
  if (!runs->possible) GTEST_SKIP() << "this test needs the right to mount a file system";
  EXPECT_EQ(runs->first, 1) << runs->first_err;
  EXPECT_THAT(runs->first_err, HasSubstr(dir_ + "/small/checkpoints/"));
  EXPECT_THAT(runs->first_err,
              HasSubstr("No space left on device; make room there and run the same command again"));
  EXPECT_TRUE(DirectoryExists(dir_ + "/full/checkpoints/step_000010"));
  EXPECT_EQ(runs->second, 0) << runs->second_err;
  EXPECT_THAT(runs->second_err, HasSubstr("Resuming after step 10 of 40."));
  const std::string weights = "/model/model.safetensors";
  EXPECT_TRUE(ReadFile(dir_ + "/done" + weights).value() == ReadFile(run + weights).value());
}

}  // namespace
}  // namespace tritonrl
