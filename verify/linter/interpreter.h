// The abstract interpreter behind the linter. One object judges one program. The member functions
// are spread over files by subject, interpreter_*.cc; each says at its top which.
#ifndef TRITONRL_VERIFY_LINTER_INTERPRETER_H_
#define TRITONRL_VERIFY_LINTER_INTERPRETER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "verify/linter/ast.h"
#include "verify/linter/interpreter_types.h"
#include "verify/linter/kernel_analysis.h"
#include "verify/linter/linter.h"
#include "verify/linter/names.h"
#include "verify/linter/tables.h"
#include "verify/linter/values.h"

namespace tritonrl::lint {

class Interpreter {
 public:
  Interpreter(Ast* ast, LintResult* result);

  // Interprets the whole program and writes the findings.
  void Run();

 private:
  void RunModel();  // construction and forward of ModelNew
  // What is being interpreted. Computation counts as a finding only in kForward.
  enum class Phase { kModule, kInit, kForward };
  class LoopState;
  enum class Flow { kNext, kReturn, kBreak, kContinue, kRaise };

  // --- findings ---
  void Find(LintRule rule, int line, std::string name, std::string text);
  void Forbid(int line, const std::string& name, const std::string& why);
  // Records that `name` computes on tensors; only counts in forward. The result depends on
  // `sources`.
  Value Compute(const std::string& name, int line, StorageSet sources);
  void Unresolved(const std::string& name, int line);
  bool Spend();  // counts a step; false when the budget is used up
  // A finding where something is nested deeper than is followed.
  bool TooDeep(int depth, int limit, int line);

  // --- statements ---
  Flow ExecBlock(const Node* block);
  Flow Exec(const Node* node);
  Flow ExecIf(const Node* node);
  Flow ExecAlternatives(const Node* node, size_t next_child);
  // Branch for a condition that may depend on how often forward was called.
  Flow BranchBy(Value asked, absl::FunctionRef<Flow()> first, absl::FunctionRef<Flow()> second);
  Flow ExecFor(const Node* node);
  Flow ExecWhile(const Node* node);
  Flow ExecTry(const Node* node);
  Flow ExecWith(const Node* node);
  bool MaySwallow(Value manager);  // whether a context manager may end an exception
  Flow ExecMatch(const Node* node);
  Flow LoopElse(const Node* node, Flow flow);
  void ExecReturn(const Node* node);
  void ExecDelete(const Node* target);
  void ExecImport(const Node* node);
  void ExecImportFrom(const Node* node);
  void ExecFunctionDef(const Node* node, const std::vector<const Node*>& decorators);
  void ExecClassDef(const Node* node, const std::vector<const Node*>& decorators);
  void ExecDecorated(const Node* node);
  void ExecDeclaration(const Node* node);
  void ExecAugmented(const Node* node);
  // Runs two alternatives from the same state and joins what they leave behind.
  Flow Branch(absl::FunctionRef<Flow()> first, absl::FunctionRef<Flow()> second);
  // Joins variables of another way here into those of the running function.
  void JoinVariables(const Variables& others);
  // Runs a block that an exception may end anywhere.
  Flow RunTry(absl::FunctionRef<Flow()> block, Flow otherwise);
  // Notes that a path may have left by `flow`, with these variables.
  void NoteExit(Flow flow, const Variables& variables);
  void EndOfPass();  // of a loop: joins the variables of paths that left it
  static bool TestsForEmpty(const Node* condition);
  // Truth of a condition where it is certain. In code that runs at a time unknown lists may have
  // been full.
  std::optional<bool> Decide(Value condition) const;

  // --- names and targets ---
  Value Lookup(const Node* identifier);
  Value LookupFrom(Scope* scope, int name);
  void Bind(int name, Value value);
  void Store(const Node* target, Value value);
  void StoreInInstance(InstanceObject* instance, absl::string_view name, Value value, int line);
  void StoreAttribute(Value object, absl::string_view name, Value value, int line);
  void StoreSubscript(const Node* target, Value value);
  void StoreItem(Value container, Value index, Value value, int line);
  void Unpack(const std::vector<const Node*>& targets, Value value);

