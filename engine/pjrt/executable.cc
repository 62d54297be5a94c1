#include "engine/pjrt/executable.h"

#include <string_view>

namespace disttrain::workerd::pjrt {
namespace {

// An xla.CompileOptionsProto (xla/pjrt/proto/compile_options.proto) that says: for one device. Its field 3,
// executable_build_options, has the fields 4, num_replicas = 1, and 5, num_partitions = 1.
constexpr std::string_view kCompileOptions = "\x1a\x04\x20\x01\x28\x01";
constexpr std::string_view kFormat = "mlir";
constexpr const char* kReading = "reading a result from the device";

// Bounds on what a program may tell about its outputs.
constexpr std::size_t kMaxOutputs = 1'000'000;
constexpr std::size_t kMaxDims = 64;

const char* name_of(abi::ElementType type) {
  switch (type) {
    case abi::kInt32Type:
      return "int32";
    case abi::kInt64Type:
      return "int64";
    case abi::kUint8Type:
      return "uint8";
    case abi::kUint32Type:
      return "uint32";
    case abi::kFloat16Type:
      return "float16";
    case abi::kFloat32Type:
      return "float32";
    case abi::kFloat64Type:
      return "float64";
    case abi::kBfloat16Type:
      return "bfloat16";
    case abi::kInvalidType:
      break;
  }
  return "another type";
}

}  // namespace

std::string to_string(const ArrayType& type) {
  std::string text = std::string(name_of(type.element)) + "[";
  for (std::size_t i = 0; i < type.dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(type.dims[i]);
  return text + "]";
}

Result<Buffer> Buffer::of(const Client& client, const ArrayType& type, std::span<const std::byte> data) {
  abi::ClientBufferFromHostBufferArgs args{};
  args.client = client.get();
  args.data = data.data();
  args.type = type.element;
  args.dims = type.dims.data();
  args.dim_count = type.dims.size();
  args.semantics = abi::kImmutableZeroCopy;
  args.device = client.device();
  const std::string doing = "bringing " + to_string(type) + " to the device";
  if (Status status = client.plugin().call(abi::kClientBufferFromHostBuffer, args, doing); !status)
    return tl::unexpected(status.error());
  // The event tells that `data` may be freed. Our callers keep it until the buffer's end, so nothing waits for it.
  if (args.done_with_host_data != nullptr)
    client.plugin().destroy<abi::EventDestroyArgs>(abi::kEventDestroy, args.done_with_host_data);
  return Buffer(client.plugin(), args.buffer);
}

Result<PendingRead> Buffer::start_read(std::span<std::byte> destination) const {
  abi::BufferToHostBufferArgs args{};
  args.source = handle_.get();
  args.destination = destination.data();
  args.destination_size = destination.size();
  if (Status status = plugin_->call(abi::kBufferToHostBuffer, args, kReading); !status)
    return tl::unexpected(status.error());
  return PendingRead(*plugin_, args.event);
}

Status Buffer::read(std::span<std::byte> destination) const {
  Result<PendingRead> pending = start_read(destination);
  if (!pending) return tl::unexpected(pending.error());
  return pending->wait();
}

PendingRead::~PendingRead() {
  if (event_ != nullptr) (void)wait();
}

Status PendingRead::wait() {
  return await(*plugin_, std::exchange(event_, nullptr), kReading);
}

Result<std::unique_ptr<Executable>> Executable::compile(const Client& client, std::span<const char> code,
                                                        const std::string& name) {
  abi::Program program{};
  program.struct_size = sizeof(program);
  program.code = const_cast<char*>(code.data());  // the plugin only reads it, see abi.h
  program.code_size = code.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  abi::ClientCompileArgs args{};
  args.client = client.get();
  args.program = &program;
  args.options = kCompileOptions.data();
  args.options_size = kCompileOptions.size();
  if (Status status = client.plugin().call(abi::kClientCompile, args, "compiling program \"" + name + "\""); !status)
    return fail(ErrorCode::kConfig, status.error().message);
  std::unique_ptr<Executable> executable(new Executable(client, args.executable, name));
  if (Status status = executable->read_output_types(); !status) return tl::unexpected(status.error());
  return executable;
}

Status Executable::read_output_types() {
  const Plugin& plugin = client_.plugin();
  const std::string doing = "asking for the outputs of program \"" + name_ + "\"";
  abi::LoadedExecutableGetExecutableArgs get{};
  get.loaded_executable = loaded_.get();
  if (Status status = plugin.call(abi::kLoadedExecutableGetExecutable, get, doing); !status) return status;
  const ExecutableHandle executable(plugin, get.executable);

  abi::ExecutableNumOutputsArgs count{};
  count.executable = executable.get();
  abi::ExecutableOutputElementTypesArgs types{};
  types.executable = executable.get();
  abi::ExecutableOutputDimensionsArgs dims{};
  dims.executable = executable.get();
  if (Status status = plugin.call(abi::kExecutableNumOutputs, count, doing); !status) return status;
  if (Status status = plugin.call(abi::kExecutableOutputElementTypes, types, doing); !status) return status;
  if (Status status = plugin.call(abi::kExecutableOutputDimensions, dims, doing); !status) return status;
  if (count.output_count > kMaxOutputs || types.type_count != count.output_count ||
      dims.output_count != count.output_count)
    return fail(ErrorCode::kFailed, doing + ": the PJRT plugin's answers contradict each other");
  const std::int64_t* next = dims.dims;
  for (std::size_t i = 0; i < count.output_count; ++i) {
    if (dims.dim_counts[i] > kMaxDims)
      return fail(ErrorCode::kFailed, doing + ": output " + std::to_string(i) + " has more than " +
                                          std::to_string(kMaxDims) + " dimensions");
    outputs_.push_back({types.types[i], {next, next + dims.dim_counts[i]}});
    next += dims.dim_counts[i];
  }
  return {};
}

Result<std::vector<Buffer>> Executable::run(std::span<const Buffer* const> inputs) {
  std::vector<abi::Buffer*> input_list;
  std::vector<std::int64_t> kept;
  for (const Buffer* input : inputs) {
    kept.push_back(static_cast<std::int64_t>(input_list.size()));
    input_list.push_back(input->get());
  }
  std::vector<abi::Buffer*> output_list(outputs_.size());
  abi::Buffer* const* const inputs_of_device = input_list.data();
  abi::Buffer** const outputs_of_device = output_list.data();
  abi::Event* complete = nullptr;
  abi::ExecuteOptions options{};
  options.struct_size = sizeof(options);
  options.kept_inputs = kept.data();
  options.kept_input_count = kept.size();
  abi::LoadedExecutableExecuteArgs args{};
  args.executable = loaded_.get();
  args.options = &options;
  args.inputs = &inputs_of_device;
  args.device_count = 1;
  args.input_count = input_list.size();
  args.outputs = &outputs_of_device;
  args.device_complete_events = &complete;
  std::vector<Buffer> outputs;
  outputs.reserve(output_list.size());  // before there is anything to free
  const std::string doing = "running program \"" + name_ + "\"";
  if (Status status = client_.plugin().call(abi::kLoadedExecutableExecute, args, doing); !status)
    return tl::unexpected(status.error());
  for (abi::Buffer* output : output_list) outputs.push_back(Buffer(client_.plugin(), output));
  if (Status status = await(client_.plugin(), complete, doing); !status) return tl::unexpected(status.error());
  return outputs;
}

}  // namespace disttrain::workerd::pjrt
