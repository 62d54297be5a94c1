// Texts for the operator about a trace: it was written, it couldn't be written, or there is none.
#pragma once

#include <string>

#include "chiefd/core/events.h"
#include "chiefd/traces/trace_book.h"
#include "common/result.h"

namespace disttrain::chiefd {

TraceWritten trace_report(const TraceBook& book, const Result<std::string>& path);
// The job has ended, and the book has no events.
TraceWritten empty_trace_report(const TraceBook& book);

}  // namespace disttrain::chiefd
