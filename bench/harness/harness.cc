#include "bench/harness/harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/subprocess.h"

ABSL_FLAG(int, warmup, -1, "Rounds (in some benches steps) that run before, unmeasured.");
ABSL_FLAG(int, repeats, -1, "Measured rounds.");
ABSL_FLAG(std::string, peer, "none", "Whether, or how, to measure what the bench compares with.");
ABSL_FLAG(std::string, device, "none", "cpu, cuda, cuda:N or auto.");
ABSL_FLAG(std::string, csv, "", "Append the figures to this file in the form of results/*.csv.");

namespace tritonrl {
namespace {

// GPUs as the driver names them, for example "2x H200", and CPU cores.
std::string Machine() {
  const std::string cores = absl::StrCat(std::thread::hardware_concurrency(), " CPU cores");
  const std::string folder = "/proc/driver/nvidia/gpus";
  const auto gpus = ListDirectory(folder);
  if (!gpus.ok() || gpus->empty()) return cores;
  std::string model = "GPU";
  const auto text = ReadFile(JoinPath(folder, gpus->front() + "/information"));
  for (absl::string_view line : absl::StrSplit(text.ok() ? *text : "", '\n')) {
    if (absl::ConsumePrefix(&line, "Model:")) {
      model = absl::StrReplaceAll(absl::StripAsciiWhitespace(line), {{"NVIDIA ", ""}});
    }
  }
  return absl::StrCat(gpus->size(), "x ", model, ", ", cores);
}

const char* EnvOr(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

RunInfo ThisRun(const std::string& name, int argc, char** argv) {
  // Under `bazel run` the workspace is known, in an archive of tools/bundle.sh the commit.
  const std::string workspace = EnvOr("BUILD_WORKSPACE_DIRECTORY", "");
  RunInfo info = {.machine = Machine(),
                  .commit = EnvOr("TRITONRL_COMMIT", ""),
                  .date = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()),
                  .command = absl::StrCat("./run ", name)};
  if (!workspace.empty()) {
    const auto head = RunCommand({"git", "-C", workspace, "rev-parse", "HEAD"});
    if (head.ok() && head->ok()) info.commit = head->out.substr(0, 7);
    const std::vector<std::string> path = absl::StrSplit(ProgramPath().value_or(name), "/bin/");
    info.command = absl::StrCat("bazel run //", DirName(path.back()), ":", name);
  }
  const char* separator = workspace.empty() ? " " : " -- ";
  for (int i = 1; i < argc; ++i) {
    if (absl::StartsWith(argv[i], "--csv")) continue;
    absl::StrAppend(&info.command, std::exchange(separator, " "), argv[i]);
  }
  return info;
}

// Sets a common flag's default, before the command line is read.
template <typename T>
void SetDefault(const std::optional<T>& value, absl::Flag<T>* flag) {
  if (value) absl::SetFlag(flag, *value);
}

// Returns the flag's value if the bench has this flag; otherwise sets *wrong to the sentence that
// refuses it.
template <typename T>
std::optional<T> TakeFlag(const std::optional<T>& wanted, const absl::Flag<T>& flag, const T& unset,
                          std::string* wrong) {
  const T value = absl::GetFlag(flag);
  if (wanted) return value;
  if (value != unset) *wrong = absl::StrCat("this bench has no --", flag.Name());
  return std::nullopt;
}

BenchOptions ReadFlags(const BenchOptions& defaults, int argc, char** argv, std::string* wrong) {
  SetDefault(defaults.warmup, &FLAGS_warmup);
  SetDefault(defaults.repeats, &FLAGS_repeats);
  SetDefault(defaults.peer, &FLAGS_peer);
  SetDefault(defaults.device, &FLAGS_device);
  std::vector<char*> words(argv, argv + argc);
  for (char*& word : words) {
    static char no_peer[] = "--peer=false";
    if (absl::string_view(word) == "--nopeer") word = no_peer;
  }
  if (StartProgram(defaults.usage, argc, words.data()).size() > 1) {
    *wrong = "arguments are flags of the form --name=value";
  }
  const std::string none = "none";
  BenchOptions flags = {.usage = defaults.usage,
                        .warmup = TakeFlag(defaults.warmup, FLAGS_warmup, -1, wrong),
                        .repeats = TakeFlag(defaults.repeats, FLAGS_repeats, -1, wrong),
                        .peer = TakeFlag(defaults.peer, FLAGS_peer, none, wrong),
                        .device = TakeFlag(defaults.device, FLAGS_device, none, wrong)};
  if (flags.warmup.value_or(0) < 0) *wrong = "--warmup must be at least 0";
  if (flags.repeats.value_or(1) < 1) *wrong = "--repeats must be at least 1";
  bool as_switch = false;
  if (defaults.peer && absl::SimpleAtob(*defaults.peer, &as_switch) &&
      !absl::SimpleAtob(*flags.peer, &as_switch)) {
    *wrong = "--peer must be true or false";
  }
  return flags;
}

absl::Status Guarded(const std::function<absl::Status(Bench*)>& run, Bench* bench) {
  try {
    return run(bench);
  } catch (const std::exception& error) {
    const std::vector<std::string> lines = absl::StrSplit(error.what(), '\n');
    return absl::InternalError(lines.front());  // below it: the backtrace of a c10::Error
  }
}

}  // namespace

Bench::Bench(std::string name, BenchOptions flags)
    : name_(std::move(name)), flags_(std::move(flags)), subject_(name_) {}

std::string Bench::peer() const {
  for (const char* const none : {"none", "no", "false"}) {
    if (flags_.peer == none) return "";
  }
  return flags_.peer.value_or("");
}

absl::StatusOr<std::vector<std::vector<double>>> Bench::Measure(
    const std::vector<BenchCase>& cases) const {
  for (const BenchCase& run : cases) {
    for (int i = 0; i < warmup(); ++i) RETURN_IF_ERROR(run(/*measured=*/false).status());
  }
  std::vector<std::vector<double>> values(cases.size());
  for (int round = 0; round < repeats(); ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      ASSIGN_OR_RETURN(values[i].emplace_back(), cases[i](/*measured=*/true));
    }
  }
  return values;
}

