#include "compiler/language/syntax/ParserRules.h"
#include "compiler/language/syntax/Suggestion.h"

#include <algorithm>
#include <iterator>

namespace nsa::language {

namespace {

struct ItemWord {
  std::string_view word;
  ItemKind kind;
  bool isOfLibraries; // a library may declare it
};

constexpr ItemWord kItemWords[] = {
    {"kernel", ItemKind::kKernel, false},       {"library", ItemKind::kLibrary, true},
    {"import", ItemKind::kImport, true},        {"targets", ItemKind::kTargets, false},
    {"reference", ItemKind::kReference, false}, {"fixed", ItemKind::kFixed, true},
    {"const", ItemKind::kConst, true},          {"choice", ItemKind::kChoice, false},
    {"require", ItemKind::kRequire, false},     {"cost", ItemKind::kCost, false},
    {"work", ItemKind::kWork, false},           {"threads", ItemKind::kThreads, false},
    {"grid", ItemKind::kGrid, false},           {"axis", ItemKind::kAxis, false},
    {"tensor", ItemKind::kTensor, true},        {"scalar", ItemKind::kScalar, true},
    {"record", ItemKind::kRecord, true},        {"code", ItemKind::kCode, true},
    {"fn", ItemKind::kFunction, true},
};

} // namespace

ItemKind itemKindOf(std::string_view word) {
  const auto *found = std::ranges::find(kItemWords, word, &ItemWord::word);
  return found == std::end(kItemWords) ? ItemKind::kStatement : found->kind;
}

std::string_view nearestBeginning(std::string_view word) {
  std::vector<std::string_view> words;
  for (const ItemWord &item : kItemWords)
    words.push_back(item.word);
  for (const TokenKind kind : {TokenKind::kLet, TokenKind::kVar, TokenKind::kFor, TokenKind::kStore, TokenKind::kReport,
                               TokenKind::kReturn, TokenKind::kIf})
    words.push_back(spellingOf(kind));
  return nearestWord(word, words);
}

Name Parser::name(std::string_view what) {
  const Token token = current;
  if (isReserved(kind()))
    fail(here(), "'" + std::string(textOf(token)) + "' is a word of the language and cannot be a name");
  else if (!take(TokenKind::kName))
    failExpected(what);
  return hasFailed ? Name{} : Name{textOf(token), rangeOf(token)};
}

Name Parser::element() { return name("a type"); }

// "[" [ names ] "]"
NameList Parser::axes() {
  const Token open = current;
  need(TokenKind::kOpenBracket);
  NameList found;
  if (!at(TokenKind::kCloseBracket))
    found = names();
  needClosing(TokenKind::kCloseBracket, open);
  return found;
}

// type = element [ "[" [ names ] "]" ] | "[" names "]"
const TypeSyntax *Parser::type() {
  const Token first = current;
  const Name word = at(TokenKind::kOpenBracket) ? Name{} : element();
  const bool hasAxes = at(TokenKind::kOpenBracket);
  const NameList found = hasAxes ? axes() : NameList{};
  return tree.arena.make<TypeSyntax>(since(first), word, hasAxes, found);
}

// item = declaration | statement
const Item *Parser::item() {
  const ItemKind itemKind = at(TokenKind::kName) ? itemKindOf(textOf(current)) : ItemKind::kStatement;
  const bool isAssigned = following.kind == TokenKind::kAssign || following.kind == TokenKind::kPlusAssign;
  if (itemKind != ItemKind::kStatement && !isAssigned)
    return declaration(itemKind);
  const Token first = current;
  const Statement *read = statement();
  return itemNode<StatementItem>(first, read);
}

const Item *Parser::declaration(ItemKind itemKind) {
  const Token first = current;
  take(TokenKind::kName);
  switch (itemKind) {
  case ItemKind::kKernel:
    return kernelItem(first);
  case ItemKind::kLibrary: {
    const Name library = name();
    return itemNode<LibraryItem>(first, library);
  }
  case ItemKind::kImport: {
    const NameList libraries = names();
    return itemNode<ImportItem>(first, libraries);
  }
  case ItemKind::kTargets: {
    const NameList targets = names();
    return itemNode<TargetsItem>(first, targets);
  }
  case ItemKind::kReference:
    return referenceItem(first);
  case ItemKind::kFixed:
    return fixedItem(first);
  case ItemKind::kConst: {
    const auto bindings = list<Binding>([&] { return binding(); });
    return itemNode<ConstItem>(first, bindings);
  }
  case ItemKind::kCode: {
    const auto bindings = list<Binding>([&] { return binding(); });
    return itemNode<CodeItem>(first, bindings);
  }
  case ItemKind::kChoice:
    return choiceItem(first);
  case ItemKind::kRequire: {
    const Expr *condition = expr();
    return itemNode<RequireItem>(first, condition);
  }
  case ItemKind::kCost: {
    const Expr *value = expr();
    return itemNode<CostItem>(first, value);
  }
  case ItemKind::kWork:
    return workItem(first);
  case ItemKind::kThreads: {
    const Expr *value = expr();
    const Expr *blocks = take(TokenKind::kComma) ? expr() : nullptr;
    return itemNode<ThreadsItem>(first, value, blocks);
  }
  case ItemKind::kGrid:
    return gridItem(first);
  case ItemKind::kAxis:
    return axisItem(first);
  case ItemKind::kTensor:
    return tensorItem(first);
  case ItemKind::kScalar: {
    const FieldList scalars = fields();
    return itemNode<ScalarItem>(first, scalars);
  }
  case ItemKind::kRecord:
    return recordItem(first);
  case ItemKind::kFunction:
    return functionItem(first);
  case ItemKind::kStatement:
    break;
  }
  return nullptr;
}

// "kernel" name [ "serves" names ]
const Item *Parser::kernelItem(const Token &first) {
  const Name kernel = name();
  const NameList operators = takeWord("serves") ? names() : NameList{};
  return itemNode<KernelItem>(first, kernel, operators);
}

// "reference" ( name | fixing { "," fixing } ); fixing = name "=" number
const Item *Parser::referenceItem(const Token &first) {
  if (following.kind != TokenKind::kAssign) {
    const Name kernel = name("a kernel");
    return itemNode<ReferenceItem>(first, kernel, std::span<const ReferenceItem::Choice>());
  }
  const auto choices = list<ReferenceItem::Choice>([&] {
    const Name chosen = name();
    need(TokenKind::kAssign);
    const NumberExpr *value = number();
    if (value && !value->isInteger)
      fail(value->range, "choices are integers");
    return ReferenceItem::Choice{chosen, value};
  });
  return itemNode<ReferenceItem>(first, Name{}, choices);
}

// "fixed" names [ "when" expr ]
const Item *Parser::fixedItem(const Token &first) {
  const NameList values = names();
  const Expr *when = takeWord("when") ? expr() : nullptr;
  return itemNode<FixedItem>(first, values, when);
}

// bind = name "=" expr
Binding Parser::binding() {
  const Name bound = name();
  need(TokenKind::kAssign);
  return {bound, expr()};
}

// "work" bind { "," bind }: each of two numbers at most once
const Item *Parser::workItem(const Token &first) {
  constexpr const char *kHint = "work flops = 2 * rows * columns, bytes = rows * columns * dtype_bytes";
  if (!at(TokenKind::kName)) {
    fail(here(), "the work of a call is 'flops', 'bytes' or both, each an expression of integers").hint(kHint);
    return nullptr;
  }
  const auto parts = list<Binding>([&] { return binding(); });
  for (const Binding &part : parts) {
    if (hasFailed)
      break;
    if (part.name.text != kWorkFlops && part.name.text != kWorkBytes)
      fail(part.name.range, "the work of a call has 'flops' and 'bytes', and no '" + std::string(part.name.text) + "'")
          .hint(kHint);
    else if (!works.insert(part.name.text).second)
      fail(part.name.range, "'" + std::string(part.name.text) + "' of the work is said twice");
  }
  return itemNode<WorkItem>(first, parts);
}

// "choice" pick { "," pick }; pick = name "=" number { "|" number }
const Item *Parser::choiceItem(const Token &first) {
  const auto choices = list<ChoiceItem::Choice>([&] {
    const Name chosen = name();
    need(TokenKind::kAssign);
    std::vector<const NumberExpr *> values;
    do {
      const NumberExpr *value = number();
      if (value && !value->isInteger)
        fail(value->range, "choices are integers");
      values.push_back(value);
    } while (take(TokenKind::kBar));
    return ChoiceItem::Choice{chosen, tree.arena.copy(values)};
  });
  return itemNode<ChoiceItem>(first, choices);
}

// "grid" dim { "," dim }; dim = "1" | bind | "(" bind { "," bind } ")"
const Item *Parser::gridItem(const Token &first) {
  const auto dimensions = list<GridItem::Dimension>([&]() -> GridItem::Dimension {
    const Token begin = current;
    if (at(TokenKind::kNumber)) {
      if (textOf(current) != "1")
        fail(here(), "a dimension of the grid that is not 1 has a name").hint("grid block = n");
      take(TokenKind::kNumber);
      return {since(begin), {}};
    }
    if (!take(TokenKind::kOpenParenthesis)) {
      const Binding part = binding();
      return {since(begin), tree.arena.copy(std::vector<Binding>{part})};
    }
    const BindingList parts = list<Binding>([&] { return binding(); });
    needClosing(TokenKind::kCloseParenthesis, begin);
    return {since(begin), parts};
  });
  return itemNode<GridItem>(first, dimensions);
}

// "axis" bind [ "outer" ] { "," bind [ "outer" ] }
const Item *Parser::axisItem(const Token &first) {
  const auto found = list<AxisItem::Axis>([&] {
    const Binding bound = binding();
    return AxisItem::Axis{bound.name, bound.value, takeWord("outer")};
  });
  return itemNode<AxisItem>(first, found);
}

const Item *Parser::tensorItem(const Token &first) {
  const auto declared = list<TensorItem::Declaration>([&] { return tensor(); });
  for (const TensorItem::Declaration &declaration : declared)
    for (const Name &each : declaration.names)
      tensors.insert(each.text);
  return itemNode<TensorItem>(first, declared);
}

// tensor = ( name | "(" names ")" ) "[" [ names ] [ ";" name [ ":" expr ] ] "]" [ ":" element ] { flag }
// flag = "optional" | "inout" | "paged" "(" expr ")"
// `time: tokens, head`
void Parser::readCoordinates(TensorItem::Declaration &read) {
  std::vector<Name> labels;
  std::vector<const Expr *> extents;
  do {
    labels.push_back(name("a coordinate"));
    extents.push_back(take(TokenKind::kColon) ? expr() : nullptr);
  } while (take(TokenKind::kComma));
  read.coordinates = tree.arena.copy(labels);
  read.extents = tree.arena.copy(extents);
}

TensorItem::Declaration Parser::tensor() {
  TensorItem::Declaration read{};
  const Token first = current;
  read.names = target().names;
  const Token open = current;
  need(TokenKind::kOpenBracket);
  if (!at(TokenKind::kSemicolon) && !at(TokenKind::kCloseBracket))
    readCoordinates(read);
  if (take(TokenKind::kSemicolon)) {
    read.column = name("a column");
    if (take(TokenKind::kColon))
      read.columns = expr();
  }
  needClosing(TokenKind::kCloseBracket, open);
  if (take(TokenKind::kColon))
    read.element = element();
  for (bool isFlag = true; isFlag;) {
    const Token flag = current;
    isFlag = atWord("optional") || atWord("inout") || atWord("paged");
    const bool isTwice = (atWord("optional") && read.isOptional) || (atWord("inout") && read.isInout) ||
                         (atWord("paged") && read.pageSize);
    if (isTwice)
      fail(here(), "'" + std::string(textOf(flag)) + "' is said twice");
    read.isOptional |= takeWord("optional");
    read.isInout |= takeWord("inout");
    if (takeWord("paged")) {
      const Token parenthesis = current;
      need(TokenKind::kOpenParenthesis);
      read.pageSize = expr();
      needClosing(TokenKind::kCloseParenthesis, parenthesis);
    }
  }
  read.range = since(first);
  return read;
}

// fields = names ":" type { "," names ":" type }
FieldList Parser::fields() {
  std::vector<Field> found;
  size_t typed = 0; // so many of them have their type
  do {
    const Name field = name();
    found.push_back({field, nullptr});
    if (!take(TokenKind::kColon))
      continue;
    const TypeSyntax *read = type();
    for (; typed < found.size(); ++typed)
      found[typed].type = read;
  } while (take(TokenKind::kComma));
  if (typed < found.size() && !hasFailed)
    fail(found.back().name.range, "'" + std::string(found.back().name.text) + "' has no type").hint("a, b: i32");
  return tree.arena.copy(found);
}

// "record" name "{" fields "}"
const Item *Parser::recordItem(const Token &first) {
  const Name record = name();
  const Token open = current;
  need(TokenKind::kOpenBrace);
  ++brackets; // lines end nothing inside
  const FieldList found = fields();
  needClosing(TokenKind::kCloseBrace, open);
  brackets -= !hasFailed;
  return itemNode<RecordItem>(first, record, found);
}

// function = "fn" name [ "[" names "]" ] "(" [ param { "," param } ] ")" [ "->" type ] block
const Item *Parser::functionItem(const Token &first) {
  const Name function = name();
  const NameList along = at(TokenKind::kOpenBracket) ? axes() : NameList{};
  const Token open = current;
  need(TokenKind::kOpenParenthesis);
  std::span<const FunctionItem::Parameter> parameters;
  if (!at(TokenKind::kCloseParenthesis))
    parameters = list<FunctionItem::Parameter>([&] {
      const Name parameter = name("a parameter");
      return FunctionItem::Parameter{parameter, take(TokenKind::kColon) ? type() : nullptr};
    });
  needClosing(TokenKind::kCloseParenthesis, open);
  const TypeSyntax *result = take(TokenKind::kArrow) ? type() : nullptr;
  isInFunction = true;
  const Block body = block(first);
  isInFunction = false;
  checkResult(function, body);
  return itemNode<FunctionItem>(first, function, along, parameters, result, body);
}

// The first declaration says what the file is, and with it what it may hold.
void Parser::checkPlacement(const Item &item) {
  const bool isHead = item.kind == ItemKind::kKernel || item.kind == ItemKind::kLibrary;
  const bool hasHead = tree.kernel || tree.library;
  const auto report = [&](std::string text) -> Diagnostic & { return diagnostics.error(item.range, std::move(text)); };
  if (isHead && hasHead)
    report("a file has one kernel, or is one library");
  else if (!isHead && !hasHead && !hasRefusedHead) {
    hasRefusedHead = true;
    report("a file begins with 'kernel NAME' or 'library NAME'");
  } else if (item.kind == ItemKind::kWork && tree.kernel && !tree.kernel->operators.empty()) {
    report("a kernel that serves an operator has no 'work'").hint("the work of an operator is known");
  } else if (tree.library && item.kind == ItemKind::kStatement && !hasRefusedStatement) {
    hasRefusedStatement = true;
    report("a library has no statements").hint("a function may have them: fn name(..) { .. }");
  } else if (tree.library && item.kind != ItemKind::kStatement) {
    const auto *word = std::ranges::find(kItemWords, item.kind, &ItemWord::kind);
    if (!word->isOfLibraries)
      report("a library has no '" + std::string(word->word) + "'").hint("kernels have it");
  }
}

} // namespace nsa::language
