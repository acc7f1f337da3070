// A scripted labeller and a scripted writer of inputs for the tasks of make_kernelbook.py, whose
// classes are called Net0, Net1, ...
#ifndef TRITONRL_TOOLS_CHAIN_TESTING_SCRIPTED_MODELS_H_
#define TRITONRL_TOOLS_CHAIN_TESTING_SCRIPTED_MODELS_H_

#include "absl/strings/string_view.h"
#include "base/endpoint/testing/mock_endpoint.h"

namespace tritonrl {

// N of the first "<mark>N" in `text`, or -1.
int NumberAfter(absl::string_view mark, absl::string_view text);

// The labeller's opinion about NetN.
int LevelOfNet(int number);

// Labels each task, after a response in another form and a failure.
MockReply Labeller(const MockRequest& request);

// Of the tasks with a linear layer of width 4, those to which the writer gives inputs of width 5.
bool GetsWrongWidth(int number);

// Gives each task other shapes, and to tasks of level 1 the original's once more.
MockReply InputWriter(const MockRequest& request);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_CHAIN_TESTING_SCRIPTED_MODELS_H_