void Bench::Add(const std::string& setting, std::vector<Figure> figures) {
  figures_.Add(subject_, setting, peer_name_, std::move(figures));
}

void Bench::PrintTable() {
  std::fputs(TakeTable().c_str(), stdout);
  std::fflush(stdout);
}

std::vector<double> Rates(double amount, const std::vector<double>& seconds) {
  std::vector<double> rates;
  for (const double s : seconds) rates.push_back(amount / s);
  return rates;
}

double Fastest(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double SecondsOf(const std::function<void()>& work) {
  const absl::Time start = absl::Now();
  work();
  return absl::ToDoubleSeconds(absl::Now() - start);
}

void RunBench(const BenchOptions& options, int argc, char** argv,
              const std::function<absl::Status(Bench*)>& run) {
  std::string wrong;
  const BenchOptions flags = ReadFlags(options, argc, argv, &wrong);
  const std::string name = BaseName(argv[0]);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s: %s; see --help\n", name.c_str(), wrong.c_str());
    std::exit(2);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string csv = absl::GetFlag(FLAGS_csv);
  const RunInfo info = csv.empty() ? RunInfo() : ThisRun(name, argc, argv);
  Bench bench(name, flags);
  absl::Status status;
  if (!csv.empty()) status = bench.AppendCsv(UserPath(csv), info, /*write=*/false);
  if (status.ok()) {
    status = Guarded(run, &bench);
    bench.PrintTable();
    if (!csv.empty()) status.Update(bench.AppendCsv(UserPath(csv), info));
  }
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", name.c_str(), Message(status).c_str());
  std::fflush(nullptr);
  // exit() would crash: once torch's profiler has run, the CUDA runtime's shutdown calls back into
  // Kineto, which frees objects that its static destructors have already freed (torch 2.11).
  std::_Exit(status.ok() ? 0 : 1);
}

}  // namespace tritonrl
