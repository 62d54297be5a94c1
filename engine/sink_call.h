// SinkCall marks the time in which an engine calls its sink. An engine checks by it that the sink, or an event that the
// sink lets the loop run, doesn't call the engine meanwhile (engine.h).
#pragma once

#include <utility>

namespace disttrain::workerd {

class SinkCall {
 public:
  // `is_calling` is true until the SinkCall ends. Calls may be nested.
  explicit SinkCall(bool& is_calling) : is_calling_(is_calling), before_(std::exchange(is_calling, true)) {}
  ~SinkCall() { is_calling_ = before_; }
  SinkCall(const SinkCall&) = delete;
  SinkCall& operator=(const SinkCall&) = delete;

 private:
  bool& is_calling_;
  const bool before_;
};

}  // namespace disttrain::workerd
