// SharedColumns gives a trainer the columns of a batch in shared memory. A column that lies in the arena already isn't
// copied. The others are copied into a block of memory, which grows to the size of the largest batch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/os/arena.h"
#include "engine/engine.h"
#include "engine/trainer/trainer_protocol.h"

namespace disttrain::workerd {

class SharedColumns {
 public:
  // The arena is shared, and must outlive this object.
  explicit SharedColumns(Arena& arena) : arena_(arena) {}

  // The result is valid until the next call. Throws std::bad_alloc.
  std::vector<SharedColumn> share(std::span<const ColumnValues> columns);

 private:
  Arena& arena_;
  std::unique_ptr<Memory> copies_;
};

}  // namespace disttrain::workerd
