#include "exec/ttir/location.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tritonrl::ttir {

std::string SourcePosition::ToString() const {
  if (!known()) return "unknown line";
  // A message is one line, whatever the text says.
  return absl::StrCat("line ", line, " of ", absl::CHexEscape(file.substr(0, 400)));
}

LocationTable::LocationTable() : nodes_(1) {}

LocationId LocationTable::Add(Node node) {
  nodes_.push_back(node);
  return static_cast<LocationId>(nodes_.size() - 1);
}

int32_t LocationTable::Intern(absl::string_view text) {
  // The last text is nearly always the one wanted; a few duplicates cost little.
  if (texts_.empty() || texts_.back() != text) texts_.emplace_back(text);
  return static_cast<int32_t>(texts_.size() - 1);
}

LocationId LocationTable::AddFile(absl::string_view file, int line, int column) {
  return Add({.kind = Kind::kFile, .text = Intern(file), .line = line, .column = column});
}

LocationId LocationTable::AddName(absl::string_view name, LocationId child) {
  return Add({.kind = Kind::kName, .text = Intern(name), .first = child});
}

LocationId LocationTable::AddCall(LocationId callee, LocationId caller) {
  return Add({.kind = Kind::kCall, .first = callee, .second = caller});
}

LocationId LocationTable::AddFused(const std::vector<LocationId>& parts) {
  LocationId rest = kUnknownLocation;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    rest = Add({.kind = Kind::kFused, .first = *part, .second = rest});
  }
  return rest;
}

LocationId LocationTable::AddAlias() { return Add({.kind = Kind::kAlias, .first = -1}); }

void LocationTable::Define(LocationId alias, LocationId target) { nodes_[alias].first = target; }

bool LocationTable::IsComplete() const {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(nodes_.size(), kNew);
  state[kUnknownLocation] = kDone;
  std::vector<LocationId> stack;
  for (size_t start = 1; start < nodes_.size(); ++start) {
    stack.assign(1, static_cast<LocationId>(start));
    while (!stack.empty()) {
      const LocationId at = stack.back();
      if (state[at] != kNew) {
        if (state[at] == kOpen) state[at] = kDone;
        stack.pop_back();
        continue;
      }
      state[at] = kOpen;
      for (const LocationId child : {nodes_[at].first, nodes_[at].second}) {
        if (child < 0 || state[child] == kOpen) return false;
        if (state[child] == kNew) stack.push_back(child);
      }
    }
  }
  return true;
}

void LocationTable::Collect(LocationId location, size_t limit,
                            std::vector<SourcePosition>* frames) const {
  // Steps are bounded as aliases may make a small text stand for a very large tree.
  std::vector<LocationId> stack = {location};
  for (int steps = 0; steps < 16 * kMaxFrames && !stack.empty(); ++steps) {
    const LocationId at = stack.back();
    stack.pop_back();
    if (at < 0) continue;
    const Node& node = nodes_[at];
    if (node.kind == Kind::kFile) {
      frames->push_back({texts_[node.text], node.line, node.column});
      if (frames->size() >= limit) return;
    }
    if (node.second != kUnknownLocation) stack.push_back(node.second);
    if (node.first != kUnknownLocation) stack.push_back(node.first);
  }
}

SourcePosition LocationTable::PositionOf(LocationId location) const {
  std::vector<SourcePosition> frames;
  Collect(location, 1, &frames);
  return frames.empty() ? SourcePosition() : frames.front();
}

std::vector<SourcePosition> LocationTable::FramesOf(LocationId location) const {
  std::vector<SourcePosition> frames;
  Collect(location, kMaxFrames, &frames);
  return frames;
}

absl::string_view LocationTable::NameOf(LocationId location) const {
  for (int steps = 0; steps < kMaxFrames && location > 0; ++steps) {
    const Node& node = nodes_[location];
    if (node.kind == Kind::kName) return texts_[node.text];
    location = node.first;
  }
  return "";
}

}  // namespace tritonrl::ttir
