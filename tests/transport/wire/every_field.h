// Visits all fields of any message struct, so that a round trip tests every field, even one that is added later. fill()
// gives each field a different value, and same() compares all fields.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "common/config/job_config.h"
#include "common/layout.h"
#include "common/messages/checkpoint.h"
#include "common/messages/client.h"
#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/messages/session.h"
#include "common/messages/trace.h"

namespace disttrain::wire {

struct Anything {
  template <typename T>
  operator T() const;
};

template <typename T, typename... Args>
constexpr std::size_t count_fields() {
  if constexpr (requires { T{Args{}..., Anything{}}; })
    return count_fields<T, Args..., Anything>();
  else
    return sizeof...(Args);
}
// If this number is wrong, with_fields() doesn't compile.
template <typename T>
inline constexpr std::size_t kFields = count_fields<T>();
// The compiler could make an optional from Anything in two ways, which is ambiguous. So count_fields() can't count the
// fields of messages that have an optional. The counts of these messages are written here.
template <>
inline constexpr std::size_t kFields<LeaseGrant> = 5;
template <>
inline constexpr std::size_t kFields<Heartbeat> = 16;
template <>
inline constexpr std::size_t kFields<TraceEvents> = 7;
template <>
inline constexpr std::size_t kFields<ShardWritten> = 10;
template <>
inline constexpr std::size_t kFields<ColumnSection> = 26;
template <>
inline constexpr std::size_t kFields<ColumnSpec> = 8;

// Calls f(field of a, field of b) for each field. The function is long, because it is a table.
template <typename T, typename F>
void with_fields(T& x, T& y, F f) {
  constexpr std::size_t n = kFields<std::remove_const_t<T>>;
#define DISTTRAIN_PAIR(m) f(a##m, b##m)
  static_assert(n <= 26, "a message has more fields than this table: lengthen it");
  if constexpr (n == 0) {
  } else if constexpr (n == 1) {
    auto& [a1] = x;
    auto& [b1] = y;
    DISTTRAIN_PAIR(1);
  } else if constexpr (n == 2) {
    auto& [a1, a2] = x;
    auto& [b1, b2] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2);
  } else if constexpr (n == 3) {
    auto& [a1, a2, a3] = x;
    auto& [b1, b2, b3] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3);
  } else if constexpr (n == 4) {
    auto& [a1, a2, a3, a4] = x;
    auto& [b1, b2, b3, b4] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4);
  } else if constexpr (n == 5) {
    auto& [a1, a2, a3, a4, a5] = x;
    auto& [b1, b2, b3, b4, b5] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5);
  } else if constexpr (n == 6) {
    auto& [a1, a2, a3, a4, a5, a6] = x;
    auto& [b1, b2, b3, b4, b5, b6] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6);
  } else if constexpr (n == 7) {
    auto& [a1, a2, a3, a4, a5, a6, a7] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7);
  } else if constexpr (n == 8) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8);
  } else if constexpr (n == 9) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9);
  } else if constexpr (n == 10) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10);
  } else if constexpr (n == 11) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11);
  } else if constexpr (n == 12) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12);
  } else if constexpr (n == 13) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13);
  } else if constexpr (n == 14) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14);
  } else if constexpr (n == 15) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15);
  } else if constexpr (n == 16) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16);
  } else if constexpr (n == 17) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17);
  } else if constexpr (n == 18) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18);
  } else if constexpr (n == 19) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18), DISTTRAIN_PAIR(19);
  } else if constexpr (n == 20) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18), DISTTRAIN_PAIR(19), DISTTRAIN_PAIR(20);
  } else if constexpr (n == 21) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18), DISTTRAIN_PAIR(19), DISTTRAIN_PAIR(20), DISTTRAIN_PAIR(21);
  } else if constexpr (n == 22) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18), DISTTRAIN_PAIR(19), DISTTRAIN_PAIR(20), DISTTRAIN_PAIR(21),
        DISTTRAIN_PAIR(22);
  } else if constexpr (n == 23) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23] =
        x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23] =
        y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18), DISTTRAIN_PAIR(19), DISTTRAIN_PAIR(20), DISTTRAIN_PAIR(21),
        DISTTRAIN_PAIR(22), DISTTRAIN_PAIR(23);
  } else if constexpr (n == 24) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23,
           a24] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23,
           b24] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18), DISTTRAIN_PAIR(19), DISTTRAIN_PAIR(20), DISTTRAIN_PAIR(21),
        DISTTRAIN_PAIR(22), DISTTRAIN_PAIR(23), DISTTRAIN_PAIR(24);
  } else if constexpr (n == 25) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23,
           a24, a25] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23,
           b24, b25] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18), DISTTRAIN_PAIR(19), DISTTRAIN_PAIR(20), DISTTRAIN_PAIR(21),
        DISTTRAIN_PAIR(22), DISTTRAIN_PAIR(23), DISTTRAIN_PAIR(24), DISTTRAIN_PAIR(25);
  } else if constexpr (n == 26) {
    auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23,
           a24, a25, a26] = x;
    auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23,
           b24, b25, b26] = y;
    DISTTRAIN_PAIR(1), DISTTRAIN_PAIR(2), DISTTRAIN_PAIR(3), DISTTRAIN_PAIR(4), DISTTRAIN_PAIR(5), DISTTRAIN_PAIR(6),
        DISTTRAIN_PAIR(7), DISTTRAIN_PAIR(8), DISTTRAIN_PAIR(9), DISTTRAIN_PAIR(10), DISTTRAIN_PAIR(11),
        DISTTRAIN_PAIR(12), DISTTRAIN_PAIR(13), DISTTRAIN_PAIR(14), DISTTRAIN_PAIR(15), DISTTRAIN_PAIR(16),
        DISTTRAIN_PAIR(17), DISTTRAIN_PAIR(18), DISTTRAIN_PAIR(19), DISTTRAIN_PAIR(20), DISTTRAIN_PAIR(21),
        DISTTRAIN_PAIR(22), DISTTRAIN_PAIR(23), DISTTRAIN_PAIR(24), DISTTRAIN_PAIR(25), DISTTRAIN_PAIR(26);
  }
