// The sidecar of a step program: what disttrain must know of a model without the library that runs it. The exporters
// write it as the member disttrain.json of a package (python/disttrain/exporting/sidecar.py).
//
//   {"format": 1,                      a reader refuses higher numbers; 2: a trainable or state variable is float64;
//                                      3: a step of several stages, and maybe float64
//    "kind": "pt2",                    pt2: compiled by AOTInductor; torchscript; stablehlo
//    "library": "torch", "library_version": "2.11.0",    what made it
//    "cpu": "x86-64-v3",               the oldest processors that can run it; "": any
//    "batch": null,                    the size of every batch; null: any size
//    "variables": [{"name": "fc.weight", "kind": "trainable", "shape": [10, 784], "dtype": "float32",
//                   "persistent": true}, ...],
//    "aliases": {"head.weight": "embedding.weight"},     further names of variables in the model's state_dict
//    "columns": [{"name": "inputs", "dtype": "float32", "shape": [784], "limit": 0}, ...],
//    "metrics": [{"name": "accuracy", "kind": "accuracy"}, ...],    kinds as in job.toml
//    "programs": {"step": {"columns": ["inputs", "labels"],
//                          "stages": [{"takes": [0, 1, 2, 3], "gives": [4, 5, 7, 9]}, ...]}, ...}}
//
// A step of several stages is as many programs, which run one after the other: step_0, step_1 and so on. So a worker
// can send the first gradients while it computes the others. The values of a step are numbered: first its variables,
// then its columns, its results (python/disttrain/exporting/programs.py has their order), and the tensors that one
// stage passes to later ones. A step of kind stablehlo has one more input behind the columns, the seed of its random
// numbers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/model.h"
#include "common/result.h"

namespace disttrain::program {

inline constexpr std::uint64_t kMaxSidecarBytes = 16 * 1024 * 1024;
inline constexpr std::size_t kMaxColumns = 1024;
inline constexpr std::size_t kMaxStages = 64;
inline constexpr std::uint32_t kMaxPassed = 1'000'000;  // tensors between the stages of a step

enum class Kind : std::uint8_t { kPt2, kTorchScript, kStableHlo };

// One tensor of the model. The programs take the variables in the sidecar's order.
struct SidecarVariable {
  std::string name;
  // kFrozen: a program reads the variable, but nobody changes it. It isn't part of ModelSpec.
  enum class Kind : std::uint8_t { kTrainable, kState, kFrozen } kind = Kind::kTrainable;
  std::vector<std::uint64_t> shape;
  // Of the tensor in the model: "float32", "int64" and so on. Programs take frozen variables in this type. They take
  // trainable and state variables as float64 if they are that, and else as float32. An integer in float32 is exact up
  // to 2^24. In format 1, programs take float64 as float32, too.
  std::string dtype;
  bool is_persistent = true;  // whether the model's state_dict has it
};

// The numbers of the values that a stage takes and gives, in the order of its arguments and results. It takes
// variables, columns, and what earlier stages have given.
struct SidecarStage {
  std::vector<std::uint32_t> takes;
  std::vector<std::uint32_t> gives;
};

struct SidecarProgram {
  std::vector<std::uint32_t> columns;  // indices into ModelSpec::columns, in the order in which the program takes them
  std::vector<SidecarStage> stages;    // at least one; all stages together give each result once
  std::uint32_t values = 0;            // number of all values of the program
};

struct Sidecar {
  program::Kind kind = program::Kind::kPt2;
  std::string library;
  std::string library_version;
  std::string cpu;
  std::optional<std::uint64_t> batch;
  std::vector<SidecarVariable> variables;
  std::map<std::string, std::string> aliases;
  std::map<std::string, SidecarProgram> programs;  // "step" and maybe "evaluate" and "predict"
  // The trainable and state variables in the order of `variables`, the columns, the metrics, and the programs.
  ModelSpec model;
};

// `path` names the package in errors. Fails with kData if the text isn't a sidecar, and with kConfig if its format is
// too new for this version.
Result<Sidecar> parse_sidecar(const std::string& text, const std::string& path);

}  // namespace disttrain::program
