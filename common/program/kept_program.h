// What a checkpoint keeps of a step program, so that it gives a whole state_dict when the package is gone or has
// changed: the file program.safetensors beside the manifest. Its metadata has the package's sidecar as it is
// ("disttrain.json"). Its tensors are the frozen variables that the model's state_dict has. The other variables are in
// the files of the shards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/safetensors.h"
#include "common/program/package.h"
#include "common/result.h"

namespace disttrain::program {

// Writes and syncs the file in the folder of an attempt. Returns its entry for the manifest. The caller syncs the
// folder. Uses memory for one variable.
Result<checkpoint::FileEntry> keep_program(checkpoint::Files& files, const std::string& folder, Package& package);

// The sidecar that a checkpoint keeps, or none if its job has no step program. Fails with kData if the file is damaged
// or doesn't describe the checkpoint's variables.
Result<std::optional<Sidecar>> kept_program(checkpoint::Files& files, const checkpoint::OpenCheckpoint& checkpoint);

// An entry of a model's state_dict.
struct StateEntry {
  std::string name;
  std::string variable;  // whose value it has; differs from `name` if the name is an alias
  checkpoint::DType dtype = checkpoint::DType::kF32;
};

// The entries of the state_dict: the variables in the sidecar's order, and then the aliases of variables. Fails with
// kConfig if a variable has a dtype that this version doesn't know.
Result<std::vector<StateEntry>> state_dict_of(const Sidecar& sidecar);

}  // namespace disttrain::program
