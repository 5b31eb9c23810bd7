#include "runtime/engine/compile/source_dump.h"

#include "cache/database/replacing_file.h"
#include "runtime/process/file_limit_signal.h"

#include <filesystem>
#include <fstream>

namespace nsa {

namespace {

Status write(const std::string &path, std::string_view content) {
  const auto failed = [&](const std::string &reason) {
    return Status::error(ErrorCode::kIoError, "cannot write " + path + reason, "dump_dir must be a writable folder");
  };
  // The names can be known beforehand: in a folder of everyone's, what stands there may be a link to another file.
  Result<ReplacingFile> file = ReplacingFile::create(path, ReplacingFile::Existing::kReplace);
  if (!file)
    return failed(": " + file.status().toString());
  const FileLimitSignalHeld held;
  std::ofstream stream(file->temporaryPath(), std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream)
    return failed("");
  if (Status status = file->commit(); !status.isOk())
    return failed(": " + status.toString());
  return Status::ok();
}

} // namespace

Status dumpSources(const CompilerLibrary &compiler, const CompileRequest &request, const CompiledKernel &kernel,
                   const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error); // writing reports what is wrong
  bool cpu = request.target == "cpu";
  std::string stem = folder + "/" + request.op + "_" + kernel.manifest.templateName + "_" + request.target + "_" +
                     kernel.content.substr(0, 12);
  const struct {
    nsa_compiler_stage stage;
    const char *ending;
  } stages[] = {{NSA_COMPILER_STAGE_TEMPLATE, ".template"},
                {NSA_COMPILER_STAGE_SCHEDULED, ".mlir"},
                {cpu ? NSA_COMPILER_STAGE_LLVM : NSA_COMPILER_STAGE_CUDA, cpu ? ".ll" : ".cu"}};
  for (const auto &wanted : stages) {
    Result<std::string> text = compiler.emit(request, wanted.stage);
    if (text)
      NSA_RETURN_IF_ERROR(write(stem + wanted.ending, *text));
    // A hand-scheduled template has no scheduled program: that stage is unsupported there.
    else if (text.status().code() != ErrorCode::kUnsupported)
      return text.status();
  }
  NSA_RETURN_IF_ERROR(write(stem + ".manifest", kernel.manifestText));
  return write(stem + (cpu ? ".bin" : ".cubin"),
               std::string_view(reinterpret_cast<const char *>(kernel.binary.data()), kernel.binary.size()));
}

} // namespace nsa