  // --- expressions ---
  Value Eval(const Node* node);  // never null
  Value EvalNode(const Node* node);
  Value EvalYield(const Node* node);
  Value EvalAssignment(const Node* node);
  Value EvalLiteral(const Node* node);
  Value EvalString(const Node* node);
  Value EvalNumber(const Node* node);
  Value EvalCollection(const Node* node);
  Value EvalDictionary(const Node* node);
  Value EvalComprehension(const Node* node);
  void Clauses(const Node* node, size_t index, int depth, const Node* body, std::vector<Value>* out,
               bool* counted);
  Value EvalLambda(const Node* node);
  Value EvalConditional(const Node* node);
  Value EvalBoolean(const Node* node);
  Value EvalComparison(const Node* node);
  Value EvalSubscript(const Node* node);
  Value EvalIndex(const Node* subscript);
  Value GetItem(Value object, Value index, const Node* index_node, int line);
  Value ItemOf(const std::vector<Value>& items, bool exact, Value index);
  Value ItemOfContainer(Value container, Value index, const Node* index_node);
  Value ItemOfTensor(TensorObject* tensor, Value index, const Node* index_node, int line);
  Value IndexTensor(TensorObject* tensor, Value index, int line);
  void AddItems(Value iterable, std::vector<Value>* items, bool* exact);
  void AddInstanceItems(InstanceObject* instance, std::vector<Value>* items, bool* exact);
  Value Element(Value iterable, int line);  // join of the elements
  // Something that goes over `containers` and has these elements if they stay as they are.
  Value Iterator(std::vector<Value> items, bool exact, const std::vector<Value>& containers,
                 bool view = false);
  // The elements of a list, iterator or view, as of now; uses an iterator up.
  std::vector<Value> ItemsOf(ListObject* list, bool* exact);
  Value CopyOf(Value value, bool deep, int depth = 0);

  // --- operators ---
  Value Binary(absl::string_view op, Value a, Value b, int line);
  Value BinaryHost(absl::string_view op, HostObject* a, HostObject* b);
  Value Unary(absl::string_view op, Value a, int line);
  Value Compare(absl::string_view op, Value a, Value b, int line);
  void CheckAddresses(const std::vector<Value>& values, int line);
  // An operation over all the values: small tensors and numbers are post-processing, others a
  // computation.
  Value Elementwise(const std::string& name, const std::vector<Value>& values, int line);

  // --- objects ---
  Value GetAttribute(Value object, absl::string_view name, int line);
  Value TensorAttribute(Value tensor, absl::string_view name);
  Value AttributeOfClass(ClassObject* type, absl::string_view name);
  Value AttributeOfSuper(SuperObject* super, absl::string_view name);
  Value SymbolAttribute(const std::string& symbol, absl::string_view name, int line);
  Value InstanceAttribute(InstanceObject* instance, absl::string_view name, int line);
  Value ModuleAttribute(ModuleObject* module, absl::string_view name);
  Value KernelAttribute(KernelObject* kernel, absl::string_view name);
  // Looks in the class and its bases; `symbol` gets the name of a library base when it was not
  // found before one.
  Value ClassAttribute(ClassObject* type, absl::string_view name, std::string* symbol);
  Value BindMethod(Value found, Value self, Value type);
  bool DerivesFrom(ClassObject* type, absl::string_view symbol);
  // Names of a named tuple's or dataclass's fields in order.
  const std::vector<std::string>& FieldsOf(ClassObject* type);
  bool IsNamedTuple(InstanceObject* instance);
  Value Instantiate(ClassObject* type, const Args& args);
  std::vector<Value> AttributeValues(InstanceObject* instance);

  // --- calls ---
  Value EvalCall(const Node* node);
  Args EvalArgs(const Node* arguments, int line);
  Value Call(Value function, const Args& args);
  Value CallOne(Value function, const Args& args);
  Value CallFunction(FunctionObject* function, const Args& args);
  Value CallCached(FunctionObject* function, const Args& args);
  Value RunBody(FunctionObject* function, const Args& given);
  void BindParameters(FunctionObject* function, const Args& args, Scope* scope, Frame* frame);
  Value CallInstance(InstanceObject* instance, const Args& args);
  Value CallModule(ModuleObject* module, const Args& args);
  Value CallMethod(MethodObject* method, const Args& args);
  // op.register_kernel(devices, function) of a custom operator.
  Value RegisterKernel(MethodObject* method, const Args& args);
  Value CallTensorMethod(TensorObject* tensor, absl::string_view name, const Args& args);
  Value CallModuleMethod(ModuleObject* module, absl::string_view name, const Args& args);
  Value ApplyFunction(ClassObject* type, const Args& args);  // autograd.Function.apply
  Value CallListMethod(ListObject* list, absl::string_view name, const Args& args);
  Value CallDictMethod(DictObject* dict, absl::string_view name, const Args& args);
  void Loosen(Value container, const Args& args);
  void PutItem(DictObject* dict, const std::string& key, Value value);
  Value CallInstanceMethod(InstanceObject* instance, absl::string_view name, const Args& args);
  Value CallUnknown(Value function, const Args& args);
  Value LaunchKernel(KernelObject* kernel, Value grid, const Args& args);
  void AddKernelHooks(const std::vector<Value>& values);
  void CallKernelHooks(const KernelInfo& info, const Args& args);
  static KernelAnalysis::Constants LaunchConstants(const KernelObject& kernel, const Args& args,
                                                   std::string* key);
  const KernelInfo& AnalyseKernel(KernelObject* kernel, const Args& args);
  Value Super(const Args& args);

