// DISTTRAIN_CHECK works in every build type. A failed check means a bug in this program: the check writes the condition
// and the compared values to stderr and aborts the process. Never check a condition that a peer, a file or an operator
// can break; return a Result instead.
#pragma once

#include <sstream>
#include <string>

namespace disttrain::internal {

// Called with the message of a failed check, before the process aborts. The default writes the message to stderr.
extern void (*on_failed_check)(const char* sentence);

// Reports "file:line: check failed: what" and aborts.
[[noreturn]] void check_failed(const char* file, int line, const std::string& what);

template <typename A, typename B>
std::string describe_comparison(const char* text, const A& a, const B& b) {
  std::ostringstream out;
  out << text << " (" << a << " and " << b << ")";
  return out.str();
}

}  // namespace disttrain::internal

#define DISTTRAIN_CHECK(condition)                                                         \
  do {                                                                                     \
    if (!(condition)) ::disttrain::internal::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#define DISTTRAIN_CHECK_COMPARE_(a, op, b)                                                                      \
  do {                                                                                                          \
    const auto& check_a = (a);                                                                                  \
    const auto& check_b = (b);                                                                                  \
    if (!(check_a op check_b))                                                                                  \
      ::disttrain::internal::check_failed(                                                                      \
          __FILE__, __LINE__, ::disttrain::internal::describe_comparison(#a " " #op " " #b, check_a, check_b)); \
  } while (false)

#define DISTTRAIN_CHECK_EQ(a, b) DISTTRAIN_CHECK_COMPARE_(a, ==, b)
#define DISTTRAIN_CHECK_NE(a, b) DISTTRAIN_CHECK_COMPARE_(a, !=, b)
#define DISTTRAIN_CHECK_LE(a, b) DISTTRAIN_CHECK_COMPARE_(a, <=, b)
#define DISTTRAIN_CHECK_LT(a, b) DISTTRAIN_CHECK_COMPARE_(a, <, b)
#define DISTTRAIN_CHECK_GE(a, b) DISTTRAIN_CHECK_COMPARE_(a, >=, b)
