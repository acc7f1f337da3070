// bazel run //exec:triton_run -- kernel.py:entry: runs a Python file with Triton kernels without a
// GPU, and checks its launches.
//
// Exit codes: 0 it ran and nothing was found, 1 it failed or something was found, 2 it could not be
// started.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "exec/sandbox/sandbox.h"
#include "exec/triton_run/program_run.h"

ABSL_FLAG(std::string, check, "all",
          "all: look for races, reads of memory that nobody wrote, integer divisions by zero, wide "
          "shifts, accesses outside of views, violated divisibility and descriptors that sm_90 "
          "refuses, slowly; none: run on all cores");
ABSL_FLAG(bool, json, false, "print one JSON object");
ABSL_FLAG(uint64_t, seed, 0, "of random tensors");
ABSL_FLAG(double, time_limit, 600, "seconds for the whole run");
ABSL_FLAG(double, memory_gb, 8, "memory of the tensors, and of the program's process, in GiB");
ABSL_FLAG(int, threads, 0, "threads of a launch with --check=none; 0: the number of cores");
ABSL_FLAG(std::string, sandbox, "bubblewrap", "confinement of the program: bubblewrap or none");

namespace tritonrl {
namespace {

absl::StatusOr<ProgramOptions> ReadOptions(const std::string& program) {
  ProgramOptions options;
  const size_t colon = program.rfind(':');
  const bool named = colon != std::string::npos && program.find('/', colon) == std::string::npos;
  if (named) options.entry = program.substr(colon + 1);
  ASSIGN_OR_RETURN(options.source,
                   ReadFile(UserPath(program.substr(0, named ? colon : program.size()))));
  const std::string check = absl::GetFlag(FLAGS_check);
  if (check != "all" && check != "none") {
    return absl::InvalidArgumentError(
        absl::StrCat("--check=", check, " is unknown; use all or none"));
  }
  options.check = check == "all";
  options.seed = absl::GetFlag(FLAGS_seed);
  options.time_limit = absl::Seconds(absl::GetFlag(FLAGS_time_limit));
  options.threads = absl::GetFlag(FLAGS_threads) > 0
                        ? absl::GetFlag(FLAGS_threads)
                        : static_cast<int>(std::thread::hardware_concurrency());
  ASSIGN_OR_RETURN(options.pool.sandbox, ParseSandboxKind(absl::GetFlag(FLAGS_sandbox)));
  options.pool.limits.set_memory_bytes(
      static_cast<int64_t>(absl::GetFlag(FLAGS_memory_gb) * (int64_t{1} << 30)));
  options.print = [](absl::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
  return options;
}

std::string Grid(const KernelLaunch& launch) { return absl::StrJoin(launch.grid(), "x"); }

void PrintText(const ProgramResult& result) {
  std::fputs(result.printed.c_str(), stdout);
  for (const KernelLaunch& launch : result.launches) {
    std::printf("launch   %s, grid %s, line %d\n", launch.name().c_str(), Grid(launch).c_str(),
                launch.line());
  }
  for (const ProgramOutput& output : result.outputs) {
    std::printf("output   %s", output.what.c_str());
    if (output.is_tensor) {
      std::printf(", %g to %g, mean %g", output.low, output.high, output.mean);
      if (output.not_finite > 0) std::printf(", %ld not finite", output.not_finite);
    }
    std::printf("\n");
  }
  for (const device::Finding& finding : result.findings.list) {
    std::printf("FOUND    %s in %s, %s, program (%s): %s\n", ttir::FindingKindName(finding.kind),
                finding.kernel.c_str(), finding.place.c_str(),
                absl::StrJoin(finding.program, ", ").c_str(), finding.text.c_str());
  }
  if (!result.findings.complete) {
    std::printf("NOTE     not all could be watched, or there is more than is listed\n");
  }
  if (!result.error.empty()) {
    std::printf("FAILED   %s%s\n",
                result.error_line > 0 ? absl::StrCat("line ", result.error_line, ": ").c_str() : "",
                result.error.c_str());
  }
  std::printf("%d launches, %d findings, %.2f s\n", static_cast<int>(result.launches.size()),
              static_cast<int>(result.findings.list.size()), result.seconds);
}

void PrintJson(const ProgramResult& result) {
  nlohmann::json launches = nlohmann::json::array(), findings = launches, outputs = launches;
  for (const KernelLaunch& launch : result.launches) {
    launches.push_back({{"name", launch.name()},
                        {"grid", std::vector<int32_t>(launch.grid().begin(), launch.grid().end())},
                        {"line", launch.line()}});
  }
  for (const device::Finding& finding : result.findings.list) {
    findings.push_back({{"kind", ttir::FindingKindName(finding.kind)},
                        {"kernel", finding.kernel},
                        {"place", finding.place},
                        {"program", finding.program},
                        {"element", finding.element},
                        {"text", finding.text}});
  }
  for (const ProgramOutput& output : result.outputs) {
    nlohmann::json described = {{"what", output.what}};
    if (output.is_tensor) {
      described.update({{"low", output.low},
                        {"high", output.high},
                        {"mean", output.mean},
                        {"not_finite", output.not_finite}});
    }
    outputs.push_back(std::move(described));
  }
  const nlohmann::json all = {{"launches", launches},
                              {"findings", findings},
                              {"findings_complete", result.findings.complete},
                              {"outputs", outputs},
                              {"error", result.error},
                              {"error_line", result.error_line},
                              {"printed", result.printed},
                              {"seconds", result.seconds}};
  std::printf("%s\n", all.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).c_str());
}

int Main(const std::vector<std::string>& arguments) {
  const auto fail = [](const absl::Status& status) {
    std::fprintf(stderr, "triton_run: %s\n", Message(status).c_str());
    return 2;
  };
  if (arguments.size() != 1) {
    return fail(absl::InvalidArgumentError("give one program: FILE.py or FILE.py:ENTRY"));
  }
  const absl::StatusOr<ProgramOptions> options = ReadOptions(arguments[0]);
  if (!options.ok()) return fail(options.status());
  const absl::StatusOr<ProgramResult> result = RunProgram(*options);
  if (!result.ok()) return fail(result.status());
  absl::GetFlag(FLAGS_json) ? PrintJson(*result) : PrintText(*result);
  return result->error.empty() && result->findings.list.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  const std::vector<char*> arguments = tritonrl::StartProgram(
      "Runs and checks a Python file with Triton kernels without a GPU.\n"
      "  bazel run //exec:triton_run -- FILE.py:ENTRY [--check=none] [--json]",
      argc, argv);
  return tritonrl::Main({arguments.begin() + 1, arguments.end()});
}