  // --- libraries ---
  Value CallSymbol(const std::string& name, const Args& args);
  Value CallBuiltin(absl::string_view name, const Args& args);
  Value CallTorch(const std::string& name, const Args& args);
  // Functions of torch with rules of their own; null when `name` is none of them.
  Value CallSpecialTorch(const std::string& name, const Args& args);
  Value MakeConstant(absl::string_view last, const Args& args);
  // torch.library's older ways to define an operator; null when `name` is none of them.
  Value CallLibrary(const std::string& name, const Args& args);
  Value CallTensorClass(absl::string_view method, const Args& args);  // torch.Tensor.add(t, ...)
  Value MakeModule(const std::string& name, const Args& args);
  Value CallCompute(const std::string& name, const Args& args);
  // Dropout of a constant: a mask, whatever it is multiplied with. Null: that is not what it is.
  Value DrawMask(absl::string_view name, const Args& args);
  Value CallTriton(const std::string& name, const Args& args);
  Value ImportModule(const std::string& name, const Args& args);
  Value CallDecoratorResult(const std::string& name, const Args& args);
  Value CallStandardLibrary(const std::string& name, const Args& args);
  Value CollectionsModule(const std::string& name, const Args& args);  // and itertools
  Value CallOtherLibrary(const std::string& name, const Args& args);
  Value ObjectBuiltin(absl::string_view name, const Args& args);
  Value SequenceBuiltin(absl::string_view name, const Args& args);
  Value IteratorBuiltin(absl::string_view name, const Args& args);
  Value NumberBuiltin(absl::string_view name, const Args& args);
  Value OperatorModule(absl::string_view op, const Args& args);
  Value DataclassesModule(const std::string& name, const Args& args);
  Value FunctoolsModule(const std::string& name, const Args& args);
  Value MakeNamedTuple(const Args& args);
  Value GetAttrBuiltin(const Args& args);
  void SetAttrBuiltin(const Args& args);
  Value MakeKernel(Value function);
  Value Allocate(const Args& args, int first_size, bool constant, bool like);
  Shape ShapeFromArgs(const Args& args, int first_size);
  // Calls the functions among the arguments with values that may be anything out of the other
  // arguments, and keeps the objects among them for CallHidden.
  void CallCallbacks(const Args& args);

  // --- code that runs without a call being seen ---
  // Calls inside calls of partial functions, methods and modules, whatever they come to.
  static constexpr int kMaxCallsInCalls = 400;
  static constexpr size_t kMostHidden = 256;
  static constexpr size_t kMostItems = 1 << 16;    // of a container
  static constexpr size_t kLongestText = 1 << 16;  // that is made of others
  bool IsCallable(Value value);
  // A library's function that computes is given to something that is not followed.
  void HandsAway(const std::string& name, int line);
  void CallWithAnything(Value function, StorageSet sources, int line, bool remote = false);
  // Keeps what callables and objects `value` holds: CallHidden runs them as a part of forward.
  void Hide(Value value, int line, int depth = 0);
  void TooHidden(int line);  // a limit of what is followed cut something off
  void CallHidden();
  void CallOverrides();
  void CallMembers(InstanceObject* instance, int line);
  Value BindFunction(FunctionObject* function, InstanceObject* instance);
  void RunLaterCalls(Value bound, int line, Arena::State* before);
  // Stores, and notes in changes_ whether that may change what runs later.
  void Put(Value* slot, Value value);
  // The same for an attribute, also of an object that the running pass of a loop made.
  bool HoldsFromEarlierPass(Value value, int depth) const;
  void PutAttribute(InstanceObject* instance, Value* slot, absl::string_view name, Value value);
  // Runs a loop's body until what its variables may call comes to rest.
  void RunPasses(absl::FunctionRef<void()> pass, int line);
  static bool AsBoundFunction(Value value);  // something callable that is not a plain function
  Value MapCall(Value function, const std::vector<Value>& iterables, int line);

