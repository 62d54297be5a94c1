// The compiled programs of a model, one for each program and batch size. They are compiled when they are first needed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/result.h"
#include "engine/pjrt/executable.h"
#include "engine/pjrt/stablehlo_model.h"

namespace disttrain::workerd::pjrt {

// The examples [begin, begin + examples) of a batch, and the program for so many examples: its stages in order, or one
// executable. They are valid until the ProgramSet's end.
struct Part {
  std::uint64_t begin = 0;
  std::uint64_t examples = 0;
  std::vector<Executable*> stages;
};

class ProgramSet {
 public:
  // Both must outlive the ProgramSet.
  ProgramSet(const Client& client, const StableHloModel& model)
      : client_(client), model_(model), executables_(model.programs.size()) {}

  // Whether parts_of() could divide such a batch. Compiles nothing. Errors, kConfig: the model has no such program; the
  // sizes of its programs don't add up to the batch.
  Status takes(Program program, std::uint64_t examples) const;

  // Divides a batch of at least one example into parts for which the model has programs, the largest first. Compiles
  // them if necessary. Errors: those of takes() and of the model's source; all others are kConfig: the plugin refuses a
  // program; a program's outputs don't fit the model.
  Result<std::vector<Part>> parts_of(Program program, std::uint64_t examples);

 private:
  // The batch sizes of a program, the largest size first.
  std::vector<std::uint64_t> largest_first(Program program) const;
  Result<std::vector<Executable*>> stages_of(Program program, std::uint64_t size);
  Result<Executable*> executable(std::size_t program);

  const Client& client_;
  const StableHloModel& model_;
  std::vector<std::unique_ptr<Executable>> executables_;  // by index in the model's programs; null: not compiled yet
};

}  // namespace disttrain::workerd::pjrt
