// Source locations of operations, as `loc(...)` gives them.
#ifndef TRITONRL_EXEC_TTIR_LOCATION_H_
#define TRITONRL_EXEC_TTIR_LOCATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tritonrl::ttir {

// Index into a LocationTable. 0 is loc(unknown).
using LocationId = int32_t;
inline constexpr LocationId kUnknownLocation = 0;

// One place in a source file. `file` is empty if the place is unknown.
struct SourcePosition {
  absl::string_view file;
  int line = 0;  // from 1
  int column = 0;

  bool known() const { return !file.empty(); }
  std::string ToString() const;  // "line 12 of kernel.py", or "unknown line"
};

class LocationTable {
 public:
  LocationTable();

  LocationId AddFile(absl::string_view file, int line, int column);
  // loc("name"(child)); the child may be kUnknownLocation.
  LocationId AddName(absl::string_view name, LocationId child);
  LocationId AddCall(LocationId callee, LocationId caller);
  LocationId AddFused(const std::vector<LocationId>& parts);
  // A placeholder for the location of an alias (#loc7). Define sets its target.
  LocationId AddAlias();
  void Define(LocationId alias, LocationId target);

  // False if aliases refer to each other in a cycle, or if one has no target.
  bool IsComplete() const;

  size_t size() const { return nodes_.size(); }

  // The innermost position: of a call the callee's, of fused locations the first known one.
  SourcePosition PositionOf(LocationId location) const;

  // The chain of calls, innermost first; at most kMaxFrames.
  static constexpr int kMaxFrames = 32;
  std::vector<SourcePosition> FramesOf(LocationId location) const;

  // The outermost name, as of a variable ("acc"), or "".
  absl::string_view NameOf(LocationId location) const;

 private:
  enum class Kind : uint8_t { kUnknown, kFile, kName, kCall, kFused, kAlias };
  struct Node {
    Kind kind = Kind::kUnknown;
    int32_t text = -1;  // index into texts_
    int32_t line = 0;
    int32_t column = 0;
    LocationId first = kUnknownLocation;   // child, callee, first part, or target
    LocationId second = kUnknownLocation;  // caller, or further parts
  };

  LocationId Add(Node node);
  int32_t Intern(absl::string_view text);
  void Collect(LocationId location, size_t limit, std::vector<SourcePosition>* frames) const;

  std::vector<Node> nodes_;
  std::vector<std::string> texts_;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_LOCATION_H_
