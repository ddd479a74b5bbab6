/** What a move needs, loaded with its first call. */
export { MoveSource } from "./source.ts";
export { MoveTarget } from "./target.ts";
