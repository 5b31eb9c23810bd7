#include "runtime/json/json_input.h"

#include <set>
#include <vector>

namespace nsa {
namespace {

// Builds the value through the library's own DOM builder and watches keys and depth on the way.
class CheckedBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  using Json = nlohmann::json;
  // Deeper than any input of ours; bounds the recursion of later users of the value.
  static constexpr size_t kMaxDepth = 32;

  explicit CheckedBuilder(Json &value) : builder(value, false) {}

  std::string problem;
  size_t problemAt = 0; // how many bytes had been read; the end counts as one

  bool null() override { return builder.null(); }
  bool boolean(bool value) override { return builder.boolean(value); }
  bool number_integer(number_integer_t value) override { return builder.number_integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return builder.number_unsigned(value); }
  bool number_float(number_float_t value, const string_t &text) override { return builder.number_float(value, text); }
  bool string(string_t &value) override { return builder.string(value); }
  bool binary(binary_t &value) override { return builder.binary(value); }
  bool start_object(size_t elements) override {
    keys.emplace_back();
    return checkDepth() && builder.start_object(elements);
  }
  bool key(string_t &name) override {
    if (!keys.back().insert(name).second) {
      problem = "the key \"" + name + "\" stands there twice";
      return false;
    }
    return builder.key(name);
  }
  bool end_object() override {
    keys.pop_back();
    return builder.end_object();
  }
  bool start_array(size_t elements) override {
    keys.emplace_back();
    return checkDepth() && builder.start_array(elements);
  }
  bool end_array() override {
    keys.pop_back();
    return builder.end_array();
  }
  bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &error) override {
    problem = error.what();
    problemAt = position;
    // "[json.exception.parse_error.101] parse error at ...": the part in brackets says nothing to a user.
    if (const size_t bracket = problem.find("] "); bracket != std::string::npos)
      problem.erase(0, bracket + 2);
    return false;
  }

private:
  bool checkDepth() {
    if (keys.size() <= kMaxDepth)
      return true;
    problem = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
    return false;
  }

  nlohmann::detail::json_sax_dom_parser<Json> builder;
  std::vector<std::set<std::string>> keys; // one per open object or array
};

} // namespace

Result<nlohmann::json> parseJsonObject(std::string_view text, const std::string &what, bool *isCut) {
  nlohmann::json value;
  CheckedBuilder builder(value);
  const bool isJson = nlohmann::json::sax_parse(text, &builder);
  if (isCut)
    *isCut = !isJson && builder.problemAt > text.size();
  if (!isJson)
    return Status::error(ErrorCode::kInvalidArgument, what + " is not valid JSON: " + builder.problem);
  if (!value.is_object())
    return Status::error(ErrorCode::kInvalidArgument,
                         what + " must be a JSON object { ... }, it is of type " + value.type_name());
  return value;
}

} // namespace nsa
