// Opens the library libnsa_compiler.so when a kernel must be compiled, and calls its C interface
// (compiler/api/nsa_compiler.h) with C++ values. The compiler library is never closed, because LLVM keeps static state;
// opening the compiler library twice gives the same one.
// Thread-safety: immutable; all functions may be called by many threads at once.
#pragma once

#include "autotune/tuner/tuner.h"
#include "compiler/api/nsa_compiler.h"
#include "runtime/base/manifest.h"
#include "runtime/base/status.h"
#include "runtime/program/program_source.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct CompileRequest {
  std::string target;
  std::string op;
  std::map<std::string, std::string> fixed;
  std::string templateName; // "": any template
  std::map<std::string, std::string> config;
  std::string templateDir;
  std::string nvrtcPath;
  std::string cpuFeatures;
  int driverVersion = 0;
  ProgramSource::Pointer program{}; // the program that is compiled; null: a template of the operator
};

struct CompiledKernel {
  std::string manifestText;
  Manifest manifest;
  std::vector<std::byte> binary;
  std::string content;   // digest of what produced the binary; the key of the kernel in the store
  std::string templates; // digest of the template folder that it was made from; "": the embedded templates
  std::string warnings;  // of `nsa check` about a program of one's own, a line for each
  double renderMs = 0;
  double compileMs = 0; // the time of everything after rendering
};

// A file of the tile language that is to be checked.
struct ProgramCheckRequest {
  std::string path;
  std::map<std::string, std::string> values; // of the problem, and of choices
  std::string target;                        // "": all that the file names
  bool explains = false;
};

// What the compiler says of a file of the tile language.
struct ProgramReport {
  bool isGood = false;
  std::string messages; // errors and warnings, with the line and a caret
  std::string text;     // of a good file: what was checked, what was explained, or the layout
};

class CompilerLibrary {
public:
  // Opens the compiler library. An empty path means the file libnsa_compiler.so in the folder of libnsa.so.
  static Result<std::shared_ptr<const CompilerLibrary>> open(const std::string &path);
  static std::string resolvePath(const std::string &path);

  // Lists the admissible candidates, the candidate with the lowest predicted cost first. `list` returns the error
  // kUnsupported when there is no candidate.
  Result<std::vector<Candidate>> list(const CompileRequest &request) const;
  // Compiles one candidate. A folder of templates that changes during the compilation is read again, so that the kernel
  // comes from one state of the folder.
  Result<CompiledKernel> compile(const CompileRequest &request) const;
  // Returns the output of one stage of the compiler, for example the rendered template or the emitted CUDA source.
  Result<std::string> emit(const CompileRequest &request, nsa_compiler_stage stage) const;

  // Checks a file of the tile language for all targets. The result is an error only if nothing could be checked.
  Result<ProgramReport> check(const ProgramCheckRequest &request) const;
  // Lays out a text of the tile language. `name` is what messages call the text.
  Result<ProgramReport> format(const std::string &name, std::string_view text) const;

  const std::string &path() const { return file; }
  std::string sourceId() const { return api->source_id ? api->source_id : ""; }

private:
  CompilerLibrary(std::string file, const nsa_compiler_api *api) : file(std::move(file)), api(api) {}
  Result<CompiledKernel> compileOnce(const CompileRequest &request) const;

  std::string file;
  const nsa_compiler_api *api;
};

} // namespace nsa
