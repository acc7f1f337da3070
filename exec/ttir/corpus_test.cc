// Every text of the corpus parses, and says what its kernel does.
#include "exec/ttir/testing/corpus.h"

#include <set>
#include <string>

#include "exec/ttir/parser.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

void CollectOpcodes(const Region& region, std::multiset<Opcode>* opcodes) {
  for (const Block& block : region.blocks) {
    for (const Operation& operation : block.operations) {
      opcodes->insert(operation.opcode);
      for (const Region& inner : operation.regions) CollectOpcodes(inner, opcodes);
    }
  }
}

// Names of operations, each as often as the text has it.
std::multiset<std::string> NamesInText(const std::string& text) {
  std::multiset<std::string> names;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    line.erase(0, line.find_first_not_of(' '));
    if (line.empty() || line[0] == '#' || line[0] == '^' || line[0] == '}') continue;
    if (line[0] == '%') line.erase(0, line.find(" = ") + 3);
    if (line[0] == '"') line.erase(0, 1);
    const std::string name = line.substr(0, line.find_first_of(" \"("));
    if (name != "module" && name != "tt.func") names.insert(name);
  }
  return names;
}

TEST(CorpusTest, EveryTextParsesAndHasTheOperationsOfItsText) {
  const auto corpus = ReadCorpus();
  EXPECT_GE(corpus.size(), 50u);
  for (const CorpusText& entry : corpus) {
    const auto module = ParseTtir(entry.text);
    ASSERT_TRUE(module.ok()) << entry.name << ": " << module.status();
    std::multiset<Opcode> opcodes;
    for (const Function& function : module->functions) CollectOpcodes(function.body, &opcodes);
    std::multiset<std::string> expected = NamesInText(entry.text);
    std::multiset<std::string> found;
    for (const Opcode opcode : opcodes) found.insert(std::string(OpcodeName(opcode)));
    // MLIR does not print the scf.yield of a region without results.
    while (found.count("scf.yield") > expected.count("scf.yield")) expected.insert("scf.yield");
    EXPECT_EQ(found, expected) << entry.name;
  }
}

TEST(CorpusTest, TheCorpusCoversTheLanguage) {
  std::multiset<Opcode> opcodes;
  for (const CorpusText& entry : ReadCorpus()) {
    const auto module = ParseTtir(entry.text);
    ASSERT_TRUE(module.ok());
    for (const Function& function : module->functions) CollectOpcodes(function.body, &opcodes);
  }
  const std::set<Opcode> distinct(opcodes.begin(), opcodes.end());
  EXPECT_GE(distinct.size(), 100u);
  for (const Opcode opcode : {Opcode::kFor,
                              Opcode::kWhile,
                              Opcode::kIf,
                              Opcode::kReduce,
                              Opcode::kScan,
                              Opcode::kDot,
                              Opcode::kDotScaled,
                              Opcode::kAtomicRmw,
                              Opcode::kAtomicCas,
                              Opcode::kCall,
                              Opcode::kCondBranch,
                              Opcode::kMapElementwise,
                              Opcode::kInlineAsm,
                              Opcode::kExternElementwise,
                              Opcode::kDescriptorLoad,
                              Opcode::kDescriptorGather,
                              Opcode::kHistogram,
                              Opcode::kGather,
                              Opcode::kJoin,
                              Opcode::kSplit,
                              Opcode::kTrans,
                              Opcode::kAssert,
                              Opcode::kPrint}) {
    EXPECT_TRUE(distinct.contains(opcode)) << OpcodeName(opcode);
  }
}

TEST(CorpusTest, EveryOperationButYieldsKnowsItsLineOfTheKernelsFile) {
  const auto module = ParseTtir(CorpusTextOf("softmax.ttir"));
  ASSERT_TRUE(module.ok()) << module.status();
  int known = 0;
  for (const Operation& operation : module->functions[0].body.blocks[0].operations) {
    const auto frames = module->locations.FramesOf(operation.location);
    if (frames.empty()) {
      EXPECT_EQ(operation.opcode, Opcode::kConstant);  // made by the compiler
      continue;
    }
    ++known;
    EXPECT_EQ(frames.back().file, "exec/ttir/testing/tensor_kernels.py");
    EXPECT_GT(frames.back().line, 0);
  }
  EXPECT_GT(known, 10);
}

TEST(CorpusTest, APlaceInACalledFunctionHasTheCallersBehindIt) {
  const auto module = ParseTtir(CorpusTextOf("softmax.ttir"));
  ASSERT_TRUE(module.ok()) << module.status();
  for (const Operation& operation : module->functions[0].body.blocks[0].operations) {
    if (operation.opcode != Opcode::kReduce) continue;
    const Operation& combine = operation.regions[0].blocks[0].operations[0];
    const auto frames = module->locations.FramesOf(combine.location);
    ASSERT_GE(frames.size(), 2u);
    EXPECT_EQ(frames.front().file, "site-packages/triton/language/standard.py");
    EXPECT_EQ(frames.back().file, "exec/ttir/testing/tensor_kernels.py");
  }
}

}  // namespace
}  // namespace tritonrl::ttir