#undef DISTTRAIN_PAIR
}

// Fills fields with values that differ from each other and from every default value.
class Filler {
 public:
  template <typename T>
  void fill(T& x) {
    if constexpr (std::is_same_v<T, bool>)
      x = true;
    else if constexpr (std::is_same_v<T, Layout>)
      x = layout();
    else if constexpr (std::is_same_v<T, std::uint8_t>)
      x = 1;  // log levels
    else if constexpr (std::is_arithmetic_v<T>)
      x = static_cast<T>(next_ += 7);
    else if constexpr (std::is_same_v<T, std::string>)
      x = "text " + std::to_string(next_ += 7);
    else if constexpr (std::is_enum_v<T>)
      // For enums that aren't part of the wire protocol. Their test defines fill_enum().
      fill_enum(x);
    else
      fill_other(x);
  }
  void fill(Role& x) { x = Role::kEvaluator; }
  void fill(ErrorCode& x) { x = ErrorCode::kNoInput; }
  void fill(Phase& x) { x = Phase::kEvaluate; }
  void fill(Want& x) { x = Want::kAll; }
  void fill(PushOutcome& x) { x = PushOutcome::kFinished; }
  void fill(DType& x) { x = DType::kFloat64; }
  void fill(MetricKind& x) { x = MetricKind::kMae; }
  void fill(MetricSpec& x) {
    fill_other(x);
    x.name = metric_name();
  }
  void fill(MetricValue& x) {
    fill_other(x);
    x.name = metric_name();
  }
  void fill(VariableKind& x) { x = VariableKind::kState; }
  void fill(InitializerKind& x) { x = InitializerKind::kUniform; }
  void fill(Placement& x) { x = Placement::kPartitioned; }
  void fill(Mode& x) { x = Mode::kSsp; }
  void fill(Activation& x) { x = Activation::kGelu; }
  void fill(Loss& x) { x = Loss::kSigmoidCrossEntropy; }
  void fill(Rule& x) { x = Rule::kFtrl; }
  void fill(ScheduleKind& x) { x = ScheduleKind::kCosine; }
  void fill(ClipKind& x) { x = ClipKind::kValue; }
  void fill(NonfiniteAction& x) { x = NonfiniteAction::kFail; }
  void fill(Stem& x) { x = Stem::kImagenet; }
  void fill(DecayOf& x) { x = DecayOf::kMatrices; }
  void fill(StateRule& x) { x = StateRule::kLowestRank; }
  void fill(Sharding& x) { x = Sharding::kNone; }
  void fill(DataFormat& x) { x = DataFormat::kParquet; }
  void fill(ColumnKind& x) { x = ColumnKind::kBytes; }
  void fill(Truncate& x) { x = Truncate::kNone; }
  void fill(PadTo& x) { x = PadTo::kLongest; }
  void fill(Normalise& x) { x = Normalise::kStandard; }
  void fill(OnWorkerLoss& x) { x = OnWorkerLoss::kWait; }
  void fill(OnFailure& x) { x = OnFailure::kResubmit; }
  void fill(Restore& x) { x = Restore::kNone; }
  void fill(Better& x) { x = Better::kLower; }
  void fill(ShuffleKind& x) { x = ShuffleKind::kBlocks; }
  void fill(std::array<std::uint64_t, 2>& x) { x = {next_ += 7, next_ += 7}; }
  void fill(std::map<std::string, std::string>& x) { x = {{"theirs", "ours"}, {"other", "name"}}; }
  void fill(SharedJobConfig& x) {
    auto config = std::make_shared<JobConfig>();
    fill(*config);
    x = config;
  }
  void fill(TraceKind& x) { x = kLastTraceKind; }
  void fill(Instant& x) { x = Instant(Duration(next_ += 7)); }
  void fill(Duration& x) { x = Duration(next_ += 7); }
  void fill(RankSet& x) { x.insert(Rank((next_ += 7) % kMaxRoster)); }
  void fill(Positions& x) {
    for (int i = 0; i < 3; ++i) fill(x.push_back());
  }