  // --- storages and the result ---
  int NewStorage(StorageSet sources = {});
  Value NewTensor(StorageSet sources, Shape shape = std::nullopt);
  Value InputTensor(Shape shape = std::nullopt);
  Value ArgumentTensor();  // an input that is an argument of forward
  StorageSet SourcesOf(const Args& args);
  bool AnyTensor(const Args& args);
  bool OnlySmall(const Args& args);  // every tensor among them has a handful of elements
  // True where work on a few elements comes to work on all of them: in a loop of unknown length,
  // on what stems from forward's arguments or a kernel.
  bool InPieces(const StorageSet& sources) const;
  // True where a number among the sources counts calls of forward.
  bool Counts(const StorageSet& sources) const;
  bool CountsCalls(Value value);  // the same of a value, or of a list's length
  Value CountOfCalls();           // an int that does
  // True for a view that a loop chose by an element of a tensor, or what holds such views.
  static bool IsPicked(Value value, int depth = 0);
  bool ChosenByElement(const std::vector<Value>& indices) const;
  // Counts an operation on a small tensor; false when all of them are too much.
  bool IsPostProcessing(const std::vector<Value>& values);
  // Finds Python's work on numbers that were read from tensors one by one in a loop.
  void CheckNumbers(const std::string& name, const std::vector<Value>& values, int line);
  bool RunModule();  // false when there is no kernel
  void RunForward(Value bound, int line);
  void JudgeResult(int line);
  void JudgeSecondCall();
  // Methods that Python calls by itself (__bool__, __get__, ...) of all classes with instances.
  void CallSpecialMethods();
  // Objects of the program among tensors get them as operands where a library compares or adds.
  void MeetTensors(const std::vector<Value>& values, int line);
  // True when a value consists of arguments of forward, their views and copies.
  bool OnlyArguments(const std::set<int>& storages) const;
  void Closure(const StorageSet& from, std::set<int>* storages, std::set<int>* launches);
  void JudgeReturn(const Returned& returned, bool others_have_kernel);
  void JudgeKernels(const std::set<int>& launches, const std::set<int>& storages, int line);
  InstanceObject* MakeModel(ClassObject* type, int line);
  Args ForwardArguments(FunctionObject* forward);

  StorageSet Reachable(Value value) { return arena_.Reachable(value); }
  bool HoldsTensor(Value value) { return arena_.HoldsTensor(value); }
  const std::vector<Value>& SearchOrder(ClassObject* type) { return arena_.SearchOrder(type); }

  // Whether what is stored in an object may or may not be stored.
  bool Weak(const Object* object) const { return undecided_ > 0 || object->birth < early_exit_; }
  Frame& frame() { return frames_.back(); }
  Value None() { return arena_.Constant(nullptr); }

  Ast* ast_;
  LintResult* result_;
  // The largest honest program of the test data takes 18,000.
  static constexpr uint64_t kWorkForAll = 6400000;
  static constexpr uint64_t kWorkOfStep = 16;
  Budget budget_{kWorkForAll};
  Arena arena_{&budget_};
  Phase phase_ = Phase::kModule;
  Scope* module_scope_ = nullptr;
  std::vector<Frame> frames_;
  std::vector<Storage> storages_;
  std::vector<Launch> launches_;
  std::vector<Returned> returned_;
  std::vector<std::string> wildcards_;  // modules of "from m import *"
  std::vector<KernelObject*> kernels_;
  std::set<std::tuple<LintRule, int, std::string>> found_;
  const FunctionObject* forward_ = nullptr;  // its first call is judged
  StorageSet raised_;                        // what exceptions may carry
  std::vector<InstanceObject*> instances_;   // of the program's own classes
  std::vector<ClassObject*> classes_;        // of the program
  std::vector<Hidden> hidden_;
  std::vector<Value> kernel_hooks_;  // functions that Triton calls at a launch
  std::vector<std::pair<std::string, Value>> custom_ops_;  // "namespace.name" and its function
  int first_call_launches_ = 0;
  int first_call_storages_ = 0;  // 0 until the second call
  size_t early_exit_ = 0;        // objects that there were where a path may have left
  int64_t small_elements_ = 0;   // that operations on small tensors touched in this call of forward
  int undecided_ = 0;            // enclosing branches and loops that may or may not run
  int guarded_empty_ = 0;        // enclosing tests for an empty input
  uint64_t changes_ = 0;         // stores outside of the running function that changed something
  LoopPasses passes_;
  int counted_ = 0;       // enclosing branches that depend on how often forward was called
  int call_count_ = -1;   // a storage that such numbers name as their source
  int loops_ = 0;         // enclosing loops of unknown length
  int hidden_calls_ = 0;  // enclosing calls that Python or a library makes by itself
  int eval_depth_ = 0, call_depth_ = 0;
  std::map<const Node*, bool> generators_;  // function bodies: whether a yield is in them
  int kernel_budget_ = 400000;              // nodes that kernel analyses may look at, all together
  bool has_forward_inputs_ = false;
};

int ParameterCount(const FunctionObject* function);
// The block among a node's children, null without one.
const Node* FirstBlock(const Node* node);
// The sequence of identifiers below a dotted name, "a.b.c".
std::string DottedText(const Node* node);
// Result of folding the text of a plain string literal; nullopt when it has interpolations.
std::optional<std::string> PlainString(const Node* node);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_INTERPRETER_H_
