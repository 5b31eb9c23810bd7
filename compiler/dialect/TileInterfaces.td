// Interfaces of operations of the `tile` dialect.

#ifndef NSA_TILE_INTERFACES_TD
#define NSA_TILE_INTERFACES_TD

include "mlir/IR/OpBase.td"

def LayoutOpInterface : OpInterface<"LayoutOpInterface"> {
  let description = [{
    An operation that reads or makes tiles says which layouts it demands for them, and in which layouts it can make its
    result. AssignLayouts asks each operation, and refuses an operation that does not say.
  }];
  let cppNamespace = "::nsa::tile";
  let methods = [
    InterfaceMethod<"The layout in which the operation reads a tile. By default it is the ordinary one.",
      "::nsa::tile::Layout", "getOperandLayout", (ins "::mlir::OpOperand &":$operand, "::nsa::tile::LayoutTarget":$target),
      "", [{ return ordinaryLayout(operand.get(), target); }]>,
    InterfaceMethod<"Whether the operation can make its result in `layout`. By default it can in the ordinary layout alone.",
      "bool", "offersLayout", (ins "::nsa::tile::Layout":$layout, "::nsa::tile::LayoutTarget":$target), "",
      [{ return layout == ordinaryLayout($_op->getResult(0), target); }]>,
  ];
}

#endif // NSA_TILE_INTERFACES_TD