 private:
  template <typename Tag, typename Integer>
  void fill_other(StrongId<Tag, Integer>& x) {
    x = StrongId<Tag, Integer>(static_cast<Integer>(next_ += 7));
  }
  template <typename T>
  void fill_other(std::vector<T>& x) {
    x.resize(2);
    for (T& item : x) fill(item);
  }
  template <typename T>
  void fill_other(std::optional<T>& x) {
    fill(x.emplace());
  }
  template <typename T>
  void fill_other(T& x) {
    with_fields(x, x, [this](auto& field, auto&) { fill(field); });
  }

  std::string metric_name() { return "top_" + std::to_string(next_ += 7) + "/a-b.C"; }

  Layout layout() {
    Layout layout;
    fill(layout.model);
    layout.model.variables[0].shape = {3, 4};
    layout.model.variables[1].shape = {5};
    layout.shards = 2;
    layout.variable_begins = {10, 0};
    layout.buckets = {{ShardId(1), 0, 0, 10}, {ShardId(0), 10, 0, 12}, {ShardId(1), 22, 10, 12}};
    return layout;
  }

  std::uint32_t next_ = 100;
};

template <typename T>
T filled() {
  T value;
  Filler().fill(value);
  if constexpr (requires { value.owners, value.layout; }) value.owners.resize(value.layout.shards);
  return value;
}

template <typename T>
bool same(const T& x, const T& y);

template <typename T>
bool same_lists(const std::vector<T>& x, const std::vector<T>& y) {
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!same(x[i], y[i])) return false;
  return true;
}

template <typename T>
bool same(const T& x, const T& y) {
  if constexpr (
      requires { x.capacity(), x.front().visited; } || requires { x.capacity(), x.front().text; } ||
      requires { x.capacity(), x.front().boundaries; }) {
    return same_lists(x, y);
  } else if constexpr (requires { x.has_value(), x->ledger; }) {
    return x.has_value() == y.has_value() && (!x || same(*x, *y));
  } else if constexpr (std::is_same_v<T, SharedJobConfig>) {
    return same(*x, *y);
  } else if constexpr (std::equality_comparable<T>) {
    return x == y;
  } else {
    bool all = true;
    with_fields(x, y, [&all](const auto& a, const auto& b) { all = all && same(a, b); });
    return all;
  }
}

}  // namespace disttrain::wire
