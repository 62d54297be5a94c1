// Keeps what a job's evaluations found in the job's folder, in the file evaluations.json: the best checkpoints, the
// best value, and the count for evaluate.stop_after. So the next job of the same name goes on with them, as it goes on
// with the checkpoints. Pure.
#pragma once

#include <map>
#include <string>

#include "chiefd/core/events.h"
#include "common/result.h"

namespace disttrain::chiefd {

// The file's name in the job's folder.
inline constexpr char kEvaluationsName[] = "evaluations.json";
inline constexpr std::uint64_t kMaxEvaluationsBytes = std::uint64_t{1} << 20;

// Checkpoints are named without their folder, so the folder may be moved. decode_evaluations() can read each text that
// this function returns. Infinite values are left out.
std::string encode_evaluations(const KeptEvaluations& kept);
// `folder` is the job's folder. Paths of checkpoints are then below this folder, and short enough for the journal.
// Fails with kData. Throws std::bad_alloc: then the text may be intact.
Result<KeptEvaluations> decode_evaluations(const std::string& text, const std::string& folder);
// Reads the checkpoint and its value from the metadata of best.safetensors (KeepBest), for a folder that has lost
// evaluations.json. `folder`, errors: as above.
Result<KeptEvaluations> evaluations_of_best(const std::map<std::string, std::string>& metadata,
                                            const std::string& folder);

}  // namespace disttrain::chiefd
