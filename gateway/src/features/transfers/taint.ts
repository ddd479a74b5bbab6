/** Who may have written what a machine sends (rule TF9). PURE. */
import type { NodeEntry } from "../../../../protocol/gen/types.ts";
import { higher, type Taint } from "../../ports/taint.ts";
import type { Endpoint } from "./endpoint.ts";

/** As for what its file tools read (rule TA4): files of its workspace have no label, and others are anyone's. */
export function taintFrom(source: Endpoint, nodes: readonly NodeEntry[]): Taint | undefined {
  if (source.kind !== "node") return undefined;
  const node = nodes.find(({ nodeId }) => nodeId === source.nodeId);
  const isConfined = node?.hostCapabilities.some((name) => name === "filesystem.confined") === true;
  const leaves = /^[/~]/.test(source.path) || source.path.split("/").includes("..");
  return isConfined || !leaves ? undefined : { label: "world", source: `${source.nodeId}:${source.path}` };
}

/** The label of the copy: the conversation that asked for it has chosen its name (rule TA14), and the source its content. */
export const taintOf = (asked: Taint | undefined, source: Taint | undefined): Taint | undefined =>
  asked === undefined ? source : higher(asked, source);
