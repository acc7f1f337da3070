#include "verify/parse_flags.h"

#include <map>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tritonrl {

absl::Status ParseFlags(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--")) {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", argv[i],
                       "': programs are given by --reference and --candidate"));
    }
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    std::string value =
        equals == absl::string_view::npos ? "" : std::string(argument.substr(equals + 1));
    if (flag == nullptr && absl::StartsWith(name, "no") && equals == absl::string_view::npos) {
      flag = absl::FindCommandLineFlag(name.substr(2));
      value = "false";
    } else if (flag != nullptr && equals == absl::string_view::npos) {
      if (flag->IsOfType<bool>()) {
        value = "true";
      } else if (i + 1 < argc) {
        value = argv[++i];
      } else {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
      }
    }
    if (flag == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("unknown flag --", name, "; see --help"));
    std::string error;
    if (!flag->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, "='", value, "' is not a value it can take: ", error));
    }
  }
  return absl::OkStatus();
}

std::string FlagsHelp(absl::string_view source_file) {
  std::map<absl::string_view, absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::EndsWith(flag->Filename(), source_file)) flags[name] = flag;
  }
  std::string text;
  for (const auto& [name, flag] : flags) {
    absl::StrAppend(&text, "  --", name, ": ", flag->Help(), " (default '", flag->DefaultValue(),
                    "')\n");
  }
  return text;
}

}  // namespace tritonrl
