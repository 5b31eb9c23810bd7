// Programs of one's own in the tile language (nsa/program.h) for C++17. Included by nsa.hpp.
//
//   nsa::Program softmax = engine.program(nsa::ProgramSource::file("softmax.tile"),
//                                         {{"dtype", "fp32"}, {"columns", 1000}, {"rows", 100}});
//   nsa::HostWorkspace workspace(softmax.workspaceSize());
//   softmax.run({{"x", x}, {"y", y}}, {}, workspace.data(), workspace.size());
//
// Ownership: a Program may be destroyed after its engine.
// Thread-safety: a Program has the rules of an nsa_program.
#pragma once

#include <nsa/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nsa {
inline namespace api {

// The text of a program: a file with the libraries beside it, or a text in memory.
class ProgramSource {
public:
  static ProgramSource file(std::string path) { return ProgramSource(std::move(path), {}, {}); }
  // `name` is what messages call the text.
  static ProgramSource text(std::string text, std::string name = "program") {
    return ProgramSource({}, std::move(text), std::move(name));
  }
  // Valid as long as this object.
  nsa_program_source c() const {
    nsa_program_source source = NSA_INIT(nsa_program_source);
    if (name.empty())
      source.path = path.c_str();
    else
      source.text = content.c_str(), source.name = name.c_str();
    return source;
  }

private:
  ProgramSource(std::string ofFile, std::string text, std::string called)
      : path(std::move(ofFile)), content(std::move(text)), name(std::move(called)) {}
  std::string path, content, name; // no name: a file
};

// A value by name (nsa_program_value): {"dtype", "fp32"}, {"columns", 1000}.
struct ProgramValue {
  std::string name, value;

  ProgramValue(std::string of, std::string text) : name(std::move(of)), value(std::move(text)) {}
  ProgramValue(std::string of, std::int64_t number) : name(std::move(of)), value(std::to_string(number)) {}
};

// A tensor by name: {"x", nsa::Tensor(x, {100, 1000})}.
struct ProgramTensor {
  const char *name;
  const Tensor &tensor;
};

// A scalar by name: {"scale", 0.5}.
struct ProgramScalar {
  const char *name;
  double value;

  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  ProgramScalar(const char *of, Number number) : name(of), value(static_cast<double>(number)) {}
};

class Program {
public:
  Program() = default;                                  // an empty program: `handle` is null, every other call throws
  nsa_program *handle() const { return program.get(); } // this object keeps the handle; null for an empty program

  std::size_t workspaceSize() const {
    std::size_t bytes = 0;
    detail::check(nsa_program_workspace_size(program.get(), &bytes, nullptr));
    return bytes;
  }

  // Enqueues the program on `stream`. On the CPU `run` returns when the result is there.
  void run(std::initializer_list<ProgramTensor> tensors, std::initializer_list<ProgramScalar> scalars, void *workspace,
           std::size_t workspaceBytes, void *stream = nullptr) const {
    run(tensors.begin(), tensors.size(), scalars.begin(), scalars.size(), workspace, workspaceBytes, stream);
  }
  void run(const ProgramTensor *tensors, std::size_t tensorCount, const ProgramScalar *scalars, std::size_t scalarCount,
           void *workspace, std::size_t workspaceBytes, void *stream = nullptr) const {
    const Arguments call(tensors, tensorCount, scalars, scalarCount);
    detail::check(nsa_program_run(program.get(), call.tensors, tensorCount, call.scalars, scalarCount, workspace,
                                  workspaceBytes, stream, nullptr));
  }

  // Runs the call in an interpreter, and throws an Error that says what the program does that it must not do
  // (nsa_program_check).
  void check(std::initializer_list<ProgramTensor> tensors, std::initializer_list<ProgramScalar> scalars,
             void *stream = nullptr) const {
    const Arguments call(tensors.begin(), tensors.size(), scalars.begin(), scalars.size());
    detail::check(
        nsa_program_check(program.get(), call.tensors, tensors.size(), call.scalars, scalars.size(), stream, nullptr));
  }

  // Runs and waits, and returns the JSON of nsa_program_compare.
  std::string compare(std::initializer_list<ProgramTensor> tensors, std::initializer_list<ProgramScalar> scalars,
                      void *workspace, std::size_t workspaceBytes, void *stream = nullptr) const {
    const Arguments call(tensors.begin(), tensors.size(), scalars.begin(), scalars.size());
    return detail::takeText([&](char **text) {
      return nsa_program_compare(program.get(), call.tensors, tensors.size(), call.scalars, scalars.size(), workspace,
                                 workspaceBytes, stream, text, nullptr);
    });
  }

  // Waits for `stream`, and throws an Error if the kernel has reported one.
  void checkStatus(void *stream = nullptr) const { detail::check(nsa_program_status(program.get(), stream, nullptr)); }

  // Returns the JSON of nsa_program_describe.
  std::string describe() const {
    return detail::takeText([&](char **text) { return nsa_program_describe(program.get(), text, nullptr); });
  }

private:
  friend class EngineView;
  // The arguments of a call, on the stack. There is room for more of them than a program may declare.
  struct Arguments {
    Arguments(const ProgramTensor *given, std::size_t tensorCount, const ProgramScalar *numbers,
              std::size_t scalarCount) {
      if (tensorCount > kMost || scalarCount > kMost)
        throw std::invalid_argument("nsa::Program: a call has at most 128 tensors and 128 scalars");
      for (std::size_t i = 0; i < tensorCount; ++i)
        tensors[i] = {given[i].name, &given[i].tensor.c()};
      for (std::size_t i = 0; i < scalarCount; ++i)
        scalars[i] = {numbers[i].name, numbers[i].value};
    }
    static constexpr std::size_t kMost = 128;
    nsa_program_tensor tensors[kMost];
    nsa_program_scalar scalars[kMost];
  };
  struct Destroy {
    void operator()(nsa_program *handle) const { nsa_program_destroy(handle); }
  };
  explicit Program(nsa_program *made) : program(made) {}
  std::unique_ptr<nsa_program, Destroy> program;
};

namespace detail {

inline std::vector<nsa_program_value> valuesOf(const std::vector<ProgramValue> &values) {
  std::vector<nsa_program_value> result;
  for (const ProgramValue &each : values)
    result.push_back({each.name.c_str(), each.value.c_str()});
  return result;
}

} // namespace detail
} // namespace api
} // namespace nsa
