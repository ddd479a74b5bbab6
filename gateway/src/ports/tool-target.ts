/** Where a tool runs. Tagged data: no code derives the target from a tool's name or from a missing node id. */

export type ToolTarget =
  /** Inside GSV, in the session that calls it. */
  | { readonly kind: "native" }
  /** On a connected machine. */
  | { readonly kind: "node"; readonly nodeId: string };
