// Texts for the operator about a trace: it was written, or it couldn't be written.
#pragma once

#include <string>

#include "chiefd/core/events.h"
#include "chiefd/traces/trace_book.h"
#include "common/result.h"

namespace disttrain::chiefd {

TraceWritten trace_report(const TraceBook& book, const Result<std::string>& path);

}  // namespace disttrain::chiefd
