// The sidecar of a step program: what disttrain must know of a model without the library that runs it. The exporters
// write it as the member disttrain.json of a package (python/disttrain/exporting/sidecar.py).
//
//   {"format": 1,                      a reader refuses higher numbers; 2: a trainable or state variable is float64
//    "kind": "pt2",                    pt2: compiled by AOTInductor; torchscript; stablehlo
//    "library": "torch", "library_version": "2.11.0",    what made it
//    "cpu": "x86-64-v3",               the oldest processors that can run it; "": any
//    "batch": null,                    the size of every batch; null: any size
//    "variables": [{"name": "fc.weight", "kind": "trainable", "shape": [10, 784], "dtype": "float32",
//                   "persistent": true}, ...],
//    "aliases": {"head.weight": "embedding.weight"},     further names of variables in the model's state_dict
//    "columns": [{"name": "inputs", "dtype": "float32", "shape": [784], "limit": 0}, ...],
//    "metrics": [{"name": "accuracy", "kind": "accuracy"}, ...],    kinds as in job.toml
//    "programs": {"step": {"columns": ["inputs", "labels"]}, ...}}
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

struct SidecarProgram {
  std::vector<std::uint32_t> columns;  // indices into ModelSpec::columns, in the order in which the program takes them
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
