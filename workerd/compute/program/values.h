// The values of a program's variables and columns: checks on what enters a program, and the way of its results into the
// flat arrays. This part is the same for compiled programs and for TorchScript, and doesn't know libtorch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/layout.h"
#include "common/program/sidecar.h"
#include "common/result.h"
#include "workerd/compute/computation.h"

namespace disttrain::workerd {

// Whether the programs take batches of so many records: kConfig.
Status check_size(const program::Sidecar& sidecar, std::uint64_t examples, const std::string& path);

// Whether a program may run on this batch. Fails as check_size(), and with kData if a column has another number of
// bytes, or if an integer is outside its column's limit. A program would end the process, or read other memory, if it
// got such an index.
Status check_batch(const program::Sidecar& sidecar, const std::vector<std::uint32_t>& columns, const Batch& batch,
                   const std::string& path);

// The variables of a layout in the order of the flat arrays.
class FlatOrder {
 public:
  FlatOrder() = default;
  explicit FlatOrder(const Layout& layout);

  // Calls write(v, begin) for each variable v of ModelSpec::variables, which begins at flat word `begin`. After each
  // bucket's worth of words it announces them by `ready`, which may be empty.
  void write_all(const std::function<void(std::uint32_t variable, std::uint64_t begin)>& write,
                 const RangeReady& ready) const;

 private:
  struct Place {
    std::uint32_t variable = 0;
    std::uint64_t begin = 0;
    std::uint64_t words = 0;
  };
  std::vector<Place> places_;
};

}  // namespace disttrain::workerd
