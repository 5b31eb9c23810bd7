// Walks over the fields of a spec (runtime/model/spec_fields.def), for code that does the same with each of them.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <cstdint>
#include <string_view>

namespace nsa {

// The values of a field in a config file.
namespace spec_field {
template <int32_t least> struct Integer {};      // an integer, at least `least`
template <auto name, auto parse> struct Name {}; // the name of an enumerator
struct Scale {};                                 // a number that is finite and not negative
struct Positive {};                              // a number that is finite and above 0
struct Flag {};                                  // true or false
struct Branches {};                              // a list of the branches that are on
} // namespace spec_field

template <typename Kind, typename Value> struct SpecFieldDef {
  std::string_view name;
  Value Spec::*member;
  uint32_t group; // a SpecField; 0: all operators read the field
  bool isAlwaysText;

  bool isIn(uint32_t fields) const { return group == 0 || (fields & group) != 0; }
};

// Calls visit(kind, field) for each field, in the order of the list. `kind` is a value of a struct of spec_field, and
// `field` is a SpecFieldDef.
template <typename Visit> void forEachSpecField(Visit visit) {
  using namespace spec_field;
  constexpr bool kAlways = true, kUnlessDefault = false;
#define NSA_SPEC_FIELD(type, member, name, group, initial, text, ...)                                                  \
  visit(__VA_ARGS__(), SpecFieldDef<__VA_ARGS__, type>{#name, &Spec::member, group, text});
#include "runtime/model/spec_fields.def"
}

} // namespace nsa
