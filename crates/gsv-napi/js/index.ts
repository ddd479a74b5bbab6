/** `@gsv/node`: a GSV node in a JavaScript program. */
export { GsvError } from "./errors.ts";
export { type ErrorReason, RUST_TOOLS, type RustTool } from "./gen/contract.ts";
export { type CallEvent, Node, type NodeEvents } from "./node.ts";
export type { Block, Json, NodeOptions, Tool, ToolContext, ToolResult } from "./options.ts";
