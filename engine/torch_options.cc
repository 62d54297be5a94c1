#include "engine/torch_options.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include <mutex>

namespace disttrain::workerd {

void use_threads(std::uint32_t threads) {
  // The models don't use libtorch's inter-operation threads. A process may set their number only once.
  static std::once_flag once;
  std::call_once(once, [] { at::set_num_interop_threads(1); });
  at::set_num_threads(static_cast<int>(threads));
}

// A convolution allocates megabytes and soon frees them. By default glibc returns such memory to the kernel, and the
// next step gets new pages, with a page fault for each: about 1,100 per step of the cnn. With these settings glibc
// keeps the memory and there are no page faults. The cost is that the process may keep up to 256 MiB of freed memory.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);  // the largest value that glibc accepts
  mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);
}

}  // namespace disttrain::workerd
