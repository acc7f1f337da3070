// Fixture that runs the program //trainer:grpo_hrd with the committed mini policy; kernels are
// really compiled and executed.
#ifndef TRITONRL_TRAINER_GRPO_TESTING_GRPO_HRD_FIXTURE_H_
#define TRITONRL_TRAINER_GRPO_TESTING_GRPO_HRD_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "nlohmann/json.hpp"
#include "parallel/testing/mpi_launch.h"
#include "trainer/grpo/sample_batch.h"

namespace tritonrl {

inline constexpr int kSteps = 3;

class GrpoHrdTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = MakeTempDirectory("grpo").value();
    program_ = Runfile("trainer/grpo/grpo_hrd").value();
    const std::string config = absl::StrCat(
        "policy { dir: 'model/mini' device: 'cpu' save_dtype: FLOAT32 }\n"
        "tasks { train: 'tasks/mini/train' held_out: 'tasks/mini/heldout' }\n"
        "sampling { max_prompt_tokens: 256 max_response_tokens: 640 engine { max_num_seqs: 16 } }\n"
        "verifier { workers: 1 trials: 2 device_model: 'l40s_mini' }\n"
        "eval { samples: 2 max_tasks: 2 greedy: true }\n"
        "checkpoint { every: 1 keep: 2 }\n"
        "steps: ",
        kSteps, "\nprompts_per_step: 2\ngroup_size: 4\nthreads: 1\n");
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/c.textproto", config).ok());
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  std::string Out(const std::string& out) const { return dir_ + "/" + out; }

  std::vector<std::string> Command(const std::string& out,
                                   const std::vector<std::string>& sets = {}) const {
    std::vector<std::string> argv = {program_, "--config=" + dir_ + "/c.textproto"};
    for (const std::string& set : sets) argv.push_back("--set=" + set);
    argv.push_back("--set=output_dir=" + Out(out));
    return argv;
  }

  CommandResult Run(const std::vector<std::string>& argv,
                    std::vector<std::pair<std::string, std::string>> env = {}) const {
    RunCommandOptions options;
    options.timeout = absl::Seconds(280);
    options.env = MpiTestEnvironment();
    options.env.insert(options.env.end(), env.begin(), env.end());
    const auto result = RunCommand(argv, options);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->timed_out) << result->err;
    return *result;
  }

  // Starts the program and sends `signal` once `moment` returns true.
  ExitStatus SignalWhen(const std::string& out, int signal,
                        const std::function<bool()>& moment) const {
    return SignalWhen(Command(out), signal, moment);
  }
  ExitStatus SignalWhen(const std::vector<std::string>& argv, int signal,
                        const std::function<bool()>& moment) const {
    SubprocessOptions options;
    options.argv = argv;
    options.env = MpiTestEnvironment();
    options.out = options.err = Stdio::File(dir_ + "/signalled.log");
    auto process = Subprocess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    for (int i = 0; i < 40000 && !moment(); ++i) {
      if (process->Wait(absl::Milliseconds(5)).has_value()) break;
    }
    EXPECT_TRUE(moment()) << ReadFile(dir_ + "/signalled.log").value();
    process->Signal(signal);
    const auto status = process->Wait(absl::Seconds(120));
    EXPECT_TRUE(status.has_value());
    return status.value_or(ExitStatus());
  }

  int Lines(const std::string& path) const {
    const auto text = ReadFile(path);
    return text.ok() ? static_cast<int>(std::count(text->begin(), text->end(), '\n')) : 0;
  }

  // The lines of metrics.jsonl without fields that depend on timing.
  std::vector<std::string> Metrics(const std::string& out) const {
    std::vector<std::string> lines;
    const std::string text = ReadFile(Out(out) + "/metrics.jsonl").value();
    const std::vector<std::string> all = absl::StrSplit(text, '\n', absl::SkipEmpty());
    for (const std::string& line : all) {
      auto object = nlohmann::json::parse(line);
      for (const char* field :
           {"tokens_per_s", "seconds_rollout", "seconds_verify", "seconds_verify_run",
            "seconds_learn", "seconds_step", "cache_hit_rate"}) {
        EXPECT_EQ(object.erase(field), 1) << field;
      }
      lines.push_back(object.dump());
    }
    return lines;
  }

  // Expects equal results of two runs, one of which was interrupted.
  void ExpectSameRun(const std::string& a, const std::string& b) const {
    ExpectSameFiles(a, b);
    EXPECT_EQ(Metrics(a), Metrics(b));
  }

  // Expects equal policies, optimizer states and samples.
  void ExpectSameFiles(const std::string& a, const std::string& b) const {
    for (const char* file : {"/model/model.safetensors", "/checkpoints/step_000003/optimizer.bin",
                             "/checkpoints/step_000003/model/model.safetensors"}) {
      EXPECT_TRUE(ReadFile(Out(a) + file).value() == ReadFile(Out(b) + file).value()) << file;
    }
    const auto files = ListDirectory(Out(a) + "/samples").value();
    EXPECT_EQ(files, ListDirectory(Out(b) + "/samples").value());
    for (const std::string& file : files) {
      EXPECT_EQ(Samples(a, file), Samples(b, file)) << file;
    }
  }

  // Expects equal metrics up to a relative error of `tolerance` and an absolute one of a hundredth
  // of it.
  void ExpectNearMetrics(const std::string& one, const std::string& other, double tolerance) const {
    const std::vector<std::string> a = Metrics(one), b = Metrics(other);
    ASSERT_EQ(a.size(), b.size());
    for (size_t step = 0; step < a.size(); ++step) {
      const auto left = nlohmann::json::parse(a[step]), right = nlohmann::json::parse(b[step]);
      EXPECT_EQ(left["samples"], 8);
      for (const auto& [field, value] : left.items()) {
        if (!value.is_number()) continue;
        EXPECT_NEAR(value.get<double>(), right[field].get<double>(),
                    tolerance * (0.01 + std::abs(value.get<double>())))
            << field << " of step " << step + 1;
      }
    }
  }

  std::vector<std::string> Samples(const std::string& out, const std::string& file) const {
    std::vector<std::string> samples;
    const auto records = MergeRecords({ReadFile(Out(out) + "/samples/" + file).value()});
    EXPECT_TRUE(records.ok()) << records.status();
    for (const SampleRecord& record : *records) {
      samples.push_back(absl::StrCat(record.task_id, " ", record.index, " ", record.response, " ",
                                     Outcome::Reason_Name(record.verdict.outcome().reason()), " ",
                                     record.reward_plan, " ", record.reward_code));
    }
    return samples;
  }

  std::string dir_, program_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_TESTING_GRPO_HRD_FIXTURE_H_
