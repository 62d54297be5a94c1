#include "common/os/crash_stack.h"

#include <sys/mman.h>

#include <csignal>
#include <cstddef>

namespace disttrain {

namespace {

constexpr std::size_t kBytes = 64 * 1024;

class CrashStack {
 public:
  CrashStack() {
    stack_t old{};
    if (::sigaltstack(nullptr, &old) != 0 || (old.ss_flags & SS_DISABLE) == 0) return;
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = kBytes;
    if (::sigaltstack(&stack, nullptr) == 0)
      memory_ = memory;
    else
      ::munmap(memory, kBytes);
  }
  ~CrashStack() {
    if (memory_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
    ::munmap(memory_, kBytes);
  }
  CrashStack(const CrashStack&) = delete;
  CrashStack& operator=(const CrashStack&) = delete;

  void use() {}

 private:
  void* memory_ = nullptr;
};

}  // namespace

void use_crash_stack() {
  thread_local CrashStack stack;  // made when a thread comes here first
  stack.use();
}

}  // namespace disttrain
