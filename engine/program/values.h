// Checks on the columns that enter a program. They are the same for compiled programs and for TorchScript, and don't
// need libtorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/program/sidecar.h"
#include "common/result.h"
#include "engine/computation.h"

namespace disttrain::workerd {

// Whether the programs take batches of so many records: kConfig.
Status check_size(const program::Sidecar& sidecar, std::uint64_t examples, const std::string& path);

// Whether a program may run on this batch. Fails as check_size(), and with kData if a column has another number of
// bytes, or if an integer is outside its column's limit. A program would end the process, or read other memory, if it
// got such an index.
Status check_batch(const program::Sidecar& sidecar, const std::vector<std::uint32_t>& columns, const Batch& batch,
                   const std::string& path);

}  // namespace disttrain::workerd
